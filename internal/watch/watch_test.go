package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// patience is how long a change may take to be noticed on a busy machine before a test gives up.
const patience = 20 * time.Second

// watched is a watch under way.
type watched struct {
	t       *testing.T
	changes chan struct{}
	looks   chan bool
}

// start watches until the test ends. With slow polling only what the system tells can be noticed in time.
func start(t *testing.T, opts Options, paths ...string) *watched {
	t.Helper()
	w := &watched{t: t, changes: make(chan struct{}, 100), looks: make(chan bool, 1000)}
	opts.checked = func(changed bool) { w.looks <- changed }
	if opts.Debounce == 0 {
		opts.Debounce = 10 * time.Millisecond
	}
	if opts.Poll == 0 {
		opts.Poll = time.Hour
	}
	opts.Since = Sum(paths...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, paths, func() { w.changes <- struct{}{} }, opts) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch: got %v, want the context's error", err)
		}
	})
	<-w.looks // the first look: from now on changes are told of
	return w
}

func (w *watched) expectChange(what string) {
	w.t.Helper()
	select {
	case <-w.changes:
	case <-time.After(patience):
		w.t.Fatalf("%s: not noticed", what)
	}
}

// expectLook waits for a look that finds nothing.
func (w *watched) expectLook(what string) {
	w.t.Helper()
	for {
		select {
		case changed := <-w.looks:
			if !changed {
				return
			}
		case <-w.changes:
			w.t.Fatalf("%s: reported as a change", what)
		case <-time.After(patience):
			w.t.Fatalf("%s: not looked at", what)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatch_SeesWritesInPlaceAndEditorsRenames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.toml")
	put(t, path, "one")
	w := start(t, Options{}, path)
	put(t, path, "two")
	w.expectChange("write in place")
	put(t, path+"~", "three")
	must(t, os.Rename(path+"~", path))
	w.expectChange("rename over")
	must(t, os.Remove(path))
	w.expectChange("removal")
	put(t, path, "four")
	w.expectChange("creation")
}

func TestWatch_IgnoresTheSameContent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.toml")
	put(t, path, "one")
	w := start(t, Options{}, path)
	put(t, path+"~", "one")
	must(t, os.Rename(path+"~", path))
	w.expectLook("rewrite with the same content")
	put(t, path, "two")
	w.expectChange("write")
}

// Kubernetes mounts a ConfigMap as links to ..data, itself a link to a folder with a time in its name; an update makes
// a new folder and renames a new link over ..data.
func TestWatch_SeesAConfigMapSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	publish := func(version, text string) {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		put(t, filepath.Join(dir, version, "sluice.toml"), text)
		must(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..2026_01", "one")
	must(t, os.Symlink("..data/sluice.toml", filepath.Join(dir, "sluice.toml")))

	file := start(t, Options{}, filepath.Join(dir, "sluice.toml"))
	folder := start(t, Options{}, dir)
	for _, version := range []string{"..2026_02", "..2026_03"} {
		publish(version, version)
		file.expectChange(version + " by file")
		folder.expectChange(version + " by folder")
		must(t, os.RemoveAll(filepath.Join(dir, "..2026_01")))
	}
}

func TestWatch_FollowsALinkToAnotherFolder(t *testing.T) {
	t.Parallel()
	link, target := filepath.Join(t.TempDir(), "sluice.toml"), filepath.Join(t.TempDir(), "real.toml")
	put(t, target, "one")
	must(t, os.Symlink(target, link))
	w := start(t, Options{}, link)
	put(t, target, "two")
	w.expectChange("write behind the link")
}

func TestWatch_SeesFilesComeAndGoInAFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "rules.d")
	w := start(t, Options{}, dir) // does not exist yet
	for range 2 {
		// Everything appears and goes by one rename each, so that it is one change and not sometimes two.
		aside := t.TempDir()
		put(t, filepath.Join(aside, "a.toml"), "one")
		must(t, os.MkdirAll(dir, 0o700))
		w.expectChange("new folder")
		must(t, os.Rename(filepath.Join(aside, "a.toml"), filepath.Join(dir, "a.toml")))
		w.expectChange("new file")
		put(t, filepath.Join(dir, ".a.toml.swp"), "one")
		w.expectLook("hidden file")
		must(t, os.Rename(filepath.Dir(dir), filepath.Join(aside, "a")))
		w.expectChange("removal of the folder above")
	}
}

func TestWatch_ReportsWhatChangedBeforeItBegan(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.toml")
	put(t, path, "one")
	since := Sum(path)
	put(t, path, "two")
	ctx, cancel := context.WithCancel(t.Context())
	called := 0
	err := Watch(ctx, []string{path}, func() { called++; cancel() }, Options{Since: since})
	if called != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d calls and %v, want 1", called, err)
	}
}

func TestWatch_PollsWhenTheSystemTellsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.toml")
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("too many open files")
		var trouble error
		opts := Options{
			OnTrouble: func(err error) { trouble = err },
			notify:    func() (*fsnotify.Watcher, error) { return nil, refused },
		}
		var changed time.Time
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = Watch(ctx, []string{path}, func() { changed = time.Now() }, opts) }()
		synctest.Wait()
		began := time.Now()
		put(t, path, "one")
		time.Sleep(4 * time.Second) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		if took := changed.Sub(began); took <= 0 || took > 3*time.Second {
			t.Errorf("noticed after %s, want within 3s", took)
		}
		if !errors.Is(trouble, refused) {
			t.Errorf("trouble: got %v, want %v", trouble, refused)
		}
		cancel()
	})
}

func TestSum_TellsContentsApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	seen := map[Digest]string{}
	note := func(what string) {
		d := Sum(a, b)
		if before, known := seen[d]; known {
			t.Errorf("%s: the same digest as %s", what, before)
		}
		seen[d] = what
	}
	note("nothing")
	put(t, a, "")
	note("a is empty")
	put(t, b, "x")
	note("b is x")
	put(t, a, "x")
	put(t, b, "")
	note("a is x")
	must(t, os.Remove(b))
	must(t, os.Mkdir(b, 0o700))
	note("b is a folder")
	put(t, filepath.Join(b, "c"), "x")
	note("b has a file")
}
