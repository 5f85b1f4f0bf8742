package rulefeed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/watch"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFiles_AreFollowedWhileTheyChange(t *testing.T) {
	t.Parallel()
	dir, main := t.TempDir(), filepath.Join(t.TempDir(), "sluice.toml")
	write(t, main, "node = \"n\"\n"+rule("inline", 1))
	write(t, filepath.Join(dir, "b.toml"), rule("b", 1))
	write(t, filepath.Join(dir, "a.yaml"), "rules: [{name: a, key: [user], limits: [{limit: 1, window: 1s}]}]\n")
	write(t, filepath.Join(dir, ".hidden.toml"), "[[broken\n")
	write(t, filepath.Join(dir, "README.md"), "not rules\n")
	if err := os.Mkdir(filepath.Join(dir, "folder.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	source := NewFiles(FilesOptions{Dir: dir, Embedded: main, Watch: watch.Options{Debounce: 10 * time.Millisecond, Poll: 50 * time.Millisecond}})
	loads := make(chan string, 10)
	var p published
	f := New(source, p.publish, Options{Observe: func(Status) { loads <- p.names() }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	expect := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-loads:
				if got == want {
					return
				}
			case err := <-ended:
				t.Fatalf("Run ended: %v", err)
			case <-time.After(20 * time.Second):
				t.Fatalf("no load with %q; status %+v", want, f.Status())
			}
		}
	}
	expect("a=1 b=1 inline=1")
	if rev := f.Status().Revision; rev < 1_600_000_000 {
		t.Errorf("revision %d, want the time of the newest file", rev)
	}
	write(t, filepath.Join(dir, "b.toml"), rule("b", 2))
	expect("a=1 b=2 inline=1")
	if err := os.Remove(filepath.Join(dir, "b.toml")); err != nil {
		t.Fatal(err)
	}
	expect("a=1 inline=1")
	write(t, main, rule("inline", 5))
	expect("a=1 inline=5")
	source.Nudge() // nothing changed: nothing is published
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	if s := f.Status(); s.Stale || s.Rules != 2 {
		t.Errorf("status %+v", s)
	}
}

func TestFiles_NudgeEndsAWait(t *testing.T) {
	t.Parallel()
	source := NewFiles(FilesOptions{Dir: t.TempDir()})
	if _, err := source.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- source.Wait(t.Context()) }()
	source.Nudge() // before Wait or during it
	if err := <-ended; err != nil {
		t.Errorf("Wait: %v", err)
	}
}

func TestFiles_ReadsALinkSwappedAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(name string, limit int) string {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "rules.toml"), rule("a", limit))
		return name
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, ".tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, ".tmp"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(version("..1", 1), "..data")
	link("..data/rules.toml", "rules.toml")
	source := NewFiles(FilesOptions{Dir: dir, Watch: watch.Options{Debounce: 10 * time.Millisecond, Poll: 50 * time.Millisecond}})
	var p published
	f := New(source, p.publish, Options{})
	if err := f.Load(t.Context()); err != nil || p.names() != "a=1" {
		t.Fatalf("Load: %v, rules %s", err, p.names())
	}
	link(version("..2", 2), "..data")
	if err := source.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Load(t.Context()); err != nil || p.names() != "a=2" {
		t.Errorf("Load: %v, rules %s", err, p.names())
	}
}

func TestFiles_TellsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	if _, err := NewFiles(FilesOptions{Dir: filepath.Join(t.TempDir(), "none")}).Snapshot(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "big.toml"), strings.Repeat("#", ruledoc.MaxFileSize+1))
	f := New(NewFiles(FilesOptions{Dir: dir}), func(Rules) {}, Options{})
	if err := f.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "the most is") {
		t.Errorf("a file that is too long: %v", err)
	}
	if snap, err := NewFiles(FilesOptions{}).Snapshot(t.Context()); err != nil || len(snap.Texts) != 0 {
		t.Errorf("no files: %+v, %v", snap, err)
	}
}
