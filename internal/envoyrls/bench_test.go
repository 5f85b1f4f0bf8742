package envoyrls_test

import (
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/envoyrls"
	"github.com/sluicehq/sluice/memstore"
)

// BenchmarkShouldRateLimit is the door alone: counters in memory, no wire.
func BenchmarkShouldRateLimit(b *testing.B) {
	rules, _ := sluice.Compile([]sluice.Rule{byPattern("generic_key=api,remote_address", 1<<40, "descriptor.2")})
	limiter := sluice.New(memstore.New(memstore.Options{}), rules, sluice.Options{})
	server := envoyrls.New(engine.New(limiter, engine.Options{}), limiter.Rules, envoyrls.Options{})
	for name, n := range map[string]int{"1 descriptor": 1, "10 descriptors": 10} {
		req := &pb.RateLimitRequest{Domain: "shop"}
		for range n {
			req.Descriptors = append(req.Descriptors, entries("generic_key=api", "remote_address=192.0.2.1"))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := server.ShouldRateLimit(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestShouldRateLimit_AllocatesItsAnswerAndLittleElse(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations are counted without the race detector")
	}
	rules, _ := sluice.Compile([]sluice.Rule{byPattern("generic_key=api,remote_address", 1<<40, "descriptor.2")})
	limiter := sluice.New(memstore.New(memstore.Options{}), rules, sluice.Options{})
	server := envoyrls.New(engine.New(limiter, engine.Options{}), limiter.Rules, envoyrls.Options{})
	req := &pb.RateLimitRequest{Domain: "shop", Descriptors: []*ratelimit.RateLimitDescriptor{entries("generic_key=api", "remote_address=192.0.2.1")}}
	ask := func() {
		if _, err := server.ShouldRateLimit(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	// The answer is one, and the rest is pooled, which a garbage collection may empty.
	if got := testing.AllocsPerRun(1000, ask); got > 1.5 {
		t.Errorf("%v allocations per call", got)
	}
}
