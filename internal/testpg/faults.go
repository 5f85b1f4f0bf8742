package testpg

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Kill ends the server and its children at once, as a power cut would but for what the system had to write, and returns when it is gone.
// Killing a dead server does nothing.
func (s *Server) Kill() {
	s.helper()
	p := s.process()
	if !p.running() {
		return
	}
	if err := p.killAll(); err != nil && p.running() {
		s.tb.Fatalf("testpg: kill: %v", err)
	}
}

// Stop lets the server end connections and shut down, and returns when it is gone.
func (s *Server) Stop() {
	s.helper()
	p := s.process()
	_ = p.all(syscall.SIGCONT) // a paused server hears nothing
	if err := p.signal(syscall.SIGINT); err != nil {
		s.tb.Fatalf("testpg: stop: %v", err)
	}
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		s.Kill()
	}
}

// Pause stops the server and its children, as a hung machine would be: connections stay open and nothing answers.
func (s *Server) Pause() {
	s.helper()
	if err := s.process().all(syscall.SIGSTOP); err != nil {
		s.tb.Fatalf("testpg: pause: %v", err)
	}
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.helper()
	if err := s.process().all(syscall.SIGCONT); err != nil {
		s.tb.Fatalf("testpg: resume: %v", err)
	}
}

// Restart kills the server if it still runs and starts it again on the same port, with its data.
func (s *Server) Restart() {
	s.helper()
	s.Kill()
	if err := s.launchOn(); err != nil {
		s.tb.Fatalf("testpg: restart: %v", err)
	}
}

func (s *Server) helper() {
	if s.tb == nil {
		panic("testpg: the server that tests share is not to be stopped: use Start")
	}
	s.tb.Helper()
}

// discard ends the server, orderly where it can, and removes its directory.
func (s *Server) discard() {
	p := s.process()
	if p != nil && p.running() {
		_ = p.all(syscall.SIGCONT)
		_ = p.signal(syscall.SIGQUIT)
		select {
		case <-p.done:
		case <-time.After(stopLimit):
			_ = p.killAll()
		}
	}
	s.freeSegment()
	_ = os.RemoveAll(s.dir)
	s.janitor.dismiss()
}

// freeSegment removes the shared memory that a killed server could not. Its id is the second number in line 7 of postmaster.pid.
func (s *Server) freeSegment() {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return // it ended orderly
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return
	}
	var key, id uintptr
	if _, err := fmt.Sscan(lines[6], &key, &id); err == nil {
		_, _, _ = syscall.Syscall(syscall.SYS_SHMCTL, id, 0, 0) // IPC_RMID
	}
}
