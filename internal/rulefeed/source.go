// Package rulefeed keeps a node's rules current: it reads them where they are kept, compiles them, hands them on, and goes
// on with the last good ones when what it finds is broken.
package rulefeed

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Source is where rules are kept.
type Source interface {
	// Snapshot reads all there is.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Wait returns nil when it is worth taking a Snapshot again, and an error when it cannot tell. It may return early or
	// without a change; it must not miss a change since the last Snapshot.
	Wait(ctx context.Context) error
}

// Snapshot is the written rules at one moment.
type Snapshot struct {
	// Revision is the keeper's number for them. The feed takes a higher one where it would not rise.
	Revision sluice.Revision
	Texts    []Text

	// refused is why some of the texts are not what is written now, but what was when it was good last.
	refused []refusal
}

// refusal is why what a source has now is not taken.
type refusal struct {
	err    error
	faults []ruledoc.Fault // none where it could not be read
	digest string          // of what it has, by which the same is told once
}

// Text is one file or record of rules.
type Text struct {
	// Name stands in faults; for a file it is its path.
	Name   string
	Format ruledoc.Format
	// Embedded tells that other things than rules stand in it, too, such as a node's configuration.
	Embedded bool
	Data     []byte

	// Document is set for a record that was read elsewhere; there is no Data then. It must not be changed.
	Document *ruledoc.Document
	// Faults are those found when it was read, LeftOut the rules that they took away.
	Faults  []ruledoc.Fault
	LeftOut []ruledoc.RuleName

	// former tells that it is written otherwise by now. Its faults are not told: those of what is written are.
	former bool
}

// decode reads the text.
func (t *Text) decode() (*ruledoc.Parsed, []ruledoc.Fault) {
	switch {
	case t.Document != nil:
		part, faults := ruledoc.FromDocument(t.Name, *t.Document)
		part.LeaveOut(t.LeftOut...)
		return part, append(t.Faults[:len(t.Faults):len(t.Faults)], faults...)
	case t.Embedded:
		return ruledoc.DecodeEmbedded(t.Name, t.Data)
	}
	return ruledoc.Decode(t.Name, t.Format, t.Data)
}

// content is what identifies the text. What changes in an embedding file outside of its rules leaves it as it is.
func (t *Text) content(part *ruledoc.Parsed, faults []ruledoc.Fault) []byte {
	if t.Document != nil {
		if text, err := written(*t.Document, t.Faults); err == nil {
			return text
		}
	}
	if t.Embedded && part != nil {
		if text, err := written(part.Document, faults); err == nil {
			return text
		}
	}
	return t.Data
}

// reading is a snapshot as far as it could be understood.
type reading struct {
	revision sluice.Revision
	parts    []*ruledoc.Parsed // nil for a text that cannot be understood
	broken   int               // how many of them are nil
	faults   []ruledoc.Fault
	digest   string // identifies the content among all others
	refused  []refusal
}

// refusal is that of a reading with broken texts.
func (r *reading) refusal() refusal {
	return refusal{fmt.Errorf("%d of %d texts cannot be understood", r.broken, len(r.parts)), r.faults, r.digest}
}

// read parses every text.
func (s Snapshot) read() reading {
	r := reading{revision: s.Revision, refused: s.refused}
	h := sha256.New()
	piece := func(b []byte) {
		_ = binary.Write(h, binary.BigEndian, int64(len(b))) // a hash takes everything
		h.Write(b)
	}
	for i := range s.Texts {
		t := &s.Texts[i]
		part, faults := t.decode()
		if part == nil {
			r.broken++
		}
		r.parts = append(r.parts, part)
		if !t.former {
			r.faults = append(r.faults, faults...)
		}
		piece([]byte(t.Name))
		piece(t.content(part, faults))
	}
	r.digest = hex.EncodeToString(h.Sum(nil)[:8])
	return r
}

// written is what a document says, and what is wrong with it.
func written(doc ruledoc.Document, faults []ruledoc.Fault) ([]byte, error) {
	return json.Marshal(struct {
		Document ruledoc.Document
		Faults   []ruledoc.Fault
	}{doc, faults})
}
