package checkgrpc

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluicehq/sluice"
)

// reader walks the fields of a message on the wire. buf and text are the same bytes: buf is the transport's and read only
// here, text is a copy that strings are cut out of.
type reader struct {
	buf  []byte
	text string
	num  protowire.Number
	typ  protowire.Type
	err  error
}

// next goes to the next field, whose value must then be taken or skipped.
func (r *reader) next() bool {
	if len(r.buf) == 0 || r.err != nil {
		return false
	}
	num, typ, n := protowire.ConsumeTag(r.buf)
	if n >= 0 && num > protowire.MaxValidNumber { // which ConsumeTag lets pass, and generated code does not
		r.err = errFieldNumber
		return false
	}
	r.num, r.typ = num, typ
	return r.forward(n)
}

var errFieldNumber = errors.New("invalid field number")

func (r *reader) forward(n int) bool {
	if n < 0 {
		r.err = protowire.ParseError(n)
		return false
	}
	r.buf, r.text = r.buf[n:], r.text[n:]
	return true
}

func (r *reader) skip() { r.forward(protowire.ConsumeFieldValue(r.num, r.typ, r.buf)) }

func (r *reader) varint() uint64 {
	v, n := protowire.ConsumeVarint(r.buf)
	r.forward(n)
	return v
}

func (r *reader) string() string { return r.message().text }

// message returns a reader of the field's value.
func (r *reader) message() reader {
	v, n := protowire.ConsumeBytes(r.buf)
	text := r.text
	if !r.forward(n) {
		return reader{}
	}
	return reader{buf: v, text: text[n-len(v) : n]}
}

// request reads a Request, and returns the address as it is written. Fields that are there twice are merged, the last
// one winning, as protobuf wants; fields of another type than ours are skipped.
func (r *reader) request(req *sluice.Request) (ip string) {
	for r.next() {
		switch {
		case r.typ == protowire.BytesType && r.num == 1:
			req.Namespace = r.string()
		case r.typ == protowire.BytesType && r.num == 2:
			inner := r.message()
			inner.subject(&req.Subject, &ip)
			r.fail(inner.err)
		case r.typ == protowire.BytesType && r.num == 3:
			req.Route = r.string()
		case r.typ == protowire.BytesType && r.num == 4:
			req.Method = r.string()
		case r.typ == protowire.BytesType && r.num == 5:
			inner := r.message()
			name, value := inner.entry()
			if req.Attributes == nil {
				// Not reused between requests: who is told of a decision may keep the request.
				req.Attributes = make(map[string]string)
			}
			req.Attributes[name] = value
			r.fail(inner.err)
		case r.typ == protowire.VarintType && r.num == 6:
			req.Cost = int64(r.varint())
		default:
			r.skip()
		}
	}
	return ip
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) subject(s *sluice.Subject, ip *string) {
	for r.next() {
		if r.typ != protowire.BytesType {
			r.skip()
			continue
		}
		switch r.num {
		case 1:
			s.Tenant = r.string()
		case 2:
			s.User = r.string()
		case 3:
			s.APIKey = r.string()
		case 4:
			*ip = r.string()
		case 5:
			s.Tier = r.string()
		default:
			r.skip()
		}
	}
}

// entry reads an entry of a map.
func (r *reader) entry() (name, value string) {
	for r.next() {
		switch {
		case r.typ == protowire.BytesType && r.num == 1:
			name = r.string()
		case r.typ == protowire.BytesType && r.num == 2:
			value = r.string()
		default:
			r.skip()
		}
	}
	return name, value
}
