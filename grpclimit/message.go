package grpclimit

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
)

// messageFor writes a request for the wire. What is on record about subjects belongs to the service: a request that brings
// its own is refused, because to leave it out would decide another question.
func messageFor(req *sluice.Request) (*sluicev1.Request, error) {
	s := &req.Subject
	if s.Exempt || s.Blocked != nil || len(s.Overrides) > 0 {
		return nil, fmt.Errorf("%w: exemptions, blocks and overrides are kept by the service, not sent to it", sluice.ErrInvalidRequest)
	}
	m := &sluicev1.Request{
		Namespace:  req.Namespace,
		Subject:    &sluicev1.Subject{Tenant: s.Tenant, User: s.User, ApiKey: s.APIKey, Tier: s.Tier},
		Route:      req.Route,
		Method:     req.Method,
		Attributes: req.Attributes,
		Cost:       req.Cost,
	}
	if s.IP.IsValid() {
		m.Subject.Ip = s.IP.WithZone("").String()
	}
	return m, nil
}

// decisionOf reads a decision from the wire. A service may be newer than its clients: what it says by names unknown here is
// read as the nearest thing that promises less.
func decisionOf(m *sluicev1.Decision) (sluice.Decision, error) {
	d := sluice.Decision{
		Allowed:    m.GetAllowed(),
		Cause:      causeOf(m.GetCause()),
		Mode:       modeOf(m.GetMode()),
		Cost:       m.GetCost(),
		Delay:      m.GetDelay().AsDuration(),
		RetryAfter: retryOf(m.GetAllowed(), m.GetRetryAfter()),
		Revision:   sluice.Revision(m.GetRevision()),
	}
	if err := d.ID.UnmarshalText([]byte(m.GetId())); err != nil {
		return d, err
	}
	results := make([]sluice.Result, len(m.GetResults()))
	rules := make([]sluice.Rule, len(results))
	for i, r := range m.GetResults() {
		rules[i] = sluice.Rule{
			Name:     r.GetRule(),
			Label:    r.GetLabel(),
			Action:   actionOf(r.GetAction()),
			Response: sluice.Response{Status: int(r.GetStatus()), Message: r.GetMessage()},
		}
		results[i] = sluice.Result{
			Rule:       &rules[i],
			Limit:      limitOf(r),
			Allowed:    r.GetAllowed(),
			Mode:       modeOf(r.GetMode()),
			Remaining:  r.GetRemaining(),
			ResetAfter: r.GetResetAfter().AsDuration(),
			RetryAfter: retryOf(r.GetAllowed(), r.GetRetryAfter()),
		}
	}
	return sluice.RemoteDecision(d, m.GetBlockReason(), results)
}

func limitOf(r *sluicev1.Result) sluice.Limit {
	l := sluice.Limit{Limit: r.GetLimit(), Window: r.GetWindow().AsDuration(), Burst: r.GetBurst()}
	if a := r.GetAlgorithm(); a > sluicev1.Algorithm_ALGORITHM_UNSPECIFIED && a <= sluicev1.Algorithm_ALGORITHM_TOKEN_BUCKET {
		l.Algorithm = sluice.Algorithm(a - 1)
	}
	return l
}

// retryOf reads absence: of an allowed request there is nothing to wait for, of a refused one waiting cannot help.
func retryOf(allowed bool, d *durationpb.Duration) time.Duration {
	if !allowed && d == nil {
		return sluice.Never
	}
	return d.AsDuration()
}

func causeOf(c sluicev1.Cause) sluice.Cause {
	if c <= sluicev1.Cause_CAUSE_UNSPECIFIED || c > sluicev1.Cause_CAUSE_BLOCKED_BY_RULE {
		return sluice.ByLimits
	}
	return sluice.Cause(c - 1)
}

func modeOf(m sluicev1.Mode) sluice.Mode {
	if m <= sluicev1.Mode_MODE_UNSPECIFIED || m > sluicev1.Mode_MODE_CLOSED {
		return sluice.Open
	}
	return sluice.Mode(m - 1)
}

func actionOf(a sluicev1.Action) sluice.Action {
	if a <= sluicev1.Action_ACTION_UNSPECIFIED || a > sluicev1.Action_ACTION_BLOCK {
		return sluice.Shadow
	}
	return sluice.Action(a - 1)
}
