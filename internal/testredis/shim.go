package testredis

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// shimSource is the C that moves a server's clock. It is compiled here, on first use, and not
// by make deps, so that the library in use always is the source in the tree.
//
//go:embed clockshim/clockshim.c
var shimSource []byte

// buildShim returns the path of the compiled shim. It is kept in the user's cache directory under
// the hash of its source, so each version of it is compiled once per machine. Safe to call from
// several processes at a time: each compiles to a name of its own and renames.
func buildShim() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the clock shim: %w; set HOME or XDG_CACHE_HOME", err)
	}
	dir := filepath.Join(cache, "sluice")
	path := filepath.Join(dir, fmt.Sprintf("clockshim-%s-%x.so", runtime.GOARCH, sha256.Sum256(shimSource)))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)

	source, built := filepath.Join(work, "clockshim.c"), filepath.Join(work, "clockshim.so")
	if err := os.WriteFile(source, shimSource, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-o", built, source).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("gcc not found, which the movable clock needs: install gcc: make deps")
	}
	if err != nil {
		return "", fmt.Errorf("compile the clock shim: %w (are the C headers installed? make deps):\n%s", err, out)
	}
	return path, os.Rename(built, path)
}
