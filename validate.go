package sluice

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of a rule.
const (
	MaxNameLength    = 128 // characters of a name, namespace or layer
	MaxLabelLength   = 64
	MaxKeyDimensions = 8
	// MaxThrottleDelay bounds MaxDelay: a held request keeps a connection and memory on every hop.
	MaxThrottleDelay = time.Minute
)

// Validate reports every fault of every rule at once, and warns about rules that work but probably not as meant, in the
// order of the rules. Compile leaves out exactly the rules with a report that is not a Warning. Rules are not modified.
func Validate(rules []Rule) []*RuleError {
	_, reports := Compile(rules)
	return reports
}

// check looks at one normalised rule by itself. labelledByLayer tells that its label is the layer's name by default.
func (r *ruleReport) check(labelledByLayer bool) {
	r.checkNames(labelledByLayer)
	r.checkKey()
	r.checkMatch()
	r.checkAction()
	r.checkLimits()
	r.checkResponse()
}

func (r *ruleReport) checkNames(labelledByLayer bool) {
	if r.rule.Name == "" {
		r.fault("name", "a rule needs a name")
	}
	for _, f := range [...]struct{ field, value string }{
		{"namespace", r.rule.Namespace}, {"name", r.rule.Name}, {"layer", r.rule.Layer},
	} {
		if n := utf8.RuneCountInString(f.value); n > MaxNameLength {
			r.fault(f.field, "%d characters long: the most is %d", n, MaxNameLength)
		}
		if !printable(f.value) {
			r.fault(f.field, "%q contains a control character or is not UTF-8", f.value)
		}
	}
	// The label stands in a structured-field string (RFC 9651), and this is what such a string can hold unescaped.
	label, hint := r.rule.Label, ""
	if labelledByLayer {
		hint = " (it is the layer's name: set a label)"
	}
	if len(label) > MaxLabelLength {
		r.fault("label", "%d characters long: the most is %d%s", len(label), MaxLabelLength, hint)
	}
	if strings.ContainsFunc(label, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		r.fault("label", "%q goes into a header: only printable ASCII without quotes and backslashes%s", label, hint)
	}
}

func (r *ruleReport) checkKey() {
	key := r.rule.Key
	if len(key) > MaxKeyDimensions {
		r.fault("key", "counts by %d dimensions: the most is %d", len(key), MaxKeyDimensions)
	}
	for i, d := range key {
		field := fmt.Sprintf("key[%d]", i)
		switch {
		case d == "":
			r.fault(field, "dimension is empty")
		case !printable(string(d)) || strings.Contains(string(d), "+") || d == globalLayer:
			// Layers are named after the dimensions, so two keys must not read the same.
			r.fault(field, "dimension %q: control characters, \"+\" and the name %q are not allowed", d, globalLayer)
		case slices.Contains(key[:i], d):
			r.fault(field, "dimension %q is there twice", d)
		case d == Route && len(r.rule.Match.Routes) == 0:
			r.fault(field, "counting by route needs match.routes: what is counted is the pattern that matched, never a raw path")
		}
	}
}

func (r *ruleReport) checkMatch() {
	m := &r.rule.Match
	for _, list := range [...]struct {
		name   string
		values []string
	}{{"tenants", m.Tenants}, {"users", m.Users}, {"api_keys", m.APIKeys}, {"tiers", m.Tiers}} {
		for i, value := range list.values {
			if value == "" {
				r.fault(fmt.Sprintf("match.%s[%d]", list.name, i), "empty: no request has it, since empty means unknown")
			}
		}
	}
	for i, pattern := range m.Routes {
		if err := checkRoute(pattern); err != nil {
			r.fault(fmt.Sprintf("match.routes[%d]", i), "%w", err)
		}
	}
	for i, method := range m.Methods {
		if method == "" || strings.ContainsFunc(method, func(c rune) bool { return !isTokenRune(c) }) {
			r.fault(fmt.Sprintf("match.methods[%d]", i), "%q is not a method", method)
		}
	}
	for i, p := range m.CIDRs {
		if !p.IsValid() {
			r.fault(fmt.Sprintf("match.cidrs[%d]", i), "not a valid address range")
		}
	}
	for name, value := range m.Attributes {
		if name == "" {
			r.fault("match.attributes", "an attribute's name is empty")
		} else if value == "" {
			r.fault("match.attributes."+name, "empty: no request has it, since an empty attribute counts as absent")
		}
	}
}

func (r *ruleReport) checkAction() {
	action, delay := r.rule.Action, r.rule.MaxDelay
	switch action {
	case Reject, Throttle, Shadow:
		if len(r.rule.Limits) == 0 {
			r.fault("limits", "action %q needs at least one limit", action)
		}
	case Allow, Block:
		if len(r.rule.Limits) > 0 {
			r.fault("limits", "action %q has none", action)
		}
	default:
		r.fault("action", "unknown action %d", action)
	}
	switch {
	case action != Throttle && delay != 0:
		r.fault("max_delay", "only action \"throttle\" has one")
	case action == Throttle && (delay <= 0 || delay > MaxThrottleDelay):
		r.fault("max_delay", "max_delay is %s: it must be above 0 and at most %s", delay, MaxThrottleDelay)
	}
	if r.rule.OnStoreError > FallClosed {
		r.fault("on_store_error", "unknown policy %d", r.rule.OnStoreError)
	}
	if r.rule.Cost < 0 {
		r.fault("cost", "cost is %d: it must not be negative", r.rule.Cost)
	}
}

func (r *ruleReport) checkLimits() {
	limits, cost := r.rule.Limits, r.rule.Cost
	for i, l := range limits {
		field := fmt.Sprintf("limits[%d]", i)
		err := l.Validate()
		for _, fault := range eachError(err) {
			r.fault(field+limitField(fault), "%w", fault)
		}
		if j := slices.IndexFunc(limits[:i], l.sharesCounter); j >= 0 {
			r.fault(field, "limits[%d] is a %s over %s, too: they would share a counter", j, l.Algorithm, l.Window)
		}
		if r.rule.Action == Throttle && l.Algorithm != TokenBucket {
			r.fault(field+".algorithm", "action \"throttle\" needs a token_bucket: a %s cannot tell when a request may go ahead", l.Algorithm)
		}
		if l.Algorithm == SlidingLog && cost > MaxLogCost {
			r.fault("cost", "cost is %d: limits[%d] is a sliding_log, which keeps every unit and takes at most %d a request", cost, i, MaxLogCost)
		}
		if err == nil && cost >= 0 {
			r.warnLimit(field, l)
		}
	}
}

// warnLimit tells when a valid limit does not do what its numbers say.
func (r *ruleReport) warnLimit(field string, l Limit) {
	cost := r.rule.Cost
	if cost > l.Capacity() {
		r.warn(field, "can never pass: a request costs %d, and the limit admits %d at most", cost, l.Capacity())
		return
	}
	if loss := l.tickLoss(cost); loss > maxTickLoss {
		r.warn(field, "admits up to %.1f %% less than its rate: the store's clock ticks in microseconds, and between two ticks the bucket overflows; "+
			"raise burst to at least %d", 100*loss, cost+(l.Limit*int64(time.Microsecond)+int64(l.Window)-1)/int64(l.Window))
	}
}

// maxTickLoss is how far below its rate a token bucket may stay: 0.1 %, which is what sluice promises for any rate.
const maxTickLoss = 0.001

// tickLoss is the share of its rate that a token bucket may lose to the store's clock. What refills between two ticks is
// lost as far as it finds no room: up to a tick for each request, less the room beside one request.
func (l Limit) tickLoss(cost int64) float64 {
	if l.Algorithm != TokenBucket || cost == 0 {
		return 0
	}
	perMicrosecond := float64(l.Limit) / float64(l.Window/time.Microsecond)
	spare := float64(l.Capacity()-cost) / perMicrosecond
	if spare >= 1 {
		return 0
	}
	interval := float64(cost) / perMicrosecond
	return (1 - spare) / (interval + 1 - spare)
}

func (l Limit) sharesCounter(m Limit) bool { return l.Algorithm == m.Algorithm && l.Window == m.Window }

// eachError takes apart what errors.Join put together.
func eachError(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// limitField returns ".window" for a fault of Limit.Validate that starts "window is …", "" where it names no field.
// TestValidate_NamesTheFieldOfEveryFault fails when the texts change.
func limitField(err error) string {
	name, _, ok := strings.Cut(err.Error(), " is ")
	switch {
	case ok && slices.Contains([]string{"limit", "window", "burst"}, name):
		return "." + name
	case strings.HasPrefix(err.Error(), "unknown algorithm"):
		return ".algorithm"
	}
	return ""
}

func (r *ruleReport) checkResponse() {
	if s := r.rule.Response.Status; s < 400 || s > 599 {
		r.fault("response.status", "status is %d: it must be between 400 and 599", s)
	}
	if d := r.rule.Response.RetryAfter; d < 0 {
		r.fault("response.retry_after", "retry_after is %s: it must not be negative", d)
	}
}

// printable tells whether a text is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// isTokenRune tells whether RFC 9110 lets a method contain the character.
func isTokenRune(c rune) bool {
	return isNameRune(c) || c < utf8.RuneSelf && strings.ContainsRune("!#$%&'*+^`|~", c)
}
