package checkgrpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluicehq/sluice"
)

const (
	// maxQueued is how many calls of a stream are read ahead. Beyond it the client waits, by HTTP/2's flow control.
	maxQueued = 64
	// maxTogether is how many questions of several calls are decided in one step. Larger ones make all of them
	// wait for the slowest shard and for Redis to get through them; smaller ones save less.
	maxTogether = 128
)

// stream is one CheckStream under way. One goroutine reads calls and queues them; workers decide what is queued, many
// calls in one step; the handler's goroutine writes replies, all that are ready in one message. At high rates trips to
// the store, wake-ups and messages are so shared by the calls that come together; at low ones nothing waits for company.
type stream struct {
	server *Server
	wire   grpc.ServerStream

	calls    chan *questions
	replies  chan answered
	done     chan struct{} // closed when the handler is about to return
	readDone chan struct{} // closed when no more calls are read
	readErr  error         // set before that; io.EOF when the client has finished

	underWay atomic.Int64 // calls that were read and whose replies were not yet written
	stopping atomic.Bool  // calls read from now on are not decided
	idle     atomic.Int32 // workers waiting for calls

	mu      sync.Mutex
	ended   bool // no more workers are started
	workers sync.WaitGroup
}

// answered is the replies to some calls, as fields of a CheckStreamResponse.
type answered struct {
	calls int64
	body  []byte
}

func (s *Server) checkStream(wire grpc.ServerStream) error {
	st := &stream{
		server:   s,
		wire:     wire,
		calls:    make(chan *questions, maxQueued),
		replies:  make(chan answered, s.opts.StreamWorkers),
		done:     make(chan struct{}),
		readDone: make(chan struct{}),
	}
	// The reader ends at the latest when the handler returns, because gRPC then ends the stream under it.
	go st.read(wire.Context())
	err := st.write()
	close(st.done)
	st.mu.Lock()
	st.ended = true
	st.mu.Unlock()
	st.workers.Wait()
	return err
}

// read queues calls until the client has no more, the stream breaks or the server drains.
func (st *stream) read(ctx context.Context) {
	defer close(st.readDone)
	started := 0
	for {
		q := st.server.questions(fieldStreamAsked)
		if st.readErr = st.wire.RecvMsg(q); st.readErr != nil {
			return
		}
		// Counted first and then looked: the writer does it the other way round, so either it waits for this call, or
		// the call is not decided.
		st.underWay.Add(1)
		if st.stopping.Load() {
			st.underWay.Add(-1)
			return
		}
		if started < st.server.opts.StreamWorkers && st.idle.Load() == 0 {
			started++
			st.startWorker(ctx)
		}
		select {
		case st.calls <- q:
		case <-st.done:
			return
		}
	}
}

func (st *stream) startWorker(ctx context.Context) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.ended {
		st.workers.Go(func() { st.work(ctx) })
	}
}

// write writes replies until all calls that will be decided are answered.
func (st *stream) write() error {
	draining, readDone := st.server.draining, st.readDone
	out, ending := newReply(nil), false
	for !ending || st.underWay.Load() > 0 {
		select {
		case a := <-st.replies:
			if err := st.writeReady(out, a); err != nil {
				return err
			}
		case <-readDone:
			readDone, ending = nil, true
		case <-draining:
			st.stopping.Store(true)
			draining, ending = nil, true
		}
	}
	if readDone == nil && !errors.Is(st.readErr, io.EOF) {
		return st.readErr
	}
	return nil
}

// writeReady sends what is ready as one message: responses put one after the other are one response.
func (st *stream) writeReady(out *reply, a answered) error {
	out.body = append(out.body[:0], a.body...)
	for more := true; more; {
		select {
		case next := <-st.replies:
			out.body = append(out.body, next.body...)
			a.calls += next.calls
		default:
			more = false
		}
	}
	err := st.wire.SendMsg(out)
	st.underWay.Add(-a.calls)
	return err
}

// work decides queued calls until the handler returns.
func (st *stream) work(ctx context.Context) {
	var b together
	for {
		st.idle.Add(1)
		select {
		case q := <-st.calls:
			st.idle.Add(-1)
			b.add(q)
		case <-st.done:
			return
		}
		for more := true; more && len(b.reqs) < maxTogether; {
			select {
			case q := <-st.calls:
				b.add(q)
			default:
				more = false
			}
		}
		a := answered{int64(len(b.calls)), b.decide(ctx, st.server.engine)}
		b.reset(st.server)
		select {
		case st.replies <- a:
		case <-st.done:
			return
		}
	}
}

// together is the calls that a worker decides in one step. It is reused.
type together struct {
	calls     []*questions
	reqs      []sluice.Request
	decisions []sluice.Decision
}

func (b *together) add(q *questions) {
	b.calls = append(b.calls, q)
	if q.bounded() == nil {
		b.reqs = append(b.reqs, q.reqs...)
	}
}

// decide returns the replies to all calls.
func (b *together) decide(ctx context.Context, engine Engine) []byte {
	if n := len(b.reqs); cap(b.decisions) < n {
		b.decisions = make([]sluice.Decision, n)
	} else {
		b.decisions = b.decisions[:n]
	}
	err := engine.CheckAll(ctx, b.reqs, b.decisions)
	const usual = 192 // bytes of an answer with a limit or two
	body, from := make([]byte, 0, usual*(len(b.reqs)+1)), 0
	for _, q := range b.calls {
		failure := q.bounded()
		if failure == nil {
			failure = err
		}
		body = protowire.AppendTag(body, fieldReplies, protowire.BytesType)
		var at int
		body, at = begin(body)
		body = appendInt(body, 1, int64(q.id))
		if failure != nil {
			body = appendFailure(body, failure)
		} else {
			body = q.appendAnswers(body, fieldReplyAnswers, b.decisions[from:from+len(q.reqs)])
			from += len(q.reqs)
		}
		body = end(body, at)
	}
	return body
}

func (b *together) reset(s *Server) {
	for _, q := range b.calls {
		s.release(q)
	}
	clear(b.calls)
	clear(b.reqs)
	clear(b.decisions)
	b.calls, b.reqs, b.decisions = b.calls[:0], b.reqs[:0], b.decisions[:0]
	if cap(b.reqs) > 2*maxTogether { // one large call must not cost the stream memory for good
		*b = together{}
	}
}

// appendFailure appends code and error of a CheckStreamReply.
func appendFailure(dst []byte, err error) []byte {
	st := status.Convert(statusOf(err))
	return appendText(appendInt(dst, 3, int64(st.Code())), 4, st.Message())
}
