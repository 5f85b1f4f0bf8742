package sluice

import (
	"net/netip"
	"time"
)

// Request is one question: may this happen now?
type Request struct {
	// Namespace chooses the rule set. Default "default".
	Namespace string
	Subject   Subject
	// Route is the path asked for. Rules count by the pattern that matched it, never by the raw path.
	Route  string
	Method string
	// Attributes are further named values that rules may match on or count by.
	Attributes map[string]string
	// Cost is the number of units the request takes. Default: the matched rule's cost.
	Cost int64
	// Refundable asks for a decision that Refund can give back. It costs the store a little more.
	Refundable bool
}

// Subject is who is calling. Empty fields are unknown.
type Subject struct {
	Tenant string
	User   string
	APIKey string
	// IP is the client's address. IPv6 is counted by its /64, IPv4 by the whole address.
	IP netip.Addr
	// Tier is the subject's plan.
	Tier string
	// Exempt passes every rule.
	Exempt bool
	// Blocked refuses every request, with its reason; nil: not blocked.
	Blocked *BlockedSubject
	// Overrides replace the limits of single rules for this subject.
	Overrides []Override
}

// BlockedSubject tells why and until when a subject is refused.
type BlockedSubject struct {
	Reason string
	// Until is when the block ends; zero: until it is lifted.
	Until time.Time
}

// Override replaces the limits of one rule for one subject, as a whole. What was counted so far is kept where a limit has the
// algorithm and window of one of the rule's own.
type Override struct {
	Rule   string
	Limits []Limit
}
