package checkgrpc_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/memstore"
)

// BenchmarkService measures both ends together, the client with generated messages: for one form against another, not for
// what a server can do. The limit never refuses.
func BenchmarkService(b *testing.B) {
	rules := []sluice.Rule{{Name: "per-user", Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{sluice.PerDay(1_000_000)}}}
	for _, store := range []string{"memory", "redis"} {
		open := func(b *testing.B) sluicev1.LimiterServiceClient {
			b.Helper()
			var s sluice.Store = memstore.New(memstore.Options{})
			if store == "redis" {
				s = redisStore(b)
			}
			conn, _, _ := serve(b, engineOf(b, s, rules, engine.Options{}))
			return sluicev1.NewLimiterServiceClient(conn)
		}
		b.Run("unary/"+store, func(b *testing.B) { benchUnary(b, open(b)) })
		b.Run("stream/"+store, func(b *testing.B) { benchStream(b, open(b), 1) })
		b.Run("stream of 10/"+store, func(b *testing.B) { benchStream(b, open(b), 10) })
	}
}

func benchUnary(b *testing.B, client sluicev1.LimiterServiceClient) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		in := &sluicev1.CheckRequest{Request: asUser("u_42")}
		for pb.Next() {
			if r, err := client.Check(b.Context(), in); err != nil || !r.GetDecision().GetAllowed() {
				b.Errorf("%v, %v", r, err)
				return
			}
		}
	})
}

// benchStream keeps 64 calls under way, each with so many questions; an operation is one question.
func benchStream(b *testing.B, client sluicev1.LimiterServiceClient, each int) {
	b.Helper()
	b.ReportAllocs()
	stream, err := client.CheckStream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	calls, window := (b.N+each-1)/each, make(chan struct{}, 64)
	go func() {
		m := &sluicev1.CheckStreamRequest{}
		for i := range each {
			m.Requests = append(m.Requests, asUser(fmt.Sprint(i)))
		}
		for id := range calls {
			window <- struct{}{}
			m.Id = uint64(id)
			if err := stream.Send(m); err != nil {
				return // Recv tells why
			}
		}
		_ = stream.CloseSend()
	}()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			b.Fatal(err)
		}
		for range r.GetReplies() {
			<-window
		}
	}
}
