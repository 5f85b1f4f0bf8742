// Package watch tells when the content of files or folders has changed, however they are replaced: written in place,
// renamed over by an editor, or swapped behind a symbolic link as Kubernetes does with ConfigMaps and Secrets.
package watch

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options tune a watch. The zero value works.
type Options struct {
	// Since is the content that the caller knows, taken by Sum before reading it, so that no change in between is missed.
	// Default: the content at the time of the call.
	Since Digest
	// Debounce is how long the content must be left alone before it is read; a shorter one reads half-written files more
	// often, a longer one acts later. Changes that do not end are acted upon after ten times as long. Default 100ms.
	Debounce time.Duration
	// Poll is how often the content is read when the system does not tell of changes. Default 3s.
	Poll time.Duration
	// OnTrouble is told why the system did not tell of changes; they are found by polling then. Default: nobody.
	OnTrouble func(error)

	// notify and checked are for tests.
	notify  func() (*fsnotify.Watcher, error)
	checked func(changed bool)
}

// safetyFactor: even while the system tells of changes the content is read now and then, this many times more rarely
// than by polling alone: network file systems tell only of changes made on this machine.
const safetyFactor = 10

func (o Options) withDefaults(paths []string) Options {
	if o.Since == (Digest{}) {
		o.Since = Sum(paths...)
	}
	if o.Debounce <= 0 {
		o.Debounce = 100 * time.Millisecond
	}
	if o.Poll <= 0 {
		o.Poll = 3 * time.Second
	}
	if o.OnTrouble == nil {
		o.OnTrouble = func(error) {}
	}
	if o.notify == nil {
		o.notify = fsnotify.NewWatcher
	}
	if o.checked == nil {
		o.checked = func(bool) {}
	}
	return o
}

// Watch calls onChange each time the content of one of the paths is another than before, until the context ends, whose
// error it returns. A path is a file or a folder, whose visible files count; it need not exist yet. Calls do not
// overlap. Files that are touched or rewritten with the same content change nothing.
func Watch(ctx context.Context, paths []string, onChange func(), opts Options) error {
	w := &watcher{paths: paths, opts: opts.withDefaults(paths), onChange: onChange}
	w.known = w.opts.Since
	notify, err := w.opts.notify()
	if err != nil {
		w.opts.OnTrouble(err)
		return w.run(ctx, nil, nil)
	}
	defer notify.Close()
	w.notify = notify
	return w.run(ctx, notify.Events, notify.Errors)
}

type watcher struct {
	paths    []string
	opts     Options
	onChange func()
	known    Digest
	notify   *fsnotify.Watcher // nil: polling only
}

// run is the loop. Channels are nil when the system tells nothing.
func (w *watcher) run(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error) error {
	w.follow()
	poll := time.NewTicker(w.pollInterval())
	defer poll.Stop()
	quiet := time.NewTimer(0) // the first look finds what changed since Since
	defer quiet.Stop()
	var first time.Time // of the events not yet acted upon
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-events:
			if !open {
				events = nil
				continue
			}
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			if now.Sub(first) < 10*w.opts.Debounce {
				quiet.Reset(w.opts.Debounce)
			}
		case err, open := <-errs:
			if !open {
				errs = nil
				continue
			}
			// Usually more events than the queue holds: what they told of is found by looking.
			w.opts.OnTrouble(err)
			quiet.Reset(w.opts.Debounce)
		case <-quiet.C:
			first = time.Time{}
			w.look()
			poll.Reset(w.pollInterval())
		case <-poll.C:
			w.look()
			poll.Reset(w.pollInterval())
		}
	}
}

func (w *watcher) pollInterval() time.Duration {
	if w.notify == nil {
		return w.opts.Poll
	}
	return safetyFactor * w.opts.Poll
}

// look compares the content with what is known. Folders are followed first, so that what changes from now on is told of.
func (w *watcher) look() {
	w.follow()
	now := Sum(w.paths...)
	changed := now != w.known
	if changed {
		w.known = now
		w.onChange()
	}
	w.opts.checked(changed)
}

// follow asks the system to tell of changes in every folder that a path leads through. Folders come and go, so it is
// called again after each event; asking twice for the same folder does nothing.
func (w *watcher) follow() {
	if w.notify == nil {
		return
	}
	followed := 0
	var trouble error
	for _, path := range w.paths {
		for _, dir := range folders(path) {
			if err := w.notify.Add(dir); err != nil {
				trouble = err
				continue
			}
			followed++
		}
	}
	if followed == 0 && trouble != nil {
		w.opts.OnTrouble(trouble)
		_ = w.notify.Close() // nothing can be told through it; the poll goes on
		w.notify = nil
	}
}

// folders lists those whose changes can change what a path names: its own when it is a folder, the one it stands in,
// and the same where links lead to. Of one that does not exist, the nearest that does.
func folders(path string) []string {
	var all []string
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			all = append(all, path)
		}
		parent := filepath.Dir(path)
		for {
			if info, err := os.Stat(parent); err == nil && info.IsDir() {
				all = append(all, parent)
				return
			}
			if up := filepath.Dir(parent); up != parent {
				parent = up
				continue
			}
			return
		}
	}
	path = filepath.Clean(path)
	add(path)
	if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
		add(target)
	}
	return all
}
