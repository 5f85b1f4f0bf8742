package envoyrls

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

// addHeaders adds the fields about the decision that a client should hear of. Envoy replaces fields of the same name, so
// fields of several decisions would hide one another.
func (s *Server) addHeaders(response *pb.RateLimitResponse, c *call) {
	var d *sluice.Decision
	for i := range c.decisions {
		if c.tasks[i] == charge && (d == nil || tighter(&c.decisions[i], d)) {
			d = &c.decisions[i]
		}
	}
	if d == nil {
		return
	}
	h := http.Header{}
	httplimit.WriteHeaders(h, d, s.opts.Headers, time.Now())
	for _, name := range slices.Sorted(maps.Keys(h)) {
		response.ResponseHeadersToAdd = append(response.ResponseHeadersToAdd,
			&core.HeaderValue{Key: strings.ToLower(name), Value: h.Get(name)})
	}
}

// tighter tells whether a client should rather hear of a than of b: what was refused and is to wait for longest, then
// what has the smallest share left.
func tighter(a, b *sluice.Decision) bool {
	if a.Allowed != b.Allowed {
		return !a.Allowed
	}
	if !a.Allowed && a.RetryAfter != b.RetryAfter {
		return a.RetryAfter > b.RetryAfter
	}
	r, q := a.Tightest(), b.Tightest()
	return r != nil && (q == nil || share(r) < share(q))
}
