// Package registry is what operators keep in the database: rules, tiers, subjects, overrides, API keys, blocks and exemptions, in namespaces, and
// who changed what, when and why. It has the types that the database driver, the admin door, the feed and the directory share; how they
// are stored is the driver's.
package registry

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Errors that callers branch on.
var (
	// ErrNotFound means that there is no such entry, or that the actor may not see its namespace.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the entry is another than the one the edit was made for.
	ErrConflict = errors.New("changed in the meantime")
	// ErrExists means that an entry of that name exists already.
	ErrExists = errors.New("exists already")
	// ErrForbidden means that the database's own wall refused: the actor has no grant for what it tried.
	ErrForbidden = errors.New("no grant for this")
	// ErrInvalid means that the database cannot keep such a value: too long, a character it does not take, a faulty cursor.
	ErrInvalid = errors.New("not acceptable")
	// ErrUnavailable means that the database does not answer. Nothing is known of what was done.
	ErrUnavailable = errors.New("database unavailable")
)

// Kind is what an entry or a change is about.
type Kind string

// The kinds.
const (
	KindNamespace Kind = "namespace"
	KindRule      Kind = "rule"
	KindTier      Kind = "tier"
	KindSubject   Kind = "subject"
	KindOverride  Kind = "override"
	KindKey       Kind = "key"
	KindBlock     Kind = "block"
	KindExemption Kind = "exemption"
	KindToken     Kind = "token"
)

// Edit is the circumstances of a change. Actor is required.
type Edit struct {
	// Actor is who makes the change: the name of a token or a user.
	Actor string
	// Reason is why, for those who read the history.
	Reason string
	// RequestID names the call, to find it in logs.
	RequestID string
	// IfVersion is the version the edit was made for; 0: whichever there is. For a new entry it is -1: there must be none.
	IfVersion int64
	// IfVersions is IfVersion for a change of several rules at once: the versions, by name, of those there were when it was made up; nil:
	// whichever there are. It concerns the rules that the change names, with prune all of the namespace: each must have its version, and
	// one without must not be there. Else nothing is changed, and ErrConflict says which are others.
	IfVersions map[string]int64
	// DryRun checks and tells, and changes nothing.
	DryRun bool
}

// Entry is something kept under a name, with the version that If-Match compares.
type Entry[T any] struct {
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`
	Body      T         `json:"body"`
}

// Rule is an entry whose body is the written form.
type Rule = Entry[ruledoc.Rule]

// Tier is a plan: who is on it is said by subjects and keys.
type Tier struct {
	Name        string `json:"name"`
	DisplayName string `json:"display_name,omitempty"`
	// Price is for people, such as "29 EUR a month".
	Price string `json:"price,omitempty"`
	// Default makes it the tier of everyone on none.
	Default bool `json:"default,omitempty"`
	// Groups are its limits by groups of routes. Each becomes a rule of its own.
	Groups []RouteGroup `json:"groups,omitempty"`
}

// RouteGroup is a part of a tier: limits of some routes, or none at all.
type RouteGroup struct {
	Name string `json:"name"`
	// Routes are patterns as in rules; none: all routes.
	Routes    []string        `json:"routes,omitempty"`
	Unlimited bool            `json:"unlimited,omitempty"`
	Limits    []ruledoc.Limit `json:"limits,omitempty"`
}

// Who names a subject: exactly one kind of name.
type Who struct {
	// Dimension is "user", "tenant", "api_key" or, for blocks and exemptions, "ip" with an address or network as the id.
	Dimension string `json:"dimension"`
	ID        string `json:"id"`
}

// Subject is a customer on record.
type Subject struct {
	Who
	Tier string `json:"tier,omitempty"`
	// TierSince is when the subject came to its tier.
	TierSince time.Time `json:"tier_since,omitzero"`
}

// Override gives one subject other limits in one rule.
type Override struct {
	ID         string          `json:"id"` // given by the database
	Namespace  string          `json:"namespace"`
	Who        Who             `json:"subject"`
	Rule       string          `json:"rule"`
	Limits     []ruledoc.Limit `json:"limits"`
	ValidFrom  time.Time       `json:"valid_from,omitzero"`
	ValidUntil time.Time       `json:"valid_until,omitzero"`
	Reason     string          `json:"reason"`
	Author     string          `json:"author"`
}

// Block refuses a subject everywhere; Exemption passes it everywhere.
type Block struct {
	Who    Who       `json:"subject"`
	Reason string    `json:"reason"`
	Author string    `json:"author"`
	Until  time.Time `json:"until,omitzero"`
}

// Exemption passes every rule.
type Exemption struct {
	Who    Who    `json:"subject"`
	Reason string `json:"reason"`
	Author string `json:"author"`
}

// Key is an API key on record, without its secret, which nobody keeps.
type Key struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Owner      string    `json:"owner"` // the user it acts for
	Tenant     string    `json:"tenant,omitempty"`
	Tier       string    `json:"tier,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	RevokedBy  string    `json:"revoked_by,omitempty"`
	Uses       int64     `json:"uses"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	// OldUntil is how long the secret before the last rotation is valid; zero: there is none.
	OldUntil time.Time `json:"old_until,omitzero"`
	// Hashes are HMAC-SHA-256 of the secrets that are valid: one, or two during a rotation, the newer first. They never leave the server.
	Hashes [][]byte `json:"-"`
}

// Record is what the directory wants to know of one subject: everything in one look.
type Record struct {
	// Found tells whether anything is on record.
	Found     bool
	Tier      string
	Exempt    bool
	Blocked   *sluice.BlockedSubject
	Overrides []Override
	// Key is set where the subject is an API key.
	Key *Key
}

// Change is one entry of the history. It is written in the transaction of the change itself and never altered.
type Change struct {
	Revision  sluice.Revision `json:"revision"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor"`
	Reason    string          `json:"reason,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Kind      Kind            `json:"kind"`
	Name      string          `json:"name"`
	// Before and After are the bodies; null where there was none, or is none any more.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Snapshot is everything that nodes keep in memory: the rules with those of tiers, and the networks of blocks and exemptions. What is on
// record about single subjects is asked for one by one.
type Snapshot struct {
	Revision    sluice.Revision   `json:"revision"`
	Rules       []ruledoc.Rule    `json:"rules"`
	Tiers       []Tier            `json:"tiers"`
	Blocks      []Block           `json:"blocks"`     // of networks
	Exemptions  []Exemption       `json:"exemptions"` // of networks
	Quarantined []json.RawMessage `json:"-"`          // rows that could not be read, left out alone
}

// Page asks for a part of a list.
type Page struct {
	// After is the cursor of the page before; empty: the first.
	After string
	// Limit is how many, from 1 to 1,000. Default 100.
	Limit int
}

// Listed is a part of a list.
type Listed[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the next page; empty: this is the last.
	Next string `json:"next,omitempty"`
}

// Token is what an operator's program shows. Its secret is shown once.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Grants    []Grant   `json:"grants"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	Hash      []byte    `json:"-"`
}

// Grant is a role in a namespace; "*" is every namespace, and those to come.
type Grant struct {
	Namespace string `json:"namespace"`
	Role      Role   `json:"role"`
}

// Role is what somebody may do. Each may what those before it may.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // reads
	Operator Role = "operator" // also resets, refunds, blocks, exempts, overrides
	Admin    Role = "admin"    // also rules, tiers, keys, tokens
)

// Node is a running node, as its heartbeat tells.
type Node struct {
	Name     string          `json:"name"`
	Revision sluice.Revision `json:"revision"`
	Version  string          `json:"version"`
	SeenAt   time.Time       `json:"seen_at"`
}

// Actor is who asks, and for which namespaces.
type Actor struct {
	Name   string
	Grants []Grant
}

// Notice tells nodes that something changed. It is a hint: whoever misses one finds the change by its revision.
type Notice struct {
	Revision sluice.Revision `json:"revision"`
	Kind     Kind            `json:"kind"`
	// Who is set where the change concerns one subject.
	Who Who `json:"who,omitzero"`
}

// Use is how often an API key was used since it was last told, and when last.
type Use struct {
	Count int64
	Last  time.Time
}

// Applied tells what a change of several rules came to.
type Applied struct {
	Revision sluice.Revision `json:"revision"`
	Created  []string        `json:"created"`
	Updated  []string        `json:"updated"`
	Deleted  []string        `json:"deleted"`
	Same     []string        `json:"same"`
}

// Namespace separates rule sets.
type Namespace struct {
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
}

// OverrideFilter chooses overrides; empty fields fit all.
type OverrideFilter struct {
	Namespace string
	Who       Who
	Rule      string
}

// KeyFilter chooses API keys; empty fields fit all.
type KeyFilter struct {
	Owner  string
	Tenant string
}

// HistoryFilter chooses changes; empty fields fit all.
type HistoryFilter struct {
	Namespace string
	Kind      Kind
	Name      string
	Actor     string
}
