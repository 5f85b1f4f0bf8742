// Package ruledoc is the written form of rules and of what is on record about subjects: the same fields in TOML, YAML and
// JSON, read strictly, with file and line of every fault.
//
// A file is read in three steps: Decode makes entries of it and leaves out those that cannot be understood, each alone;
// Merge puts files together; Merged.Compile makes the rule set. Every step reports all it finds.
package ruledoc

import "time"

// Document is what a rules file holds. Several documents are merged by Merge.
type Document struct {
	Rules      []Rule      `toml:"rule,omitempty" yaml:"rules,omitempty" json:"rules,omitempty"`
	Tiers      []Tier      `toml:"tier,omitempty" yaml:"tiers,omitempty" json:"tiers,omitempty"`
	Overrides  []Override  `toml:"override,omitempty" yaml:"overrides,omitempty" json:"overrides,omitempty"`
	Exemptions []Exemption `toml:"exemption,omitempty" yaml:"exemptions,omitempty" json:"exemptions,omitempty"`
	Blocks     []Block     `toml:"block,omitempty" yaml:"blocks,omitempty" json:"blocks,omitempty"`
}

// Rule is the written form of a sluice.Rule; the fields mean the same.
type Rule struct {
	Namespace    string   `toml:"namespace,omitempty" yaml:"namespace,omitempty" json:"namespace,omitempty"`
	Name         string   `toml:"name" yaml:"name" json:"name"`
	Priority     int      `toml:"priority,omitempty" yaml:"priority,omitempty" json:"priority,omitempty"`
	Match        Match    `toml:"match,omitempty,inline" yaml:"match,omitempty" json:"match,omitzero"`
	Key          []string `toml:"key,omitempty" yaml:"key,omitempty,flow" json:"key,omitempty"`
	Layer        string   `toml:"layer,omitempty" yaml:"layer,omitempty" json:"layer,omitempty"`
	Limits       []Limit  `toml:"limits,omitempty,inline" yaml:"limits,omitempty,flow" json:"limits,omitempty"`
	Action       string   `toml:"action,omitempty" yaml:"action,omitempty" json:"action,omitempty"`
	MaxDelay     Duration `toml:"max_delay,omitempty" yaml:"max_delay,omitempty" json:"max_delay,omitzero"`
	OnStoreError string   `toml:"on_store_error,omitempty" yaml:"on_store_error,omitempty" json:"on_store_error,omitempty"`
	Label        string   `toml:"label,omitempty" yaml:"label,omitempty" json:"label,omitempty"`
	Cost         int64    `toml:"cost,omitempty" yaml:"cost,omitempty" json:"cost,omitempty"`
	Response     Response `toml:"response,omitempty,inline" yaml:"response,omitempty" json:"response,omitzero"`
	// Enabled is true unless it is written otherwise.
	Enabled *bool `toml:"enabled,omitempty" yaml:"enabled,omitempty" json:"enabled,omitempty"`
	// Mode is "exact", which is all there is yet.
	Mode string `toml:"mode,omitempty" yaml:"mode,omitempty" json:"mode,omitempty"`
}

// Match is the written form of a sluice.Match.
type Match struct {
	Tenants    []string          `toml:"tenants,omitempty" yaml:"tenants,omitempty,flow" json:"tenants,omitempty"`
	Users      []string          `toml:"users,omitempty" yaml:"users,omitempty,flow" json:"users,omitempty"`
	APIKeys    []string          `toml:"api_keys,omitempty" yaml:"api_keys,omitempty,flow" json:"api_keys,omitempty"`
	Tiers      []string          `toml:"tiers,omitempty" yaml:"tiers,omitempty,flow" json:"tiers,omitempty"`
	Routes     []string          `toml:"routes,omitempty" yaml:"routes,omitempty,flow" json:"routes,omitempty"`
	Methods    []string          `toml:"methods,omitempty" yaml:"methods,omitempty,flow" json:"methods,omitempty"`
	CIDRs      []string          `toml:"cidrs,omitempty" yaml:"cidrs,omitempty,flow" json:"cidrs,omitempty"`
	Attributes map[string]string `toml:"attributes,omitempty" yaml:"attributes,omitempty" json:"attributes,omitempty"`
}

// Limit is the written form of a sluice.Limit.
type Limit struct {
	Algorithm string   `toml:"algorithm,omitempty" yaml:"algorithm,omitempty" json:"algorithm,omitempty"`
	Limit     int64    `toml:"limit" yaml:"limit" json:"limit"`
	Window    Duration `toml:"window" yaml:"window" json:"window"`
	Burst     int64    `toml:"burst,omitempty" yaml:"burst,omitempty" json:"burst,omitempty"`
}

// Response is the written form of a sluice.Response.
type Response struct {
	Status     int      `toml:"status,omitempty" yaml:"status,omitempty" json:"status,omitempty"`
	Message    string   `toml:"message,omitempty" yaml:"message,omitempty" json:"message,omitempty"`
	RetryAfter Duration `toml:"retry_after,omitempty" yaml:"retry_after,omitempty" json:"retry_after,omitzero"`
}

// Tier is a plan and those who are on it. A tier that a verified source already told about a caller stays.
type Tier struct {
	Name        string `toml:"name" yaml:"name" json:"name"`
	DisplayName string `toml:"display_name,omitempty" yaml:"display_name,omitempty" json:"display_name,omitempty"`
	// Default makes it the tier of everyone on none. At most one tier has it.
	Default bool     `toml:"default,omitempty" yaml:"default,omitempty" json:"default,omitempty"`
	Tenants []string `toml:"tenants,omitempty" yaml:"tenants,omitempty,flow" json:"tenants,omitempty"`
	Users   []string `toml:"users,omitempty" yaml:"users,omitempty,flow" json:"users,omitempty"`
	APIKeys []string `toml:"api_keys,omitempty" yaml:"api_keys,omitempty,flow" json:"api_keys,omitempty"`
}

// Who names a subject by exactly one of its fields.
type Who struct {
	Tenant string `toml:"tenant,omitempty" yaml:"tenant,omitempty" json:"tenant,omitempty"`
	User   string `toml:"user,omitempty" yaml:"user,omitempty" json:"user,omitempty"`
	APIKey string `toml:"api_key,omitempty" yaml:"api_key,omitempty" json:"api_key,omitempty"`
	// CIDR is an address or a network; not for overrides.
	CIDR string `toml:"cidr,omitempty" yaml:"cidr,omitempty" json:"cidr,omitempty"`
}

// Override gives one subject other limits in one rule.
type Override struct {
	Who        `yaml:",inline"`
	Namespace  string    `toml:"namespace,omitempty" yaml:"namespace,omitempty" json:"namespace,omitempty"`
	Rule       string    `toml:"rule" yaml:"rule" json:"rule"`
	Limits     []Limit   `toml:"limits,inline" yaml:"limits,flow" json:"limits"`
	Reason     string    `toml:"reason,omitempty" yaml:"reason,omitempty" json:"reason,omitempty"`
	Author     string    `toml:"author,omitempty" yaml:"author,omitempty" json:"author,omitempty"`
	ValidFrom  time.Time `toml:"valid_from,omitempty" yaml:"valid_from,omitempty" json:"valid_from,omitzero"`
	ValidUntil time.Time `toml:"valid_until,omitempty" yaml:"valid_until,omitempty" json:"valid_until,omitzero"`
}

// Exemption passes every rule.
type Exemption struct {
	Who    `yaml:",inline"`
	Reason string `toml:"reason,omitempty" yaml:"reason,omitempty" json:"reason,omitempty"`
}

// Block refuses every request.
type Block struct {
	Who    `yaml:",inline"`
	Reason string    `toml:"reason" yaml:"reason" json:"reason"`
	Until  time.Time `toml:"until,omitempty" yaml:"until,omitempty" json:"until,omitzero"`
}
