package testpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/postgres"
)

// base is a cluster of databases that others are copies of: initdb takes seconds, a copy a tenth of one.
type baseCluster struct {
	once sync.Once
	dir  string
	err  error
}

var base, emptyBase baseCluster

// start makes a server from a copy of the base and launches it.
func start(opts Options) (*Server, error) {
	from, migrated := &base, template
	if opts.Empty {
		from, migrated = &emptyBase, "template0"
	}
	from.once.Do(func() { from.dir, from.err = makeBase(!opts.Empty) })
	if from.err != nil {
		return nil, from.err
	}
	s, err := newServer(opts.Config)
	if err != nil {
		return nil, err
	}
	s.template = migrated
	if out, err := exec.Command("cp", "-a", from.dir, s.data()).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy the base: %w: %s", err, out)
	}
	if opts.TLS {
		if err := s.encrypt(); err != nil {
			return nil, err
		}
	}
	if err := s.launch(); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// newServer makes a directory for a server.
func newServer(config []string) (*Server, error) {
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	// Not the test's own directory: that is closed to all but us, and PostgreSQL runs as another.
	dir, err := os.MkdirTemp("", "sluice-testpg-")
	if err != nil {
		return nil, err
	}
	s := &Server{as: as, dir: dir, config: config}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	s.janitor, err = hire(dir)
	return s, err
}

// makeBase runs initdb, makes the roles and, where asked, a migrated template, and returns the directory.
func makeBase(withTables bool) (string, error) {
	s, err := newServer(nil)
	if err != nil {
		return "", err
	}
	err = run(s.as, "initdb", "-D", s.data(), "-U", Superuser, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	if err != nil {
		return "", err
	}
	if err := s.launch(); err != nil {
		return "", err
	}
	if err := s.furnish(withTables); err != nil {
		s.discard()
		return "", err
	}
	p := s.process()
	if err := p.signal(syscall.SIGINT); err != nil { // orderly: a copy of a crashed server would have to recover first
		return "", err
	}
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		s.discard()
		return "", errors.New("initial server does not stop")
	}
	return s.data(), os.Remove(filepath.Join(s.dir, "log"))
}

// furnish makes roles and the template.
func (s *Server) furnish(withTables bool) error {
	for _, sql := range []string{
		"CREATE ROLE " + Owner + " LOGIN",
		"CREATE ROLE " + App + " LOGIN",
	} {
		if err := s.Exec(Superuser, "postgres", sql); err != nil {
			return err
		}
	}
	if !withTables {
		return nil
	}
	if err := s.Exec(Superuser, "postgres", "CREATE DATABASE "+template+" OWNER "+Owner); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), execLimit)
	defer cancel()
	return postgres.Migrate(ctx, s.url(Owner, template), nil)
}
