package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
)

// Event is one line of the tail.
type Event struct {
	Time time.Time `json:"time"`
	// ID is the decision's, which the client was told, too.
	ID string `json:"id"`
	// Outcome is "refused", "blocked", "shadow_refused" or "degraded".
	Outcome   string `json:"outcome"`
	Namespace string `json:"namespace"`
	Rule      string `json:"rule,omitempty"`
	Label     string `json:"label,omitempty"`
	User      string `json:"user,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
	Tier      string `json:"tier,omitempty"`
	// APIKey is a fingerprint: the first 16 hexadecimal digits of the key's SHA-256.
	APIKey string `json:"api_key_sha256,omitempty"`
	// IP is an address or the network it is in.
	IP     string `json:"ip,omitempty"`
	Route  string `json:"route,omitempty"`
	Method string `json:"method,omitempty"`
	Cost   int64  `json:"cost"`
	Mode   string `json:"mode"`
	// RetryAfter is in milliseconds; -1: the request can never pass.
	RetryAfter int64  `json:"retry_after_ms"`
	Reason     string `json:"reason"`
	TraceID    string `json:"trace_id,omitempty"`
}

// Outcomes that only events have.
const (
	OutcomeShadowRefused = "shadow_refused"
	OutcomeDegraded      = "degraded"
)

// newEvent tells of a decision, without the address.
func newEvent(req *sluice.Request, d *sluice.Decision, at time.Time, traceID trace.TraceID) Event {
	e := Event{
		Time: at.UTC(), ID: d.ID.String(), Outcome: outcomeOf(d).String(), Namespace: namespaceOf(req),
		User: req.Subject.User, Tenant: req.Subject.Tenant, Tier: req.Subject.Tier, APIKey: Fingerprint(req.Subject.APIKey),
		Route: req.Route, Method: req.Method, Cost: d.Cost, Mode: d.Mode.String(),
		RetryAfter: milliseconds(d.RetryAfter), Reason: d.Reason(),
	}
	if rule := decisiveRule(d); rule != nil {
		e.Rule, e.Label = rule.Name, rule.Label
	}
	if traceID.IsValid() {
		e.TraceID = traceID.String()
	}
	return e
}

// shadow makes the event tell what a shadow rule would have done.
func (e Event) shadow(r *sluice.Result) Event {
	e.Outcome, e.Rule, e.Label = OutcomeShadowRefused, r.Rule.Name, r.Rule.Label
	e.Mode, e.RetryAfter = r.Mode.String(), milliseconds(r.RetryAfter)
	e.Reason = "shadow rule " + r.Rule.Name + " would have refused: " + r.Limit.String()
	return e
}

// milliseconds rounds up, so that a wait is never shown shorter than it is.
func milliseconds(d time.Duration) int64 {
	if d == sluice.Never {
		return -1
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return int64(ms)
}

// Fingerprint stands for an API key where the key itself must not be seen: the first 16 hexadecimal digits of its SHA-256.
func Fingerprint(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// addressOf shows an address, or the network of it that says little about a person: /24 of IPv4, /48 of IPv6.
func addressOf(ip netip.Addr, full bool) string {
	if !ip.IsValid() {
		return ""
	}
	ip = ip.Unmap().WithZone("")
	if full {
		return ip.String()
	}
	bits := 48
	if ip.Is4() {
		bits = 24
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return "" // cannot be: the bits fit the family
	}
	return network.String()
}

// Who describes a subject for logs: without its API key, and with the network instead of the address.
func Who(s *sluice.Subject) []slog.Attr {
	var attrs []slog.Attr
	for _, a := range [...]struct{ name, value string }{
		{"tenant", s.Tenant},
		{"user", s.User},
		{"api_key_sha256", Fingerprint(s.APIKey)},
		{"ip", addressOf(s.IP, false)},
		{"tier", s.Tier},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	return attrs
}
