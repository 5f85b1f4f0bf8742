package main

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os/exec"
	"regexp"
	"strings"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

// dump takes all that the database has, and tries it. A key whose owner wrote its secret into its name is planted, to see that the trial
// would find one.
func dump(ctx context.Context, b *bar.Bar, w *world) error {
	text, err := w.dump(ctx)
	if err != nil {
		return err
	}
	b.Say("the dump has %d bytes", len(text))
	usable, tried := w.try(ctx, text)
	b.Shown("things in the dump tried as keys", float64(tried))
	b.AtLeast("things tried for each key", float64(tried)/keys, 2, 2)
	b.Exactly("usable keys in a dump of the database", int64(usable), 0)
	b.Exactly("secrets in a dump of the database", int64(w.secretsIn(text)), 0)

	planted, id, hash := apikey.New(pepper)
	_, secret, _ := apikey.Parse(planted)
	if _, err := w.db.As(root).CreateKey(ctx, registry.Key{ID: id, Name: "my secret is " + secret, Owner: "careless", Hashes: [][]byte{hash}}, by); err != nil {
		return err
	}
	if text, err = w.dump(ctx); err != nil {
		return err
	}
	usable, _ = w.try(ctx, text)
	b.Exactly("of 1 planted secret found", int64(usable), 1)
	return nil
}

// dump is what somebody has who got hold of a backup.
func (w *world) dump(ctx context.Context) ([]byte, error) {
	program, err := exec.LookPath("pg_dump")
	if err != nil {
		return nil, fmt.Errorf("%w: run make deps", err)
	}
	var out, trouble bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--dbname="+w.place.As(testpg.Superuser), "--inserts")
	cmd.Stdout, cmd.Stderr = &out, &trouble
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("pg_dump: %w: %s", err, trouble.String())
	}
	return out.Bytes(), nil
}

var (
	words  = regexp.MustCompile(`[A-Za-z0-9+/=_-]{16,}`)
	keyIDs = regexp.MustCompile(`'([a-z2-7]{24})'`)
)

// try uses whatever stands in a row with an id as that key's secret, as it is and decoded, and whatever stands anywhere as a key.
func (w *world) try(ctx context.Context, dump []byte) (usable, tried int) {
	accepted := map[string]bool{}
	attempt := func(text string) {
		tried++
		if s, ok := w.live.Verify(ctx, text); ok {
			accepted[s.APIKey] = true
		}
	}
	for line := range strings.Lines(string(dump)) {
		found := words.FindAllString(line, -1)
		for _, word := range found {
			attempt(word)
		}
		for _, id := range keyIDs.FindAllStringSubmatch(line, -1) {
			for _, word := range found {
				for _, secret := range readings(word) {
					body := "slc_" + id[1] + "_" + secret
					attempt(fmt.Sprintf("%s_%08x", body, crc32.ChecksumIEEE([]byte(body))))
				}
			}
		}
	}
	return len(accepted), tried
}

// readings are what a word may stand for: a secret, or bytes of which one is made.
func readings(word string) []string {
	all := []string{word}
	if bits, err := hex.DecodeString(strings.TrimPrefix(word, "x")); err == nil {
		all = append(all, strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bits)))
	}
	return all
}

// secretsIn counts the keys and tokens whose secret is in the dump.
func (w *world) secretsIn(dump []byte) int {
	n := 0
	for _, text := range w.texts {
		parts := strings.Split(text, "_")
		if bytes.Contains(dump, []byte(parts[2])) {
			n++
		}
	}
	return n
}
