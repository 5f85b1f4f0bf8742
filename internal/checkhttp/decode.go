package checkhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
)

// maxBody is the most a question may have.
const maxBody = 64 << 10

// question is the written form of a sluice.Request.
type question struct {
	Namespace  string            `json:"namespace"`
	Subject    subject           `json:"subject"`
	Route      string            `json:"route"`
	Method     string            `json:"method"`
	Attributes map[string]string `json:"attributes"`
	Cost       int64             `json:"cost"`
}

type subject struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
	APIKey string `json:"api_key"`
	IP     string `json:"ip"`
	Tier   string `json:"tier"`
}

// errMediaType asks for JSON by name. Browsers send nothing under that name to other sites without asking first, so no
// page can spend the limits of whoever looks at it.
var errMediaType = errors.New("the body must be JSON, and say so: Content-Type: application/json (curl --json does)")

// errBody: the client did not send what it announced.
var errBody = errors.New("the body could not be read")

// read reads the body into x.in.
func (x *exchange) read(w http.ResponseWriter, r *http.Request) error {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" && kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
			return errMediaType
		}
	}
	buf := bytes.NewBuffer(x.in)
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	x.in = buf.Bytes()
	if err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	return nil
}

// DecodeRequest reads a question in JSON, strictly: an unknown field is a fault. All faults are told at once; the error
// wraps sluice.ErrInvalidRequest, and engine.FaultsOf lists them.
func DecodeRequest(body []byte) (sluice.Request, error) {
	var q question
	if err := decode(body, &q, questionShape); err != nil {
		return sluice.Request{}, err
	}
	return q.request()
}

func (q *question) request() (sluice.Request, error) {
	req := sluice.Request{
		Namespace: q.Namespace,
		Subject: sluice.Subject{
			Tenant: q.Subject.Tenant,
			User:   q.Subject.User,
			APIKey: q.Subject.APIKey,
			Tier:   q.Subject.Tier,
		},
		Route:      q.Route,
		Method:     q.Method,
		Attributes: q.Attributes,
		Cost:       q.Cost,
	}
	addr, err := engine.Validate(&req, q.Subject.IP)
	req.Subject.IP = addr
	return req, err
}

// batch is the questions of one body, the valid ones together.
type batch struct {
	valid  []sluice.Request
	faults []error // of each question; nil for the valid ones
}

func decodeBatch(body []byte) (*batch, error) {
	var in struct {
		Requests []question `json:"requests"`
	}
	if err := decode(body, &in, batchShape); err != nil {
		return nil, err
	}
	if n := len(in.Requests); n > engine.MaxBatch {
		return nil, fault(fmt.Sprintf("there are %d: send at most %d at once", n, engine.MaxBatch), "requests")
	}
	b := &batch{valid: make([]sluice.Request, 0, len(in.Requests)), faults: make([]error, len(in.Requests))}
	for i := range in.Requests {
		req, err := in.Requests[i].request()
		if b.faults[i] = err; err == nil {
			b.valid = append(b.valid, req)
		}
	}
	return b, nil
}

func fault(problem string, path ...string) error {
	return &engine.InvalidError{Faults: []engine.Fault{{Path: path, Problem: problem}}}
}

// decode reads one JSON value. Where that fails the body is looked at again, to tell every fault and its place.
func decode(body []byte, into any, s *shape) error {
	if !utf8.Valid(body) { // encoding/json would put other characters in place of the wrong ones, and count for another subject
		return fault("is not UTF-8")
	}
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) { // which encoding/json takes for an empty object
		return fault("is null: send a question in JSON, such as {\"subject\": {\"user\": \"u_42\"}}")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return fault("goes on after the JSON value: send one value")
		}
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fault("is empty: send a question in JSON, such as {\"subject\": {\"user\": \"u_42\"}}")
	}
	return diagnose(body, s, err)
}

// diagnose finds out what encoding/json complained about.
func diagnose(body []byte, s *shape, cause error) error {
	var syntax *json.SyntaxError
	if errors.As(cause, &syntax) {
		return fault(fmt.Sprintf("is not JSON at byte %d: %s", syntax.Offset, syntax.Error()))
	}
	if errors.Is(cause, io.ErrUnexpectedEOF) {
		return fault("is not JSON: it ends too early")
	}
	var value any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return fault("is not JSON: " + err.Error())
	}
	if faults := s.faults(nil, nil, value); len(faults) > 0 {
		return &engine.InvalidError{Faults: faults}
	}
	return fault("cannot be read: " + strings.TrimPrefix(cause.Error(), "json: "))
}
