package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
)

// streamer puts the calls of all callers on one stream. One goroutine sends what was asked meanwhile as one message, one
// receives; both start with the first call and end with close. A stream that broke is replaced when somebody asks again.
type streamer struct {
	api   sluicev1.LimiterServiceClient
	calls chan *call
	quit  chan struct{}

	mu      sync.Mutex
	started bool
	closed  bool
	running sync.WaitGroup
}

// call is one caller's question.
type call struct {
	req    *sluicev1.Request
	gone   <-chan struct{} // closed when the caller gave up
	answer chan result     // has room for one, so nobody waits for a caller who gave up
}

type result struct {
	answer *sluicev1.Answer
	err    error
}

const (
	// maxWaiting is how many calls wait to be sent. Callers beyond it wait for room, within their timeout.
	maxWaiting = 1024
	// maxTogether is how many of them are sent in one message.
	maxTogether = 100
	// maxMoves is how often a call moves to another stream because the service ended the one it was on, after a
	// millisecond, two, four and so on: a node ends streams a little before its connections, and until then new
	// streams come to it again. A service that ends every stream must not be asked for ever.
	maxMoves = 6
)

var (
	// errEnded: the service ended the stream in good order, before it stops. It has not looked at the call.
	errEnded  = errors.New("the service ended the stream")
	errClosed = status.Error(codes.Unavailable, "the client is closed")
)

func newStreamer(api sluicev1.LimiterServiceClient) *streamer {
	return &streamer{api: api, calls: make(chan *call, maxWaiting), quit: make(chan struct{})}
}

// ask waits for the answer to a question.
func (s *streamer) ask(ctx context.Context, req *sluicev1.Request) (sluice.Decision, error) {
	r := s.once(ctx, req)
	pause := time.Millisecond
	for range maxMoves {
		if !errors.Is(r.err, errEnded) {
			break
		}
		select {
		case <-ctx.Done():
			return sluice.Decision{}, ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
		r = s.once(ctx, req) // was certainly not charged
	}
	if r.err != nil {
		return sluice.Decision{}, r.err
	}
	if faults := r.answer.GetFaults(); len(faults) > 0 {
		return sluice.Decision{}, status.Errorf(codes.InvalidArgument, "%s: %s", faults[0].GetField(), faults[0].GetProblem())
	}
	return decisionOf(r.answer.GetDecision())
}

func (s *streamer) once(ctx context.Context, req *sluicev1.Request) result {
	if !s.start() {
		return result{err: errClosed}
	}
	c := &call{req: req, gone: ctx.Done(), answer: make(chan result, 1)}
	select {
	case s.calls <- c:
	case <-ctx.Done():
		return result{err: ctx.Err()}
	case <-s.quit:
		return result{err: errClosed}
	}
	select {
	case r := <-c.answer:
		return r
	case <-ctx.Done():
		return result{err: ctx.Err()}
	case <-s.quit:
		return result{err: errClosed}
	}
}

// start starts the sender once, and tells whether the client is open.
func (s *streamer) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && !s.closed {
		s.started = true
		s.running.Go(s.send)
	}
	return !s.closed
}

func (s *streamer) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.quit)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// send sends calls until the client is closed.
func (s *streamer) send() {
	// The stream serves all callers and outlives each of them; close ends it.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.running.Go(func() { // opening a stream waits for a connection, and close must not wait for that
		<-s.quit
		cancel()
	})
	var current *session
	for {
		var batch []*call
		select {
		case <-s.quit:
			return
		case c := <-s.calls:
			batch = s.gather(c)
		}
		if len(batch) == 0 {
			continue
		}
		if current == nil || !current.send(batch) {
			var err error
			if current, err = s.open(ctx); err != nil {
				answerAll(batch, result{err: err})
				continue
			}
			if !current.send(batch) {
				answerAll(batch, result{err: errEnded})
			}
		}
	}
}

// gather returns the call and those that wait behind it, without those whose callers gave up: they would be charged for
// nothing.
func (s *streamer) gather(c *call) []*call {
	var batch []*call
	for {
		select {
		case <-c.gone:
		default:
			batch = append(batch, c)
		}
		if len(batch) == maxTogether {
			return batch
		}
		select {
		case c = <-s.calls:
		default:
			return batch
		}
	}
}

func (s *streamer) open(ctx context.Context) (*session, error) {
	stream, err := s.api.CheckStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	se := &session{stream: stream, pending: map[uint64][]*call{}}
	s.running.Go(se.receive)
	return se, nil
}

func answerAll(calls []*call, r result) {
	for _, c := range calls {
		c.answer <- r
	}
}

// session is one stream.
type session struct {
	stream grpc.BidiStreamingClient[sluicev1.CheckStreamRequest, sluicev1.CheckStreamResponse]
	last   uint64 // id, of the sender alone

	mu      sync.Mutex
	pending map[uint64][]*call // nil when the stream is over
}

// send sends calls as one message, and tells whether the stream took them: whatever becomes of it then, they are
// answered.
func (se *session) send(batch []*call) bool {
	se.last++
	m := &sluicev1.CheckStreamRequest{Id: se.last, Requests: make([]*sluicev1.Request, len(batch))}
	for i, c := range batch {
		m.Requests[i] = c.req
	}
	se.mu.Lock()
	open := se.pending != nil
	if open {
		se.pending[se.last] = batch
	}
	se.mu.Unlock()
	if open {
		_ = se.stream.Send(m) // where it fails, receive learns why and answers
	}
	return open
}

// receive answers calls until the stream is over, and then those that are left.
func (se *session) receive() {
	var err error
	for err == nil {
		var m *sluicev1.CheckStreamResponse
		if m, err = se.stream.Recv(); err == nil {
			for _, reply := range m.GetReplies() {
				se.answer(reply)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	se.mu.Lock()
	left := se.pending
	se.pending = nil
	se.mu.Unlock()
	for _, batch := range left {
		answerAll(batch, result{err: err})
	}
}

func (se *session) answer(reply *sluicev1.CheckStreamReply) {
	se.mu.Lock()
	batch := se.pending[reply.GetId()]
	delete(se.pending, reply.GetId())
	se.mu.Unlock()
	answers := reply.GetAnswers()
	switch {
	case reply.GetCode() != 0:
		answerAll(batch, result{err: status.Error(codes.Code(reply.GetCode()), reply.GetError())})
	case len(answers) != len(batch):
		answerAll(batch, result{err: status.Errorf(codes.Internal, "%d answers to %d questions", len(answers), len(batch))})
	default:
		for i, c := range batch {
			c.answer <- result{answer: answers[i]}
		}
	}
}
