package testpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehq/sluice/internal/testredis"
)

// orphanMode names the variable that makes this binary start a server and then end badly.
const orphanMode = "SLUICE_TESTPG_ORPHAN"

// TestMain lets the binary play the program that a test ends by force.
func TestMain(m *testing.M) {
	if os.Getenv(orphanMode) != "" {
		s := Start(testredis.Program(), Options{})
		fmt.Println(s.PID(), s.dir)
		_, _ = os.Stdin.Read(make([]byte, 1)) // for ever: the parent holds the other end and kills
	}
	os.Exit(m.Run())
}

// ask returns one number, or the error.
func ask(t *testing.T, url, sql string) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	var n int
	return n, conn.QueryRow(ctx, sql).Scan(&n)
}

func TestNew_GivesEachTestADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := New(t), New(t)
	a.Exec(t, Owner, "CREATE TABLE mine ()")
	b.Exec(t, Owner, "CREATE TABLE mine ()")
	if n, err := ask(t, a.URL(), "SELECT value::int FROM sluice.revision"); err != nil || n != 0 {
		t.Errorf("revision %d (%v), want 0: the tables are there", n, err)
	}
	var denied *pgconn.PgError
	if _, err := ask(t, a.URL(), "CREATE TABLE sluice.mine ()"); !errors.As(err, &denied) {
		t.Errorf("the application made a table (%v)", err)
	}
}

func TestServer_RestartKeepsPortAndData(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	d := s.Database(t)
	for name, end := range map[string]func(){"Kill": s.Kill, "Stop": s.Stop, "nothing": func() {}} {
		d.Exec(t, Superuser, "UPDATE sluice.revision SET value = value + 1")
		before, port := s.PID(), s.Port()
		want, err := ask(t, d.URL(), "SELECT value::int FROM sluice.revision")
		if err != nil {
			t.Fatal(err)
		}
		end()
		s.Restart()
		got, err := ask(t, d.URL(), "SELECT value::int FROM sluice.revision")
		if err != nil || got != want || s.PID() == before || s.Port() != port {
			t.Errorf("after %s: %d (%v), want %d", name, got, err, want)
		}
	}
}

func TestServer_PausedKeepsConnectionsAndSilence(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	conn, err := pgx.Connect(t.Context(), s.Database(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	s.Pause()
	answer := make(chan error)
	go func() { _, err := conn.Exec(t.Context(), "SELECT 1"); answer <- err }()
	select {
	case err := <-answer:
		t.Errorf("a paused server answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Resume()
	if err := <-answer; err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

func TestStandby_HasEveryCommitWhenThePrimaryIsKilled(t *testing.T) {
	t.Parallel()
	primary := Start(t, Options{})
	d := primary.Database(t)
	standby := primary.Standby(t)
	url := EitherURL(Superuser, d.Name, primary, standby)
	for range 50 {
		d.Exec(t, Superuser, "UPDATE sluice.revision SET value = value + 1")
	}
	primary.Kill()
	standby.Promote()
	if n, err := ask(t, url, "UPDATE sluice.revision SET value = value + 1 RETURNING value::int"); err != nil || n != 51 {
		t.Errorf("the first write on the new primary gives %d (%v), want 51", n, err)
	}
}

func TestServer_DiesWithItsProcessAndLeavesNothing(t *testing.T) {
	t.Parallel()
	temp, err := os.MkdirTemp("", "sluice-testpg-orphan-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	if err := os.Chmod(temp, 0o755); err != nil { // the server's user has to get through
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanMode+"=1", "TMPDIR="+temp)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	fields := strings.Fields(line)
	if len(fields) != 2 {
		t.Fatalf("the program printed %q (%v), want a pid and a directory", line, readErr)
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	err = poll(readyLimit, nil, func() error {
		if state := stateOf(pid); state != 0 && state != 'Z' {
			return fmt.Errorf("process %d is in state %q", pid, state)
		}
		left, err := filepath.Glob(filepath.Join(temp, "sluice-testpg-*"))
		if err != nil || len(left) > 0 {
			return fmt.Errorf("directories %q are left (%w)", left, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
