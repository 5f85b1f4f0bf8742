package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

// sealed is a snapshot as it is handed on: through Redis and on disk, with a checksum, so that a part of it is never taken for the whole.
type sealed struct {
	revision sluice.Revision
	// digest is of the content without the revision: a change of a customer moves the revision and leaves the rules as they are.
	digest string
	text   []byte
}

// content is the body of a sealed snapshot. Its revision stands in the header.
type content struct {
	registry.Snapshot
	Quarantined []json.RawMessage `json:"quarantined,omitempty"`
}

const (
	magic = "sluice-snapshot 1"
	// maxEntry is how long a single rule or tier may be, written out. A longer one lists customers by name, where a tier should be; and a
	// row of megabytes, which only direct SQL can write, must not keep all others from being handed on.
	maxEntry = 256 << 10
	// maxSealed bounds the whole, so that a node that decodes it needs no more memory than it can spare.
	maxSealed = 64 << 20
)

// errDamaged means that a snapshot is not what was sealed.
var errDamaged = errors.New("the snapshot is damaged")

// seal writes a snapshot. Entries that are too long are quarantined, each alone.
func seal(s registry.Snapshot) (sealed, error) {
	revision := s.Revision
	c := content{Snapshot: s, Quarantined: s.Quarantined}
	c.Revision = 0
	body, err := json.Marshal(c)
	if err == nil && len(body) > maxEntry {
		c.trim()
		body, err = json.Marshal(c)
	}
	if err != nil {
		return sealed{}, fmt.Errorf("write the snapshot of revision %d: %w", revision, err)
	}
	if len(body) > maxSealed {
		return sealed{}, fmt.Errorf("the rules of revision %d are %d bytes long: the most is %d; match by tier instead of listing users", revision, len(body), maxSealed)
	}
	return stamp(revision, body), nil
}

// stamp puts the header before a body.
func stamp(revision sluice.Revision, body []byte) sealed {
	digest := sha256.Sum256(body)
	text := make([]byte, 0, len(body)+128)
	text = fmt.Appendf(text, "%s %d %s\n", magic, revision, checksum(revision, body))
	return sealed{revision: revision, digest: hex.EncodeToString(digest[:8]), text: append(text, body...)}
}

func checksum(revision sluice.Revision, body []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", revision)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// open checks and reads a sealed snapshot.
func open(text []byte) (sealed, registry.Snapshot, error) {
	header, body, found := bytes.Cut(text, []byte("\n"))
	var revision sluice.Revision
	var sum string
	if n, err := fmt.Sscanf(string(header), magic+" %d %s", &revision, &sum); !found || err != nil || n != 2 {
		return sealed{}, registry.Snapshot{}, fmt.Errorf("%w: it does not begin as one", errDamaged)
	}
	if sum != checksum(revision, body) {
		return sealed{}, registry.Snapshot{}, fmt.Errorf("%w: its checksum does not fit", errDamaged)
	}
	var c content
	if err := json.Unmarshal(body, &c); err != nil {
		return sealed{}, registry.Snapshot{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	s := c.Snapshot
	s.Revision, s.Quarantined = revision, c.Quarantined
	return stamp(revision, body), s, nil
}

// trim quarantines entries that are too long.
func (c *content) trim() {
	c.Rules = trimmed(c, c.Rules, registry.KindRule, func(i int) (string, string) { return c.Rules[i].Namespace, c.Rules[i].Name })
	c.Tiers = trimmed(c, c.Tiers, registry.KindTier, func(i int) (string, string) { return "", c.Tiers[i].Name })
}

func trimmed[T any](c *content, list []T, kind registry.Kind, name func(i int) (namespace, name string)) []T {
	kept := make([]T, 0, len(list))
	for i := range list {
		text, err := json.Marshal(list[i])
		if err == nil && len(text) <= maxEntry {
			kept = append(kept, list[i])
			continue
		}
		fault := fmt.Sprintf("is %d bytes long: the most is %d; match by tier instead of listing users", len(text), maxEntry)
		namespace, title := name(i)
		note, _ := json.Marshal(quarantined{Kind: kind, Namespace: namespace, Name: title, Fault: fault}) // strings always can be
		c.Quarantined = append(c.Quarantined, note)
	}
	return kept
}

// quarantined is what is known of an entry that was left out.
type quarantined struct {
	Kind      registry.Kind `json:"kind"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Fault     string        `json:"fault"`
}
