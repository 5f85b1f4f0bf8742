package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/grpclimit"
	"github.com/sluicehq/sluice/internal/checkgrpc"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

var rules = []sluice.Rule{
	{Name: "per-user", Label: "users", Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{twoADay(), sluice.Bucket(100, time.Hour, 120)}, Response: sluice.Response{Status: 420, Message: "slow down"}},
	{Name: "watched", Layer: "watch", Action: sluice.Shadow, Key: []sluice.Dimension{sluice.IP}, Limits: []sluice.Limit{twoADay()}},
	{Name: "no-robots", Layer: "robots", Match: sluice.Match{Attributes: map[string]string{"agent": "robot"}}, Action: sluice.Block},
}

func limiterOn(tb testing.TB, store sluice.Store) *sluice.Limiter {
	tb.Helper()
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		if !f.Warning {
			tb.Fatal(f)
		}
	}
	return sluice.New(store, set.WithRevision(3), sluice.Options{Timeout: 5 * time.Second})
}

func service(tb testing.TB, limiter *sluice.Limiter) (*checkgrpc.Server, *grpc.Server) {
	tb.Helper()
	door, server := checkgrpc.New(engine.New(limiter, engine.Options{}), checkgrpc.Options{}), grpc.NewServer()
	door.Register(server)
	return door, server
}

func clientOf(tb testing.TB, conn grpc.ClientConnInterface, opts grpclimit.ClientOptions) *grpclimit.Client {
	tb.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second
	}
	c := grpclimit.NewClient(conn, opts)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// TestClient_GetsTheDecisionsOfALimiterOverRedis asks one limiter in the process and one from afar, each on a Redis of its
// own, the same questions, and compares all they say.
func TestClient_GetsTheDecisionsOfALimiterOverRedis(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%t", stream), func(t *testing.T) {
			t.Parallel()
			open := func() *sluice.Limiter {
				store, err := rueidisconn.OpenStore("redis://" + testredis.Single(t, testredis.Options{}).Addr())
				if err != nil {
					t.Fatal(err)
				}
				return limiterOn(t, store)
			}
			near := open()
			_, server := service(t, open())
			far := clientOf(t, dial(t, listen(t, server)), grpclimit.ClientOptions{Stream: stream})
			user := sluice.Request{Subject: sluice.Subject{User: "u", IP: netip.MustParseAddr("2001:db8::1"), Tenant: "t", Tier: "x", APIKey: "k"}, Method: "GET", Route: "/"}
			dear := user
			dear.Cost = 3
			for i, req := range []sluice.Request{user, dear, user, user, {}, {Attributes: map[string]string{"agent": "robot"}}} {
				want, err := near.Check(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := far.Check(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, i+1, &got, &want)
			}
		})
	}
}

func compare(t *testing.T, n int, got, want *sluice.Decision) {
	t.Helper()
	shape := func(d *sluice.Decision) string {
		s := fmt.Sprint(d.Allowed, d.Cause, d.Mode, d.Cost, d.Revision, len(d.ID.String()), near(d.RetryAfter), near(d.Delay))
		for _, r := range d.Results() {
			s += fmt.Sprint("\n", r.Rule.Name, r.Rule.Label, r.Rule.Action, r.Limit, r.Allowed, r.Mode, r.Remaining, near(r.ResetAfter), near(r.RetryAfter), r.Enforced())
			if !r.Allowed {
				s += fmt.Sprint(r.Rule.Response.Status, r.Rule.Response.Message)
			}
		}
		return s
	}
	if shape(got) != shape(want) {
		t.Errorf("question %d:\ngot  %s\nwant %s", n, shape(got), shape(want))
	}
	if a, b := strings.SplitN(got.Reason(), " in ", 2)[0], strings.SplitN(want.Reason(), " in ", 2)[0]; a != b {
		t.Errorf("question %d: reason %q, want %q", n, a, b)
	}
}

// near makes times comparable that were taken a little apart.
func near(d time.Duration) string {
	if d == sluice.Never {
		return "never"
	}
	return d.Round(10 * time.Minute).String()
}

func TestClient_LetsPassLabelledOpenWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		server := grpc.NewServer()
		addr := listen(t, server)
		server.Stop()
		client := clientOf(t, dial(t, addr), grpclimit.ClientOptions{Stream: stream})
		d, err := client.Check(t.Context(), sluice.Request{Cost: 2})
		if err != nil || !d.Allowed || d.Mode != sluice.Open || d.Cost != 2 || !errors.Is(d.StoreErr, sluice.ErrUnavailable) || d.ID == (sluice.DecisionID{}) {
			t.Errorf("stream %t: %+v, %v, want it to pass, labelled open", stream, d, err)
		}
		fallback := perKey(twoADay())
		client = clientOf(t, dial(t, addr), grpclimit.ClientOptions{Stream: stream, Fallback: fallback})
		for i, want := range []bool{true, true, false} {
			d, err := client.Check(t.Context(), sluice.Request{Subject: sluice.Subject{User: "u"}})
			if err != nil || d.Allowed != want || !errors.Is(d.StoreErr, sluice.ErrUnavailable) {
				t.Errorf("stream %t, fallback %d: %+v, %v, want allowed %t", stream, i+1, d, err, want)
			}
		}
	}
}

// stuck is a store that answers when the deadline says so, if then.
type stuck struct{ downStore }

func (s stuck) Take(ctx context.Context, groups [][]sluice.Charge) {
	<-ctx.Done()
	s.downStore.Take(ctx, groups)
}

func TestClient_AnswersWithinItsTimeout(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		limiter := sluice.New(stuck{}, sluice.PerKey(twoADay()), sluice.Options{Timeout: time.Minute})
		_, server := service(t, limiter)
		client := clientOf(t, dial(t, listen(t, server)), grpclimit.ClientOptions{Stream: stream, Timeout: 50 * time.Millisecond})
		began := time.Now()
		d, err := client.Check(t.Context(), sluice.Request{Subject: sluice.Subject{User: "u"}})
		if err != nil || !d.Allowed || d.Mode != sluice.Open {
			t.Errorf("stream %t: %+v, %v", stream, d, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("stream %t: after %s, want about 50ms", stream, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := client.Check(ctx, sluice.Request{}); !errors.Is(err, context.Canceled) {
			t.Errorf("stream %t: a caller who gave up gets %v", stream, err)
		}
	}
}

func TestClient_TellsInvalidRequests(t *testing.T) {
	t.Parallel()
	_, server := service(t, limiterOn(t, memstore.New(memstore.Options{})))
	conn := dial(t, listen(t, server))
	for _, stream := range []bool{false, true} {
		client := clientOf(t, conn, grpclimit.ClientOptions{Stream: stream})
		for _, req := range []sluice.Request{
			{Cost: -1},
			{Route: strings.Repeat("/", 2000)},
			{Subject: sluice.Subject{Exempt: true}},
			{Subject: sluice.Subject{Overrides: []sluice.Override{{Rule: "r"}}}},
		} {
			if d, err := client.Check(t.Context(), req); !errors.Is(err, sluice.ErrInvalidRequest) {
				t.Errorf("stream %t: %.100v: %+v, %v, want ErrInvalidRequest", stream, req, d, err)
			}
		}
	}
}

func TestStreamingClient_IsExactForManyCallers(t *testing.T) {
	t.Parallel()
	const callers, each, limit = 32, 40, 100
	set, _ := sluice.Compile([]sluice.Rule{{Name: "all", Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: limit, Window: 24 * time.Hour}}}})
	_, server := service(t, sluice.New(memstore.New(memstore.Options{}), set, sluice.Options{}))
	client := clientOf(t, dial(t, listen(t, server)), grpclimit.ClientOptions{Stream: true})
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				d, err := client.Check(t.Context(), sluice.Request{})
				if err != nil || d.Mode != sluice.Exact {
					t.Errorf("%+v, %v", d, err)
					return
				}
				if d.Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if allowed.Load() != limit {
		t.Errorf("%d allowed, want %d", allowed.Load(), limit)
	}
}

func TestStreamingClient_MovesOnWhenANodeStops(t *testing.T) {
	t.Parallel()
	const calls = 400
	store := memstore.New(memstore.Options{})
	set, _ := sluice.Compile([]sluice.Rule{{Name: "all", Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: calls, Window: 24 * time.Hour}}}})
	limiter := sluice.New(store, set, sluice.Options{})
	first, firstServer := service(t, limiter)
	_, secondServer := service(t, limiter)
	conn := dialEither(t, listen(t, firstServer), listen(t, secondServer))
	client := clientOf(t, conn, grpclimit.ClientOptions{Stream: true})
	var exact atomic.Int64
	var wg sync.WaitGroup
	half := make(chan struct{})
	for n := range 4 {
		wg.Go(func() {
			for i := range calls / 4 {
				if n == 0 && i == calls/8 {
					close(half)
				}
				d, err := client.Check(t.Context(), sluice.Request{})
				if err != nil || !d.Allowed {
					t.Errorf("%+v, %v, want allowed", d, err)
					return
				}
				if d.Mode == sluice.Exact {
					exact.Add(1)
				}
			}
		})
	}
	<-half
	go firstServer.GracefulStop() // refuses new connections, and waits for the streams
	first.Drain()
	wg.Wait()
	if exact.Load() != calls {
		t.Errorf("%d of %d calls decided by a service", exact.Load(), calls)
	}
	// Each was charged once: the limit is spent to the last unit.
	if d, err := limiter.Peek(t.Context(), sluice.Request{}); err != nil || d.Allowed || d.Results()[0].Remaining != 0 {
		t.Errorf("after %d calls: %+v, %v, want nothing left", calls, d, err)
	}
}

func TestClient_PassesOpenAfterClose(t *testing.T) {
	t.Parallel()
	_, server := service(t, limiterOn(t, memstore.New(memstore.Options{})))
	client := clientOf(t, dial(t, listen(t, server)), grpclimit.ClientOptions{Stream: true})
	if d, err := client.Check(t.Context(), sluice.Request{}); err != nil || d.Mode != sluice.Exact {
		t.Fatalf("%+v, %v", d, err)
	}
	_ = client.Close()
	_ = client.Close()
	if d, err := client.Check(t.Context(), sluice.Request{}); err != nil || d.Mode != sluice.Open {
		t.Errorf("%+v, %v, want open", d, err)
	}
}
