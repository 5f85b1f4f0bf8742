package envoyrls_test

import (
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/envoyrls"
	"github.com/sluicehq/sluice/memstore"
)

// FuzzShouldRateLimit sends what the wire may bring: no panic, and as many statuses as descriptors.
func FuzzShouldRateLimit(f *testing.F) {
	callers := sluice.Rule{
		Namespace: "shop", Name: "callers", Key: []sluice.Dimension{"descriptor.entries"}, Limits: perYear(1),
		Match: sluice.Match{Attributes: map[string]string{"descriptor.limit": "caller"}},
	}
	rules, _ := sluice.Compile([]sluice.Rule{
		byPattern("user", 5, "descriptor.1"), byPattern("user=a*,path", 5, "descriptor.1", "descriptor.2"), callers,
		{Namespace: "shop", Name: "plan", Key: []sluice.Dimension{"plan"}, Limits: []sluice.Limit{sluice.Bucket(1, 1e9, 3)}},
	})
	limiter := sluice.New(memstore.New(memstore.Options{}), rules, sluice.Options{})
	server := envoyrls.New(engine.New(limiter, engine.Options{}), limiter.Rules, envoyrls.Options{})
	for _, req := range []*pb.RateLimitRequest{
		{Domain: "shop"},
		{Domain: "shop", HitsAddend: 3, Descriptors: []*ratelimit.RateLimitDescriptor{entries("user=a"), hits(0, entries("user=ab", "path=/"))}},
	} {
		data, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var req pb.RateLimitRequest
		if proto.Unmarshal(data, &req) != nil {
			return
		}
		response, err := server.ShouldRateLimit(t.Context(), &req)
		if err == nil && len(response.GetStatuses()) != len(req.GetDescriptors()) {
			t.Fatalf("%v: %v", &req, response)
		}
		if err == nil {
			if _, err := proto.Marshal(response); err != nil {
				t.Fatalf("%v: %v", &req, err)
			}
		}
	})
}
