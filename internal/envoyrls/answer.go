package envoyrls

import (
	"math"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
)

// told is what Envoy is told about one descriptor. The parts lie together, so that they are one allocation.
type told struct {
	status pb.RateLimitResponse_DescriptorStatus
	limit  pb.RateLimitResponse_RateLimit
	reset  durationpb.Duration
}

// one is the answer to a call with one descriptor, which most calls have.
type one struct {
	response pb.RateLimitResponse
	statuses [1]*pb.RateLimitResponse_DescriptorStatus
	told     [1]told
}

// answer makes the response of the call's decisions.
func (s *Server) answer(c *call, d *domain, rules *sluice.RuleSet, req *pb.RateLimitRequest) *pb.RateLimitResponse {
	var response *pb.RateLimitResponse
	var all []told
	if n := len(c.reqs); n == 1 {
		o := new(one)
		response, all = &o.response, o.told[:]
		response.Statuses = o.statuses[:]
	} else {
		all = make([]told, n)
		response = &pb.RateLimitResponse{Statuses: make([]*pb.RateLimitResponse_DescriptorStatus, n)}
	}
	response.OverallCode = pb.RateLimitResponse_OK
	mode := sluice.Exact
	for i := range all {
		t := &all[i]
		response.Statuses[i] = &t.status
		if c.tasks[i] == refuse {
			window, _ := windowOf(req.GetDescriptors()[i].GetLimit()) // checked before
			t.refuse(window, "")
		} else {
			c.tell(t, i, d, rules)
		}
		if t.status.Code == pb.RateLimitResponse_OVER_LIMIT {
			response.OverallCode = pb.RateLimitResponse_OVER_LIMIT
		}
		mode = max(mode, c.decisions[i].Mode)
	}
	if mode > sluice.Leased {
		// Envoy shows it under the filter's name to access logs and later filters.
		response.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{
			"sluice_mode": structpb.NewStringValue(mode.String()),
		}}
	}
	if s.opts.Headers != 0 {
		s.addHeaders(response, c)
	}
	return response
}

// tell fills in what is told about a descriptor.
func (c *call) tell(t *told, i int, d *domain, rules *sluice.RuleSet) {
	decision := &c.decisions[i]
	t.status.Code = pb.RateLimitResponse_OVER_LIMIT
	if decision.Allowed || c.tasks[i] == refund {
		t.status.Code = pb.RateLimitResponse_OK
	}
	switch decision.Cause {
	case sluice.ByLimits:
		if r := tightest(decision); r != nil {
			t.status.CurrentLimit = &t.limit
			t.status.LimitRemaining = clamp(r.Remaining)
			describeLimit(&t.limit, r.Limit, r.Rule.Label)
			t.resetIn(wait(r))
		}
	case sluice.BlockedByRule:
		rule := decision.Results()[0].Rule
		t.refuse(rule.Response.RetryAfter, rule.Label)
		t.status.Code = pb.RateLimitResponse_OVER_LIMIT
	case sluice.BlockedByList:
		t.resetIn(decision.RetryAfter)
	case sluice.NoRule:
		if d != nil && d.unlimited && c.isUnlimited(i, rules) {
			t.status.LimitRemaining = math.MaxUint32
		}
	case sluice.Disabled, sluice.Exempted:
	}
}

// isUnlimited tells whether what lets a descriptor pass is a rule with the label Unlimited.
func (c *call) isUnlimited(i int, rules *sluice.RuleSet) bool {
	c.matched = rules.Match(c.matched[:0], &c.reqs[i])
	for _, m := range c.matched {
		if m.Rule.Action == sluice.Allow && m.Rule.Label == pattern.Unlimited {
			return true
		}
	}
	return false
}

// refuse tells of a limit of zero.
func (t *told) refuse(window time.Duration, label string) {
	t.status.Code = pb.RateLimitResponse_OVER_LIMIT
	t.status.CurrentLimit = &t.limit
	t.limit.Name = label
	setUnit(&t.limit, window)
	t.resetIn(window)
}

// resetIn tells a time in whole seconds, rounded up, because Envoy cuts the rest off and would send clients back too early.
func (t *told) resetIn(d time.Duration) {
	if d <= 0 || d == sluice.Never {
		return
	}
	t.reset.Seconds = int64((d-1)/time.Second) + 1
	t.status.DurationUntilReset = &t.reset
}

// tightest returns the result that Envoy is told of: the tightest enforced one, and where none is enforced, the shadow
// one with the smallest share left, since Envoy's operators read these fields, too.
func tightest(d *sluice.Decision) *sluice.Result {
	if r := d.Tightest(); r != nil {
		return r
	}
	var least *sluice.Result
	results := d.Results()
	for i := range results {
		if r := &results[i]; r.Limit.Limit > 0 && (least == nil || share(r) < share(least)) {
			least = r
		}
	}
	return least
}

func share(r *sluice.Result) float64 { return float64(r.Remaining) / float64(r.Limit.Capacity()) }

// wait is when Envoy's client can expect more: the same request to pass where it was refused, all units otherwise.
func wait(r *sluice.Result) time.Duration {
	if !r.Allowed && r.RetryAfter != sluice.Never && r.RetryAfter > 0 {
		return r.RetryAfter
	}
	return r.ResetAfter
}
