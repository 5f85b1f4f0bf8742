package adminhttp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

const (
	// recentRequests are kept for trials. Each trial asks the store twice about every one.
	recentRequests = 1000
	// recentEvery is the least time between two that are kept, so that keeping them costs nothing at any rate of requests.
	recentEvery = 5 * time.Millisecond
)

// Recent keeps a sample of the requests that were decided lately, and passes on every decision. It is safe for concurrent use.
type Recent struct {
	next engine.Observer
	last atomic.Int64 // when one was kept, in ns since 1970

	mu   sync.Mutex
	ring []sluice.Request
	at   int
}

// NewRecent returns one that passes decisions on to next.
func NewRecent(next engine.Observer) *Recent { return &Recent{next: next} }

// Decided implements engine.Observer.
func (r *Recent) Decided(ctx context.Context, req *sluice.Request, d *sluice.Decision, began time.Time, took time.Duration) {
	r.next.Decided(ctx, req, d, began, took)
	last, now := r.last.Load(), began.UnixNano()
	if now-last < int64(recentEvery) || !r.last.CompareAndSwap(last, now) {
		return
	}
	kept := *req
	kept.Attributes = maps.Clone(req.Attributes)
	kept.Subject.Exempt, kept.Subject.Blocked, kept.Subject.Overrides = false, nil, nil // found anew in a trial
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < recentRequests {
		r.ring = append(r.ring, kept)
		return
	}
	r.ring[r.at] = kept
	r.at = (r.at + 1) % recentRequests
}

// Requests returns those that are kept.
func (r *Recent) Requests() []sluice.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ring)
}

// verdicts tells how requests of late would be answered now, by the rules in force and by those of a trial. Counters are as they are now:
// a limit that counts anew because its window changed begins empty, as it would in earnest.
type verdicts struct {
	// Tried is how many requests were; Differ lists those that would be answered otherwise.
	Tried  int             `json:"tried"`
	Differ []verdictChange `json:"differ"`
	// Unknown is why nothing can be told.
	Unknown string `json:"unknown,omitempty"`
}

type verdictChange struct {
	Subject map[string]string `json:"subject"`
	Route   string            `json:"route,omitempty"`
	Method  string            `json:"method,omitempty"`
	Before  bool              `json:"allowed_before"`
	After   bool              `json:"allowed_after"`
	// Rules are those that would refuse, before or after.
	Rules []string `json:"rules,omitempty"`
}

// verdictTime bounds a trial.
const verdictTime = 2 * time.Second

// verdicts tries rules of a namespace on requests of late. Of those in force, the ones that stay do.
func (h *handler) verdicts(ctx context.Context, namespace string, changed []ruledoc.Rule, stays func(name string) bool) *verdicts {
	v := &verdicts{Differ: []verdictChange{}}
	if h.opts.Recent == nil || h.opts.Store == nil {
		v.Unknown = "this node keeps no requests of late"
		return v
	}
	rules := make([]sluice.Rule, 0, len(changed))
	for _, written := range changed {
		if rule, err := written.ToRule(); err == nil {
			rules = append(rules, rule)
		}
	}
	inForce := h.opts.Rules()
	for rule := range inForce.Rules() {
		if rule.Namespace != namespace || stays(rule.Name) {
			rules = append(rules, *rule)
		}
	}
	set, _ := sluice.Compile(rules)
	ctx, cancel := context.WithTimeout(ctx, verdictTime)
	defer cancel()
	before := sluice.New(h.opts.Store, inForce, sluice.Options{Timeout: verdictTime})
	after := sluice.New(h.opts.Store, set, sluice.Options{Timeout: verdictTime})
	for _, req := range h.opts.Recent() {
		if req.Namespace != namespace && (req.Namespace != "" || namespace != sluice.DefaultNamespace) {
			continue
		}
		h.opts.Directory.Fill(namespace, &req.Subject)
		was, err := before.Peek(ctx, req)
		would, err2 := after.Peek(ctx, req)
		if err != nil || err2 != nil || was.StoreErr != nil || would.StoreErr != nil {
			v.Unknown = "the counter store did not answer in time for all requests of late"
			break
		}
		v.Tried++
		if was.Allowed != would.Allowed {
			v.Differ = append(v.Differ, describeChange(&req, &was, &would))
		}
	}
	return v
}

func describeChange(req *sluice.Request, was, would *sluice.Decision) verdictChange {
	c := verdictChange{Subject: map[string]string{}, Route: req.Route, Method: req.Method, Before: was.Allowed, After: would.Allowed}
	for name, value := range map[string]string{"tenant": req.Subject.Tenant, "user": req.Subject.User, "tier": req.Subject.Tier} {
		if value != "" {
			c.Subject[name] = value
		}
	}
	for _, d := range []*sluice.Decision{was, would} {
		for _, result := range d.Results() {
			if !result.Allowed && !slices.Contains(c.Rules, result.Rule.Name) {
				c.Rules = append(c.Rules, result.Rule.Name)
			}
		}
	}
	return c
}
