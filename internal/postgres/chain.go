package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice"
)

//go:embed queries/chain.sql
var chainSQL string

// Point is a place in the history: the end of a revision. Its hash stands for all changes up to there. The zero value is the beginning.
type Point struct {
	Revision sluice.Revision
	Hash     [sha256.Size]byte
}

// String is what ParsePoint reads: the revision and the hash, as 120:ab12… with 64 hexadecimal digits.
func (p Point) String() string { return fmt.Sprintf("%d:%x", p.Revision, p.Hash) }

// ParsePoint reads what Point.String wrote.
func ParsePoint(text string) (Point, error) {
	var p Point
	number, digits, _ := strings.Cut(strings.TrimSpace(text), ":")
	revision, err := strconv.ParseInt(number, 10, 64)
	hash, hexErr := hex.DecodeString(digits)
	if err != nil || hexErr != nil || revision < 0 || copy(p.Hash[:], hash) != len(hash) || len(hash) != len(p.Hash) {
		return Point{}, fmt.Errorf("%q is no place in the history: want a revision, a colon and the 64 digits of its hash", text)
	}
	p.Revision = sluice.Revision(revision)
	return p, nil
}

// Verified is what was found to be right.
type Verified struct {
	Changes int64 // how many follow from each other
	Unused  int64 // revisions without a change. Every call that takes a revision writes one: these were taken by hand
	Head    Point // the last of the changes, to be noted for the next time
}

// HistoryError tells that the history is not the one that was written: where this shows first, and how.
type HistoryError struct {
	Revision sluice.Revision
	Seq      int64 // the change's number within the revision, from 0
	Fault    string
}

func (e *HistoryError) Error() string { return "the history is not as it was written: " + e.Fault }

// VerifyOptions says what else is looked at. The zero value works.
type VerifyOptions struct {
	// Noted is the Head of an earlier check. Who can write everything can also write a chain that is right in itself, but none that leads through
	// this point. Default: none.
	Noted *Point
	// Progress is told now and then which revision was reached, of how many. Default: nobody.
	Progress func(reached, last sluice.Revision)
}

// verifyPage is how many changes are read at once. With more the largest bodies (256 KB before and after) might not come within Options.Timeout.
const verifyPage = 1000

// VerifyHistory computes the hashes of all changes anew, and compares them with those in the database. Where the history is not the one that was
// written the error is a *HistoryError, and Verified tells how far it is right. It takes as long as it takes; others can write meanwhile.
func (db *DB) VerifyHistory(ctx context.Context, opts VerifyOptions) (Verified, error) {
	w := &walk{noted: opts.Noted, seq: -1}
	after, seq := int64(math.MinInt64), int64(math.MinInt64)
	for {
		rows, err := query(ctx, db, everything, w.step, chainSQL, after, seq, verifyPage)
		if err == nil && len(rows) < verifyPage {
			err = w.end(len(rows))
		}
		if broken := (*HistoryError)(nil); errors.As(err, &broken) {
			return w.found, broken
		}
		if err != nil || len(rows) < verifyPage {
			return w.found, fault("verify the history", err)
		}
		after, seq = int64(w.found.Head.Revision), w.seq
		if opts.Progress != nil {
			opts.Progress(w.found.Head.Revision, w.present)
		}
	}
}

// walk goes along the chain. What it found is right up to the change it is at.
type walk struct {
	noted   *Point
	found   Verified
	seq     int64           // of the change it is at; -1 at the beginning
	present sluice.Revision // the revision in force
	head    Point           // the last change, as the database noted it
}

// link is a change as it is read. Pointers are nil for NULL, which somebody may have written wherever the schema has none.
type link struct {
	revision, seq *int64 // nil: there is no change
	at            *string
	texts         [8]*string
	hash          []byte
}

// step takes the next change.
func (w *walk) step(row pgx.CollectableRow) (struct{}, error) {
	var (
		c    link
		head []byte
		t    = &c.texts
	)
	err := row.Scan(&w.present, &w.head.Revision, &head, &c.revision, &c.seq, &c.at,
		&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7], &c.hash)
	if err != nil {
		return struct{}{}, err
	}
	w.head.Hash = [sha256.Size]byte{}
	copy(w.head.Hash[:], head)
	if c.revision == nil || c.seq == nil {
		return struct{}{}, nil
	}
	return struct{}{}, w.follow(&c)
}

// follow checks that a change follows from the one before it.
func (w *walk) follow(c *link) error {
	at, revision, next := &w.found.Head, sluice.Revision(*c.revision), int64(0)
	if revision == at.Revision {
		next = w.seq + 1
	} else if err := w.checkNoted(revision); err != nil {
		return err
	}
	if *c.seq != next {
		return &HistoryError{revision, next, fmt.Sprintf("change %d of revision %d is missing: in its place is change %d", next, revision, *c.seq)}
	}
	hash, ok := c.hashAfter(at.Hash)
	if !ok || !bytes.Equal(hash[:], c.hash) {
		return &HistoryError{revision, next, fmt.Sprintf(
			"change %d of revision %d does not follow from %s: it was altered or put in, or what stood between was removed", next, revision, w.place())}
	}
	w.found.Changes++
	if next == 0 {
		w.found.Unused += int64(revision-at.Revision) - 1
	}
	w.found.Head, w.seq = Point{revision, hash}, next
	return nil
}

// place names the change it is at.
func (w *walk) place() string {
	if w.seq < 0 {
		return "the beginning"
	}
	return fmt.Sprintf("change %d of revision %d", w.seq, w.found.Head.Revision)
}

// hashAfter computes the hash of a change from all its columns and the hash before it, as sluice.chain_change does in the database. It says false
// where the database could not have.
func (c *link) hashAfter(previous [sha256.Size]byte) ([sha256.Size]byte, bool) {
	if c.at == nil {
		return previous, false
	}
	micros, err := strconv.ParseInt(*c.at, 10, 64)
	b := binary.BigEndian.AppendUint64(previous[:], uint64(*c.revision))
	b = binary.BigEndian.AppendUint32(b, uint32(*c.seq))
	b = binary.BigEndian.AppendUint64(b, uint64(micros))
	for _, text := range c.texts {
		if text == nil {
			b = binary.BigEndian.AppendUint32(b, math.MaxUint32) // -1
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(*text)))
		b = append(b, *text...)
	}
	return sha256.Sum256(b), err == nil
}

// checkNoted compares the end of a revision, before the next, with the noted one.
func (w *walk) checkNoted(next sluice.Revision) error {
	at := w.found.Head
	if w.noted == nil || next <= w.noted.Revision || at.Revision > w.noted.Revision || at == *w.noted {
		return nil
	}
	if at.Revision < w.noted.Revision {
		return &HistoryError{w.noted.Revision, 0, fmt.Sprintf(
			"the noted revision %d has no change: after %s comes revision %d", w.noted.Revision, w.place(), next)}
	}
	return &HistoryError{at.Revision, w.seq, fmt.Sprintf(
		"revision %d has another hash than the noted one: something up to there was altered, removed or put in, and the hashes were written anew", at.Revision)}
}

// end checks that the history ends where the database noted it. Of a revision that is gone there is not even the row without a change.
func (w *walk) end(rows int) error {
	at := w.found.Head
	broken := func(text string, args ...any) error {
		return &HistoryError{at.Revision, max(w.seq, 0), fmt.Sprintf(text, args...)}
	}
	switch {
	case rows == 0:
		return broken("sluice.revision has no row")
	case at.Revision < w.head.Revision:
		return broken("it ends with %s, and the last one written was of revision %d: the end was cut off", w.place(), w.head.Revision)
	case at.Revision > w.head.Revision:
		return broken("it ends with %s, and the last one written was of revision %d: the end was put in", w.place(), w.head.Revision)
	case at.Hash != w.head.Hash:
		return broken("it ends with %s, which is not the last one written: the end was cut off or put in, or sluice.revision was altered", w.place())
	case w.present < at.Revision:
		return broken("it ends with %s, and the revision in force is %d: it was set back", w.place(), w.present)
	case w.noted != nil && at.Revision < w.noted.Revision:
		return broken("it ends with %s, before the noted revision %d: the end was cut off, or the database is an older copy", w.place(), w.noted.Revision)
	}
	w.found.Unused += int64(w.present - at.Revision)
	return w.checkNoted(math.MaxInt64)
}
