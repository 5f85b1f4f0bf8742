package control

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
)

// file keeps the last snapshot on disk. Without a path it keeps nothing.
type file struct {
	path string
	// next holds the newest that is not yet written; an older one is of no use.
	next chan sealed
}

func newFile(path string) *file { return &file{path: path, next: make(chan sealed, 1)} }

// load reads the last one. It is os.ErrNotExist where there is none.
func (f *file) load() (sealed, registry.Snapshot, error) {
	if f.path == "" {
		return sealed{}, registry.Snapshot{}, os.ErrNotExist
	}
	in, err := os.Open(f.path)
	if err != nil {
		return sealed{}, registry.Snapshot{}, fmt.Errorf("control.snapshot_file: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxSealed+1024))
	if err != nil {
		return sealed{}, registry.Snapshot{}, fmt.Errorf("control.snapshot_file: %w", err)
	}
	s, snap, err := open(text)
	if err != nil {
		return s, snap, fmt.Errorf("control.snapshot_file: %s: %w", f.path, err)
	}
	return s, snap, nil
}

// keep has s written soon. It is for one goroutine.
func (f *file) keep(s sealed) {
	select {
	case <-f.next:
	default:
	}
	f.next <- s
}

// saveEvery is how long a burst of changes is waited for. A shorter time writes more, a longer one loses more when the machine fails.
const saveEvery = time.Second

// run writes what keep was given, until ctx ends; then it writes what is left.
func (f *file) run(ctx context.Context, tell func(error)) {
	for {
		select {
		case s := <-f.next:
			tell(f.save(s))
			_ = sleep(ctx, saveEvery)
		case <-ctx.Done():
			select {
			case s := <-f.next:
				tell(f.save(s))
			default:
			}
			return
		}
	}
}

// save replaces the file by another whole one.
func (f *file) save(s sealed) error {
	if f.path == "" {
		return nil
	}
	out, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return fmt.Errorf("control.snapshot_file: %w", err)
	}
	defer os.Remove(out.Name()) // it is gone when all went well
	_, err = out.Write(s.text)
	if err == nil {
		err = out.Sync()
	}
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(out.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("control.snapshot_file: %w", err)
	}
	return nil
}
