package checkgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/checkgrpc"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/memstore"
)

func TestCheckStream_AnswersEveryCallOnce(t *testing.T) {
	t.Parallel()
	const calls, limit = 3000, 1000
	conn, _, _ := serve(t, engineOf(t, redisStore(t), perUser, engine.Options{}))
	stream, err := sluicev1.NewLimiterServiceClient(conn).CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for id := range uint64(calls) {
			// Everyone together has 1,000; a user of his own for each call leaves only that limit. Every tenth call brings two.
			reqs := []*sluicev1.Request{asUser(fmt.Sprint(id))}
			if id%10 == 0 {
				reqs = append(reqs, &sluicev1.Request{Cost: -1})
			}
			if err := stream.Send(&sluicev1.CheckStreamRequest{Id: id, Requests: reqs}); err != nil {
				t.Error(err)
				return
			}
		}
		_ = stream.CloseSend()
	}()
	seen, allowed, messages := map[uint64]bool{}, 0, 0
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		messages++
		for _, reply := range r.GetReplies() {
			want := 1
			if reply.GetId()%10 == 0 {
				want = 2
			}
			if seen[reply.GetId()] || reply.GetCode() != 0 || len(reply.GetAnswers()) != want || (want == 2) != (len(reply.GetAnswers()[want-1].GetFaults()) == 1) {
				t.Fatalf("reply %v, want one with %d answers", reply, want)
			}
			seen[reply.GetId()] = true
			if reply.GetAnswers()[0].GetDecision().GetAllowed() {
				allowed++
			}
		}
	}
	if len(seen) != calls || allowed != limit {
		t.Errorf("%d of %d calls answered, %d allowed, want %d", len(seen), calls, allowed, limit)
	}
	t.Logf("%d calls in %d messages", calls, messages)
}

func TestCheckStream_RefusesACallThatIsTooLarge(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, memstore.New(memstore.Options{}), perUser, engine.Options{}))
	stream, err := sluicev1.NewLimiterServiceClient(conn).CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reqs := make([]*sluicev1.Request, 1001)
	for i := range reqs {
		reqs[i] = asUser("a")
	}
	for id, want := range []codes.Code{codes.InvalidArgument, codes.OK, codes.InvalidArgument} {
		send := reqs
		if want == codes.OK {
			send = reqs[:1000]
		}
		if err := stream.Send(&sluicev1.CheckStreamRequest{Id: uint64(id), Requests: send}); err != nil {
			t.Fatal(err)
		}
		r, err := stream.Recv()
		if err != nil || codes.Code(r.GetReplies()[0].GetCode()) != want {
			t.Fatalf("call %d: %.200s, %v, want %s", id, r, err, want)
		}
	}
}

// slow answers calls when it is told to.
type slow struct {
	checkgrpc.Engine
	entered chan struct{}
	leave   chan struct{}
}

func (s *slow) CheckAll(ctx context.Context, reqs []sluice.Request, decisions []sluice.Decision) error {
	s.entered <- struct{}{}
	select {
	case <-s.leave:
	case <-ctx.Done():
		return ctx.Err()
	}
	for i := range reqs {
		decisions[i].Allowed = true
	}
	return nil
}

func TestDrain_AnswersCallsUnderWayAndEndsStreams(t *testing.T) {
	t.Parallel()
	e := &slow{entered: make(chan struct{}), leave: make(chan struct{})}
	conn, door, server := serve(t, e)
	client := sluicev1.NewLimiterServiceClient(conn)
	stream, err := client.CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&sluicev1.CheckStreamRequest{Id: 1, Requests: []*sluicev1.Request{asUser("a")}}); err != nil {
		t.Fatal(err)
	}
	<-e.entered
	door.Drain()
	door.Drain() // twice does no harm
	stopped := make(chan struct{})
	go func() { server.GracefulStop(); close(stopped) }()
	close(e.leave)
	if r, err := stream.Recv(); err != nil || r.GetReplies()[0].GetId() != 1 || !r.GetReplies()[0].GetAnswers()[0].GetDecision().GetAllowed() {
		t.Errorf("call under way: %v, %v, want its answer", r, err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last answer: %v, want the end of the stream", err)
	}
	<-stopped
}

func TestCheckStream_EndsWithItsClient(t *testing.T) {
	t.Parallel()
	e := &slow{entered: make(chan struct{}), leave: make(chan struct{})}
	conn, _, server := serve(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := sluicev1.NewLimiterServiceClient(conn).CheckStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&sluicev1.CheckStreamRequest{Id: 1}); err != nil {
		t.Fatal(err)
	}
	<-e.entered
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want CANCELLED", err)
	}
	server.GracefulStop() // returns only when the handler has
}

func TestCheckStream_SharesAServerWithOthers(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, memstore.New(memstore.Options{}), perUser, engine.Options{}))
	client := sluicev1.NewLimiterServiceClient(conn)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			stream, err := client.CheckStream(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			for i, want := range []bool{true, true, false} {
				_ = stream.Send(&sluicev1.CheckStreamRequest{Id: uint64(i), Requests: []*sluicev1.Request{asUser(fmt.Sprint(n))}})
				r, err := stream.Recv()
				if err != nil || r.GetReplies()[0].GetAnswers()[0].GetDecision().GetAllowed() != want {
					t.Errorf("stream %d call %d: %v, %v, want allowed %t", n, i, r, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
