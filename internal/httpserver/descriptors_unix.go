//go:build unix

package httpserver

import "syscall"

// descriptors is how many files this process may open. The Go runtime has raised it as far as it can.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > plenty {
		return plenty
	}
	return int(limit.Cur)
}
