package testpg

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// standbyName is what the primary calls its synchronous standby.
const standbyName = "sluice_standby"

// Standby starts a synchronous standby of the server and returns when it follows: from then on a commit on the server answers only once the
// standby has it. It is stopped when the test ends.
func (s *Server) Standby(tb TB) *Server {
	tb.Helper()
	standby, err := s.standby()
	if err != nil {
		tb.Fatalf("testpg: standby: %v", err)
	}
	standby.tb = tb
	tb.Cleanup(standby.discard)
	return standby
}

func (s *Server) standby() (*Server, error) {
	standby, err := newServer(s.config)
	if err != nil {
		return nil, err
	}
	standby.template = s.template
	err = run(standby.as, "pg_basebackup", "-D", standby.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", Superuser,
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--wal-method=stream", "-d", "application_name="+standbyName)
	if err == nil {
		err = standby.launch()
	}
	if err == nil {
		err = s.followed()
	}
	if err != nil {
		standby.discard()
		return nil, err
	}
	return standby, nil
}

// followed makes the server wait for its standby at every commit.
func (s *Server) followed() error {
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + standbyName + "'", "SELECT pg_reload_conf()"} {
		if err := s.Exec(Superuser, "postgres", sql); err != nil {
			return err
		}
	}
	return poll(readyLimit, nil, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, s.url(Superuser, "postgres"))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		var state string
		if err := conn.QueryRow(ctx, "SELECT coalesce(max(sync_state), 'none') FROM pg_stat_replication").Scan(&state); err != nil || state != "sync" {
			return fmt.Errorf("the standby is in state %q (%v)", state, err)
		}
		return nil
	})
}

// Promote makes a standby take writes and returns when it does. Kill the primary first: nothing else keeps two from taking writes.
func (s *Server) Promote() {
	s.helper()
	if err := s.Exec(Superuser, "postgres", "SELECT pg_promote()"); err != nil {
		s.tb.Fatalf("testpg: promote: %v", err)
	}
	// It copied the name of the standby to wait for, which is its own.
	for _, sql := range []string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"} {
		if err := s.Exec(Superuser, "postgres", sql); err != nil {
			s.tb.Fatalf("testpg: promote: %v", err)
		}
	}
}

// EitherURL is a URL of a database that leads to whichever of the servers takes writes.
func EitherURL(role, database string, servers ...*Server) string {
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&target_session_attrs=read-write", role, strings.Join(addrs, ","), database)
}
