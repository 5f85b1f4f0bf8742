package watch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Digest stands for the content of files: equal digests, equal content.
type Digest [sha256.Size]byte

// Sum reads the content of files and of the visible files in folders. What does not exist counts as such, and what
// cannot be read counts by the reason, so that it is noticed when it can be read again.
func Sum(paths ...string) Digest {
	h := sha256.New()
	for _, path := range paths {
		entries, err := os.ReadDir(path)
		if err != nil { // not a folder, or none that can be read
			sumFile(h, path)
			continue
		}
		fmt.Fprintf(h, "folder\x00%s\x00", path)
		for _, e := range entries {
			// Hidden ones are editors' temporary files and Kubernetes' own links: their targets are seen by their names.
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			sumFile(h, filepath.Join(path, e.Name()))
		}
	}
	return Digest(h.Sum(nil))
}

func sumFile(h io.Writer, path string) {
	// Each file gets a digest of its own, so that the end of one and the name of the next cannot be confused.
	inner := sha256.New()
	state := "file"
	if err := copyFile(inner, path); err != nil {
		state = "unreadable: " + reason(err)
	}
	fmt.Fprintf(h, "%s\x00%s\x00%x", path, state, inner.Sum(nil))
}

func copyFile(w io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // reading a pipe would wait for a writer
		return errors.New("not a regular file")
	}
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// reason is an error without the path, which is the same each time anyway.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}
