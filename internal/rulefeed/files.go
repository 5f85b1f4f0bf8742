package rulefeed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/watch"
)

// Files is a Source: a folder of rule files, a file with rules among other things, or both.
type Files struct {
	opts FilesOptions

	mu     sync.Mutex
	since  watch.Digest // of what was read last
	nudged bool
	wake   context.CancelFunc // ends a Wait under way
}

// FilesOptions say which files. The zero value has none.
type FilesOptions struct {
	// Dir is a folder whose *.toml, *.yaml and *.yml files are read, in the order of their names. Names that start with a
	// dot are passed over, and so are folders in it. Default: none.
	Dir string
	// Embedded is a TOML file with rules among other things. Default: none.
	Embedded string
	// Watch tunes how changes are noticed; Since is set by Files.
	Watch watch.Options
}

// The bounds of a folder, so that the wrong one does no harm.
const (
	maxFiles = 1_000
	maxBytes = 32 << 20
)

// NewFiles returns a source. It reads nothing yet.
func NewFiles(opts FilesOptions) *Files { return &Files{opts: opts} }

// Snapshot reads all files. The revision is the time of the newest one in seconds, so that it goes on rising when a node is
// started again, and nodes that share a folder share revisions.
func (f *Files) Snapshot(ctx context.Context) (Snapshot, error) {
	f.mu.Lock()
	f.nudged = false
	f.mu.Unlock()
	since := watch.Sum(f.paths()...) // before reading: what changes meanwhile is noticed
	names, err := f.names()
	if err != nil {
		return Snapshot{}, err
	}
	var snap Snapshot
	size, now := 0, time.Now()
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return Snapshot{}, err
		}
		text, changed, err := f.read(name)
		if err != nil {
			return Snapshot{}, err
		}
		if size += len(text.Data); size > maxBytes {
			return Snapshot{}, fmt.Errorf("%s: the rule files together are longer than %d bytes; match by tier instead of listing users", f.opts.Dir, maxBytes)
		}
		snap.Texts = append(snap.Texts, text)
		if changed.Before(now) { // a file from the future would hold the revision up
			snap.Revision = max(snap.Revision, sluice.Revision(changed.Unix()))
		}
	}
	f.mu.Lock()
	f.since = since
	f.mu.Unlock()
	return snap, nil
}

func (f *Files) paths() []string {
	var paths []string
	for _, p := range [...]string{f.opts.Embedded, f.opts.Dir} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// names lists the files to read.
func (f *Files) names() ([]string, error) {
	var names []string
	if f.opts.Embedded != "" {
		names = append(names, f.opts.Embedded)
	}
	if f.opts.Dir == "" {
		return names, nil
	}
	entries, err := os.ReadDir(f.opts.Dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("read the folder of rules: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(f.opts.Dir, e.Name())
		if format, known := ruledoc.FormatOf(e.Name()); strings.HasPrefix(e.Name(), ".") || !known || format == ruledoc.JSON {
			continue
		}
		info, err := os.Stat(path) // follows links, which ConfigMaps are made of
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		if info.Mode().IsRegular() {
			names = append(names, path)
		}
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("%s holds %d files of rules: the most is %d", f.opts.Dir, len(names), maxFiles)
	}
	return names, nil
}

func (f *Files) read(name string) (Text, time.Time, error) {
	file, err := os.Open(name) //nolint:gosec // the operator names the folder
	if err != nil {
		return Text{}, time.Time{}, fmt.Errorf("read rules: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Text{}, time.Time{}, fmt.Errorf("read rules: %w", err)
	}
	// A byte more than is allowed, so that ruledoc refuses it in its own words.
	data, err := io.ReadAll(io.LimitReader(file, ruledoc.MaxFileSize+1))
	if err != nil {
		return Text{}, time.Time{}, fmt.Errorf("read rules: %w", err)
	}
	format, _ := ruledoc.FormatOf(name)
	return Text{Name: name, Format: format, Embedded: name == f.opts.Embedded, Data: data}, info.ModTime(), nil
}

// Wait returns when the content of a file has changed since the last Snapshot, or after a Nudge.
func (f *Files) Wait(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	opts, nudged := f.opts.Watch, f.nudged
	opts.Since, f.wake = f.since, cancel
	f.mu.Unlock()
	if nudged {
		return nil
	}
	err := watch.Watch(inner, f.paths(), cancel, opts)
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return nil // changed or nudged
	}
	return err
}

// Nudge makes Wait return, for operators who do not want to wait for a change to be noticed.
func (f *Files) Nudge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nudged = true
	if f.wake != nil {
		f.wake()
	}
}
