package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/testnode"
)

func TestSubjectsImport_TakesAllOrNothing(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	var csv strings.Builder
	csv.WriteString("dimension,id,tier\n")
	for i := range 20_000 {
		fmt.Fprintf(&csv, "user,u_%d,pro\n", i)
	}
	good := writeFile(t, "good.csv", csv.String())
	run(t, env, 0, "20000", "subjects", "import", good, "--dry-run", "-o", "json")
	run(t, env, exitError, "not found", "subjects", "get", "user=u_19999")
	run(t, env, exitError, "line 20002: dimension", "subjects", "import", writeFile(t, "bad.csv", csv.String()+"ip,192.0.2.1,pro\n"))
	run(t, env, exitError, "not found", "subjects", "get", "user=u_0")
	out := run(t, env, 0, "20000 subjects are on record", "subjects", "import", good, "--reason", "from billing")
	if out.Stderr != "" {
		t.Errorf("without a terminal there is no bar, got %q", out.Stderr)
	}
	run(t, env, 0, "tier: pro", "subjects", "get", "user=u_19999")
	run(t, env, 0, "20000 subjects are on record", "subjects", "import", good)
	run(t, env, exitError, "no such file", "subjects", "import", "/nonexistent.csv")
}

func TestSubjectsImport_ThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	s := subjectImport{timeout: time.Minute}
	s.adminFlags(&cobra.Command{})
	s.resolved, s.url = true, strings.TrimPrefix(env[1], "SLUICE_ADMIN=")
	s.tokenFile = writeFile(t, "token", testnode.AdminToken)
	var csv strings.Builder
	csv.WriteString("dimension,id,tier\n")
	for i := range 50_000 {
		fmt.Fprintf(&csv, "user,b_%d,pro\n", i)
	}
	broken := io.MultiReader(strings.NewReader(csv.String()), iotest.ErrReader(errors.New("the disk is gone")))
	if _, err := s.send(t.Context(), broken, newProgress(io.Discard, sending, 60_000)); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("got %v, want why it broke off", err)
	}
	run(t, env, exitError, "not found", "subjects", "get", "user=b_0")
}
