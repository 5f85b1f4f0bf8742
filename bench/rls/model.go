package main

import (
	"fmt"
	"strings"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// model is what both sides' counters must be when the one documented difference is the only one: the reference charges
// calls that it refuses, ours does not.
type model struct {
	theirs, ours map[counter]int64
}

// counter is one window of one descriptor.
type counter struct {
	descriptor string
	unit       pb.RateLimitResponse_RateLimit_Unit
	window     int64
}

func newModel() *model { return &model{map[counter]int64{}, map[counter]int64{}} }

// judge counts a call and tells which answers are not what the model says, and how many differ as it explains.
func (m *model) judge(req *pb.RateLimitRequest, p pair) (wrong []string, explained int) {
	theirOver, ourOver := false, false
	for i, theirs := range p.theirs.GetStatuses() {
		ours := p.ours.GetStatuses()[i]
		limit := theirs.GetCurrentLimit()
		if limit == nil { // nothing is counted, so nothing may differ
			if brief(theirs) != brief(ours) {
				wrong = append(wrong, fmt.Sprintf("status %d: the reference says %s, ours %s", i+1, brief(theirs), brief(ours)))
			}
			continue
		}
		d := req.GetDescriptors()[i]
		at := counterOf(req.GetDomain(), d, limit, p.at)
		wantTheirs, wantOurs := m.count(at, int64(limit.GetRequestsPerUnit()), addend(req, d))
		shadow := strings.HasPrefix(limit.GetName(), shadowed)
		for _, side := range [...]struct {
			who  string
			got  *pb.RateLimitResponse_DescriptorStatus
			want outcome
			over *bool
		}{{"the reference", theirs, wantTheirs, &theirOver}, {"ours", ours, wantOurs, &ourOver}} {
			want := outcomeStatus(side.want, limit, shadow)
			*side.over = *side.over || want.GetCode() == pb.RateLimitResponse_OVER_LIMIT
			if brief(side.got) != brief(want) {
				wrong = append(wrong, fmt.Sprintf("status %d: %s says %s, its model %s", i+1, side.who, brief(side.got), brief(want)))
			}
		}
		if brief(theirs) != brief(ours) {
			explained++
		}
	}
	if overCode(theirOver) != p.theirs.GetOverallCode() || overCode(ourOver) != p.ours.GetOverallCode() {
		wrong = append(wrong, fmt.Sprintf("overall code: the reference says %s, ours %s", p.theirs.GetOverallCode(), p.ours.GetOverallCode()))
	}
	return wrong, explained
}

// outcome is what one counter says about one charge.
type outcome struct {
	over bool
	left int64
}

// count charges both models.
func (m *model) count(at counter, limit, cost int64) (theirs, ours outcome) {
	m.theirs[at] += cost
	theirs = outcome{m.theirs[at] > limit, max(limit-m.theirs[at], 0)}
	if ours.over = m.ours[at]+cost > limit; !ours.over {
		m.ours[at] += cost
	}
	ours.left = limit - m.ours[at]
	return theirs, ours
}

func outcomeStatus(o outcome, limit *pb.RateLimitResponse_RateLimit, shadow bool) *pb.RateLimitResponse_DescriptorStatus {
	return &pb.RateLimitResponse_DescriptorStatus{
		Code: overCode(o.over && !shadow), CurrentLimit: limit, LimitRemaining: uint32(o.left),
	}
}

func overCode(over bool) pb.RateLimitResponse_Code {
	if over {
		return pb.RateLimitResponse_OVER_LIMIT
	}
	return pb.RateLimitResponse_OK
}

func addend(req *pb.RateLimitRequest, d *ratelimit.RateLimitDescriptor) int64 {
	if own := d.GetHitsAddend(); own != nil {
		return int64(own.GetValue())
	}
	return int64(max(req.GetHitsAddend(), 1))
}

func counterOf(domain string, d *ratelimit.RateLimitDescriptor, l *pb.RateLimitResponse_RateLimit, at time.Time) counter {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", domain)
	for _, e := range d.GetEntries() {
		fmt.Fprintf(&b, " %q=%q", e.GetKey(), e.GetValue())
	}
	return counter{b.String(), l.GetUnit(), at.Unix() / unitSeconds[l.GetUnit()]}
}

var unitSeconds = map[pb.RateLimitResponse_RateLimit_Unit]int64{
	pb.RateLimitResponse_RateLimit_SECOND: 1,
	pb.RateLimitResponse_RateLimit_MINUTE: 60,
	pb.RateLimitResponse_RateLimit_HOUR:   3600,
	pb.RateLimitResponse_RateLimit_DAY:    24 * 3600,
	pb.RateLimitResponse_RateLimit_WEEK:   7 * 24 * 3600,
	pb.RateLimitResponse_RateLimit_MONTH:  30 * 24 * 3600,
	pb.RateLimitResponse_RateLimit_YEAR:   365 * 24 * 3600,
}
