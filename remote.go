package sluice

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// AppendText appends the id as String returns it.
func (id DecisionID) AppendText(dst []byte) ([]byte, error) {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], id.node)
	binary.BigEndian.PutUint64(b[8:], id.sequence)
	return hex.AppendEncode(dst, b[:]), nil
}

// MarshalText returns the id as String does.
func (id DecisionID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads what String returns.
func (id *DecisionID) UnmarshalText(text []byte) error {
	var b [16]byte
	if len(text) != hex.EncodedLen(len(b)) {
		return fmt.Errorf("decision id has %d characters, want %d", len(text), hex.EncodedLen(len(b)))
	}
	if _, err := hex.Decode(b[:], text); err != nil {
		return fmt.Errorf("decision id %q: %w", text, err)
	}
	id.node, id.sequence = binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	return nil
}

// BlockReason tells why the subject is blocked; "" unless the cause is BlockedByList.
func (d *Decision) BlockReason() string {
	if d.blocked == nil {
		return ""
	}
	return d.blocked.Reason
}

// RemoteDecision completes a decision that a limiter elsewhere made, for clients of one: d with the results and the reason
// of a block. Every result needs a Rule, of which a client knows what it was told: name, label, action, response. It
// cannot be refunded, because receipts stay with the limiter that has the store.
func RemoteDecision(d Decision, blockReason string, results []Result) (Decision, error) {
	if d.Cause == BlockedByList {
		d.blocked = &BlockedSubject{Reason: blockReason}
	}
	if d.Cause == BlockedByRule && len(results) == 0 {
		return d, fmt.Errorf("decision %s: blocked by a rule that is not named", d.ID)
	}
	d.count, d.more = 0, nil
	for i := range results {
		r := results[i]
		if r.Rule == nil {
			return d, fmt.Errorf("decision %s: result %d has no rule", d.ID, i+1)
		}
		r.cost, r.receipt = d.Cost, Receipt{}
		d.add(r)
	}
	return d, nil
}
