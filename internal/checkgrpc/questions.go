package checkgrpc

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoiface"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/engine"
)

// questions is any request message of the service: CheckRequest, PeekRequest and ExplainRequest bring one question,
// CheckBatchRequest and CheckStreamRequest several. It is a protobuf message by its methods table, so gRPC's own codec
// reads it.
type questions struct {
	protoreflect.Message // what others see when they look into it: an empty message

	field     protowire.Number // the one that questions are in; set before reading
	id        uint64
	reqs      []sluice.Request // the valid ones
	invalid   []invalid        // the others, in order
	count     int              // all of them
	decisions []sluice.Decision
}

// invalid is a question that could not be decided.
type invalid struct {
	at  int // its place in the message
	err error
}

// ProtoReflect makes it a protobuf message.
func (q *questions) ProtoReflect() protoreflect.Message {
	if q.Message == nil {
		q.Message = (*sluicev1.CheckBatchRequest)(nil).ProtoReflect()
	}
	return q
}

// Interface returns q itself.
func (q *questions) Interface() protoreflect.ProtoMessage { return q }

// IsValid tells that it can be written to.
func (q *questions) IsValid() bool { return true }

// ProtoMethods tells how it is read from the wire.
func (q *questions) ProtoMethods() *protoiface.Methods { return &questionsMethods }

// A table of functions, never written.
var questionsMethods = protoiface.Methods{
	Unmarshal: func(in protoiface.UnmarshalInput) (protoiface.UnmarshalOutput, error) {
		err := in.Message.(*questions).read(in.Buf)
		return protoiface.UnmarshalOutput{Flags: protoiface.UnmarshalInitialized}, err
	},
}

// Reset empties it and keeps its memory, and where it looks for questions.
func (q *questions) Reset() {
	clear(q.reqs)
	clear(q.invalid)
	clear(q.decisions)
	q.id, q.count = 0, 0
	q.reqs, q.invalid, q.decisions = q.reqs[:0], q.invalid[:0], q.decisions[:0]
}

// read reads a message. All its text is copied once, and the questions' fields are cut out of the copy.
func (q *questions) read(buf []byte) error {
	r := reader{buf: buf, text: string(buf)}
	for r.next() {
		switch {
		case r.typ == protowire.BytesType && r.num == q.field:
			q.add(&r)
		case r.typ == protowire.VarintType && r.num == fieldStreamID && q.field != fieldStreamID:
			q.id = r.varint()
		default:
			r.skip()
		}
	}
	return r.err
}

// add reads one question. Beyond the most a batch may have they are only counted.
func (q *questions) add(r *reader) {
	inner := r.message()
	at := q.count
	q.count++
	if q.count > engine.MaxBatch || r.err != nil {
		return
	}
	q.reqs = slices.Grow(q.reqs, 1)[:len(q.reqs)+1]
	req := &q.reqs[len(q.reqs)-1]
	ip := inner.request(req)
	if r.err = inner.err; r.err != nil {
		return
	}
	addr, err := engine.Validate(req, ip)
	if err != nil {
		*req = sluice.Request{}
		q.reqs = q.reqs[:len(q.reqs)-1]
		q.invalid = append(q.invalid, invalid{at, err})
		return
	}
	req.Subject.IP = addr
}

// only returns the question of a message that brings one. A message without asks about nothing in particular, which is a
// question, too: rules that count everyone together answer it.
func (q *questions) only() (*sluice.Request, error) {
	switch {
	case q.count == 0:
		return &sluice.Request{}, nil
	case q.count > 1:
		return nil, &engine.InvalidError{Faults: []engine.Fault{{Path: []string{"request"}, Problem: "is there more than once"}}}
	case len(q.invalid) > 0:
		return nil, q.invalid[0].err
	}
	return &q.reqs[0], nil
}

func (q *questions) bounded() error {
	if q.count > engine.MaxBatch {
		problem := fmt.Sprintf("there are %d: send at most %d in a message", q.count, engine.MaxBatch)
		return &engine.InvalidError{Faults: []engine.Fault{{Path: []string{"requests"}, Problem: problem}}}
	}
	return nil
}

// room returns as many decisions as there are valid questions, all zero.
func (q *questions) room() []sluice.Decision {
	q.decisions = slices.Grow(q.decisions, len(q.reqs))[:len(q.reqs)]
	return q.decisions
}

// appendAnswers appends an answer for every question, in their order, from the decisions about the valid ones.
func (q *questions) appendAnswers(dst []byte, field protowire.Number, decisions []sluice.Decision) []byte {
	faulty := q.invalid
	for i := range q.count {
		dst = protowire.AppendTag(dst, field, protowire.BytesType)
		var at int
		dst, at = begin(dst)
		if len(faulty) > 0 && faulty[0].at == i {
			dst = appendFaults(dst, faulty[0].err)
			faulty = faulty[1:]
		} else {
			dst = appendDecisionField(dst, &decisions[0])
			decisions = decisions[1:]
		}
		dst = end(dst, at)
	}
	return dst
}
