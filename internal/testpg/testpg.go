// Package testpg starts real PostgreSQL processes on free loopback ports, for tests and for benchmark programs, with the tables of sluice in
// them, ready to use when the call returns and gone when the test ends, however it ends.
//
//	db := testpg.New(t)            // a database of the test's own, on a server that the test binary shares
//	pg := testpg.Start(t, testpg.Options{})
//	db := pg.Database(t)           // the same on a server of the test's own, which it may kill, pause and restart
//
// A program that is not a test passes testredis.Program() for t. Linux only: it leans on PR_SET_PDEATHSIG and /proc.
package testpg

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// TB is what this package needs of a testing.TB. Every testing.TB is one, and so is testredis.Main.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Options says how a server is started. The zero value works.
type Options struct {
	// Config is added to the command line after our own settings and so stronger: "shared_buffers=512MB". Default: none.
	Config []string
	// Empty leaves out the template with sluice's tables, for tests of migrations. Default: with it.
	Empty bool
	// TLS has the server refuse connections in plain text; see Server.CAFile. Default: plain text.
	TLS bool
}

// The roles of every server: the owner of the tables, the application, and PostgreSQL's own. None has a password.
const (
	Owner     = "sluice_owner"
	App       = "sluice_app"
	Superuser = "postgres"
)

// Database is one database on a server.
type Database struct {
	Name   string
	Server *Server
}

// URL is how the application connects: a role that can alter no table and is held to row-level security.
func (d *Database) URL() string { return d.As(App) }

// OwnerURL is how sluice migrate connects.
func (d *Database) OwnerURL() string { return d.As(Owner) }

// As is how a role connects.
func (d *Database) As(role string) string { return d.Server.url(role, d.Name) }

// shared is the server of the test binary.
type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
}

var shared sharedServer

// New returns a database of the test's own with sluice's tables, on a server that all tests of the binary share. It is dropped when the test
// ends. Do not kill the server: Start has one for that.
func New(tb TB) *Database {
	tb.Helper()
	shared.once.Do(func() { shared.server, shared.err = start(Options{}) })
	if shared.err != nil {
		tb.Fatalf("testpg: %v", shared.err)
	}
	return shared.server.Database(tb)
}

// Start starts a server of the test's own and returns when it answers. It is stopped when the test ends.
func Start(tb TB, opts Options) *Server {
	tb.Helper()
	s, err := start(opts)
	if err != nil {
		tb.Fatalf("testpg: %v", err)
	}
	s.tb = tb
	tb.Cleanup(s.discard)
	return s
}

// template is the database that others are copies of.
const template = "sluice_template"

// names numbers databases.
var names atomic.Int64

// Database makes a database with sluice's tables, without them where Options.Empty is set. It is dropped when the test ends.
func (s *Server) Database(tb TB) *Database {
	tb.Helper()
	d := &Database{Name: fmt.Sprintf("test_%d", names.Add(1)), Server: s}
	sql := fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE %s STRATEGY FILE_COPY", d.Name, Owner, s.template)
	if err := s.Exec(Superuser, "postgres", sql); err != nil {
		tb.Fatalf("testpg: %v", err)
	}
	if s.tb == nil { // with a server of the test's own it goes in any case
		tb.Cleanup(func() { _ = s.Exec(Superuser, "postgres", "DROP DATABASE IF EXISTS "+d.Name+" WITH (FORCE)") })
	}
	return d
}

// execLimit is more than any statement of a test takes.
const execLimit = 30 * time.Second

// Exec runs statements as a role in a database.
func (s *Server) Exec(role, database, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), execLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url(role, database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s as %s: %w", sql, role, err)
	}
	return nil
}

// Exec runs statements as a role.
func (d *Database) Exec(tb TB, role, sql string) {
	tb.Helper()
	if err := d.Server.Exec(role, d.Name, sql); err != nil {
		tb.Fatalf("testpg: %v", err)
	}
}
