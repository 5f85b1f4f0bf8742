package main

import (
	"fmt"
	"strings"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// differences tells in what two answers differ: codes, limits and what remains of them, and the time to the reset.
func differences(p pair) []string {
	var all []string
	differ := func(what string, theirs, ours any) {
		all = append(all, fmt.Sprintf("%s: the reference says %v, ours %v", what, theirs, ours))
	}
	if a, b := p.theirs.GetOverallCode(), p.ours.GetOverallCode(); a != b {
		differ("overall code", a, b)
	}
	if a, b := len(p.theirs.GetStatuses()), len(p.ours.GetStatuses()); a != b {
		differ("number of statuses", a, b)
		return all
	}
	for i, theirs := range p.theirs.GetStatuses() {
		ours := p.ours.GetStatuses()[i]
		if a, b := brief(theirs), brief(ours); a != b {
			differ(fmt.Sprintf("status %d", i+1), a, b)
		}
		if name := theirs.GetCurrentLimit().GetName(); name != "" && name != ours.GetCurrentLimit().GetName() {
			differ(fmt.Sprintf("name in status %d", i+1), name, ours.GetCurrentLimit().GetName())
		}
		// A limit of 0 has no window in our rules, which block; it names the window's whole length.
		if theirs.GetCurrentLimit().GetRequestsPerUnit() > 0 {
			if a, b := theirs.GetDurationUntilReset().GetSeconds(), ours.GetDurationUntilReset().GetSeconds(); a != b {
				differ(fmt.Sprintf("reset in status %d", i+1), a, b)
			}
		}
	}
	return all
}

// brief is a status as far as both sides must agree on it.
func brief(s *pb.RateLimitResponse_DescriptorStatus) string {
	var b strings.Builder
	b.WriteString(s.GetCode().String())
	if l := s.GetCurrentLimit(); l != nil {
		fmt.Fprintf(&b, " by %d per %s", l.GetRequestsPerUnit(), l.GetUnit())
		if m := l.GetUnitMultiplier(); m != nil {
			fmt.Fprintf(&b, " × %d", m.GetValue())
		}
	}
	fmt.Fprintf(&b, ", %d left", s.GetLimitRemaining())
	return b.String()
}
