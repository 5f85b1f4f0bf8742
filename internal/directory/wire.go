package directory

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

// wire is a record as Redis keeps it. Names are short, because there may be millions of them.
type wire struct {
	Tier      string              `json:"t,omitempty"`
	Exempt    bool                `json:"e,omitempty"`
	Block     *wireBlock          `json:"b,omitempty"`
	Overrides []registry.Override `json:"o,omitempty"`
	Key       *wireKey            `json:"k,omitempty"`
}

type wireBlock struct {
	Reason string    `json:"r"`
	Until  time.Time `json:"u,omitzero"`
}

type wireKey struct {
	Owner    string    `json:"o"`
	Tenant   string    `json:"t,omitempty"`
	Expires  time.Time `json:"x,omitzero"`
	Revoked  time.Time `json:"r,omitzero"`
	OldUntil time.Time `json:"u,omitzero"`
	Hashes   [][]byte  `json:"h"`
}

const (
	// signature is the length of the part in front. A guess passes once in 2^128.
	signature = 16
	// absent is what is kept of a subject on no record.
	absent = "0"
)

// seal writes a record for a key and signs both: one subject's record is none of another's.
func (r *Redis) seal(key string, record registry.Record) []byte {
	body := []byte(absent)
	if record.Found {
		w := wire{Tier: record.Tier, Exempt: record.Exempt}
		if b := record.Blocked; b != nil {
			w.Block = &wireBlock{b.Reason, b.Until}
		}
		for _, o := range record.Overrides { // without what no decision needs
			w.Overrides = append(w.Overrides, registry.Override{
				Namespace: o.Namespace, Rule: o.Rule, Limits: o.Limits, ValidFrom: o.ValidFrom, ValidUntil: o.ValidUntil,
			})
		}
		if k := record.Key; k != nil {
			w.Key = &wireKey{k.Owner, k.Tenant, k.ExpiresAt, k.RevokedAt, k.OldUntil, k.Hashes}
		}
		body, _ = json.Marshal(w) // it has nothing that cannot be written
	}
	return append(r.sign(key, body), body...)
}

// open reads what seal wrote; nil: it is a stone, or not from us.
func (r *Redis) open(key string, text []byte) *registry.Record {
	if len(text) <= signature || !hmac.Equal(r.sign(key, text[signature:]), text[:signature]) {
		return nil
	}
	body := text[signature:]
	if string(body) == absent {
		return &registry.Record{}
	}
	var w wire
	if json.Unmarshal(body, &w) != nil {
		return nil
	}
	record := &registry.Record{Found: true, Tier: w.Tier, Exempt: w.Exempt, Overrides: w.Overrides}
	if w.Block != nil {
		record.Blocked = &sluice.BlockedSubject{Reason: w.Block.Reason, Until: w.Block.Until}
	}
	if k := w.Key; k != nil {
		record.Key = &registry.Key{
			Owner: k.Owner, Tenant: k.Tenant, ExpiresAt: k.Expires, RevokedAt: k.Revoked, OldUntil: k.OldUntil, Hashes: k.Hashes,
		}
	}
	return record
}

func (r *Redis) sign(key string, body []byte) []byte {
	mac := hmac.New(sha256.New, r.secret)
	mac.Write([]byte("record of " + key + " "))
	mac.Write(body)
	return mac.Sum(nil)[:signature]
}
