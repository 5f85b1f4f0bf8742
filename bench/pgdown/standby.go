package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
)

// standby is a copy of a server that receives everything before the server answers.
type standby struct {
	dir  string
	port int
	as   *syscall.Credential
}

// newStandby makes one and returns when the primary waits for it. It ends with the program.
func newStandby(ctx context.Context, main testnode.TB, primary *testpg.Server) (*standby, error) {
	s := &standby{}
	var err error
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "sluice-standby-"); err != nil {
		return nil, err
	}
	main.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	if err := s.becomeUnprivileged(); err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	copying := s.command("pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(primary.Port()), "-U", testpg.Superuser, "-D", data, "-R", "-X", "stream", "-c", "fast")
	if out, err := copying.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	server := s.command("postgres", "-D", data, "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "shared_buffers=64MB", "-c", "max_connections=200")
	server.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	if err := server.Start(); err != nil {
		return nil, err
	}
	main.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	if err := primary.Exec(testpg.Superuser, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'"); err != nil {
		return nil, err
	}
	if err := primary.Exec(testpg.Superuser, "postgres", "SELECT pg_reload_conf()"); err != nil {
		return nil, err
	}
	return s, s.until(ctx, primary.Addr(), "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
}

// becomeUnprivileged chooses the user that PostgreSQL runs as, which must not be root.
func (s *standby) becomeUnprivileged() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(s.dir, uid, gid)
}

func (s *standby) command(program string, args ...string) *exec.Cmd {
	path, err := exec.LookPath(program)
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program); err != nil && len(found) > 0 {
		path = found[len(found)-1] // Debian keeps them out of PATH
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = "/", []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

func (s *standby) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// url is that of a database of the primary on the standby.
func (s *standby) url(db *testpg.Database) string {
	u := url.URL{Scheme: "postgres", User: url.User(testpg.App), Host: s.addr(), Path: db.Name, RawQuery: "sslmode=disable"}
	return u.String()
}

// promote makes it a primary and returns when it is one.
func (s *standby) promote(ctx context.Context) error {
	return s.until(ctx, s.addr(), "SELECT pg_promote(true, 30)")
}

// until asks a server until it says yes.
func (s *standby) until(ctx context.Context, addr, question string) error {
	var last error
	for began := time.Now(); time.Since(began) < patience && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		yes := false
		conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", testpg.Superuser, addr))
		if err == nil {
			err = conn.QueryRow(ctx, question).Scan(&yes)
			_ = conn.Close(ctx)
		}
		if yes {
			return nil
		}
		last = err
	}
	return errors.Join(fmt.Errorf("never so: %s", question), last)
}
