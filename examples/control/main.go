// Command control shows the control plane at work: a PostgreSQL and a Redis of its own, two nodes, and an operator who sets limits, moves a
// customer to another plan, blocks one, changes a rule and takes it back, each acting on both nodes at once; then PostgreSQL is killed
// and decisions go on. It prints every command and what it answered, and leaves with status 1 where anything is not as promised.
// Everything happens on loopback.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

// patience bounds the whole show; most of it is for compiling on a cold cache.
const patience = 3 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, patience)
	program := testredis.Program()
	err := show(ctx, os.Stdout, program)
	program.Close()
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart-control:", err)
		os.Exit(1)
	}
}

const rules = `
[[rule]]
name   = "everyone"
key    = ["user"]
limits = [{ limit = 2, window = "1h" }]

[[rule]]
name     = "paying"
priority = 50
match    = { tiers = ["pro"] }
key      = ["user"]
limits   = [{ limit = 1000, window = "1h" }]
`

// show is the whole of it. What it starts is gone when the clean-ups of tb have run.
func show(ctx context.Context, out io.Writer, tb testredis.TB) error {
	database := testpg.Start(tb, testpg.Options{Empty: true})
	place := database.Database(tb)
	redis := testredis.Single(tb, testredis.Options{})
	s := &stage{out: out, sluice: testnode.Binary(tb), files: tb.TempDir()}
	s.say("A PostgreSQL on %s, a Redis on %s. The tables first, as their owner:", database.Addr(), redis.Addr())
	if err := s.run(ctx, step{does: "migrate --url " + place.OwnerURL(), tells: "up to date"}); err != nil {
		return err
	}
	for _, name := range []string{"node-a", "node-b"} {
		node := testnode.Start(tb, testnode.Options{
			Name: name, Database: place.URL(), Config: fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n", redis.Addr()),
		})
		s.nodes = append(s.nodes, node)
	}
	s.say("Two nodes run. Limits go to one of them:")
	if err := s.write("rules.toml", rules); err != nil {
		return err
	}
	if err := s.all(ctx, limits...); err != nil {
		return err
	}
	s.say("The rule is changed in its file, and applied:")
	if err := s.write("rules.toml", strings.Replace(rules, "limit = 2,", "limit = 5,", 1)); err != nil {
		return err
	}
	if err := s.all(ctx, changes...); err != nil {
		return err
	}
	database.Kill()
	s.say("PostgreSQL is killed. Decisions go on, changes are refused:")
	if err := s.all(ctx, without...); err != nil {
		return err
	}
	s.say("All as promised. The same by hand: docs/control-plane.md")
	return nil
}

// The acts. What is changed on one node is asked for on the other.
var (
	limits = []step{
		{does: "rules apply --file rules.toml --yes --reason first-limits", tells: "paying"},
		{on: 1, does: "check --peek user=ann", tells: "everyone", retry: true},
		{says: "They count together:"},
		{on: 0, does: "check user=ann", tells: "allowed"},
		{on: 1, does: "check user=ann", tells: "allowed"},
		{on: 0, does: "check user=ann", tells: "refused", status: 3},
		{says: "Ann pays now. Her plan acts on the other node at once:"},
		{does: "subjects set user=ann tier=pro --reason upgraded", tells: "pro"},
		{on: 1, does: "check user=ann", tells: "paying", retry: true},
		{does: "blocks set user=mallory --reason abuse --until 24h", tells: "mallory"},
		{on: 1, does: "check user=mallory", tells: "refused", status: 3, retry: true},
	}
	changes = []step{
		{does: "rules apply --file rules.toml --yes --reason more-for-everyone", tells: "everyone"},
		{on: 1, does: "check --peek user=bob", tells: "5 per", retry: true},
		{on: 1, does: "rules history", tells: "more-for-everyone"},
		{says: "It was a mistake. The way back is a change like any other:"},
		{on: 1, does: "rules rollback 1 --yes --reason mistake", tells: "everyone"},
		{on: 0, does: "check --peek user=carl", tells: "2 per", retry: true},
		{does: "nodes", tells: "node-b", retry: true},
	}
	without = []step{
		{on: 1, does: "check user=dora", tells: "allowed"},
		{on: 0, does: "check user=ann", tells: "paying"},
		{does: "blocks set user=eve --reason abuse", tells: "database", status: 1},
	}
)

// step is a command of sluice, and what it must answer.
type step struct {
	says   string // instead of a command
	on     int    // the node that is asked
	does   string
	tells  string // somewhere in the answer
	status int
	// retry: a change before it is on its way, and may take a second.
	retry bool
}

// stage is where it happens.
type stage struct {
	out    io.Writer
	sluice string
	files  string
	nodes  []*testnode.Node
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.out, "\n# "+format+"\n", args...) }

func (s *stage) write(name, text string) error {
	return os.WriteFile(filepath.Join(s.files, name), []byte(text), 0o600)
}

func (s *stage) all(ctx context.Context, steps ...step) error {
	for _, step := range steps {
		if step.says != "" {
			s.say("%s", step.says)
			continue
		}
		if err := s.run(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// run does one command and prints it with its answer.
func (s *stage) run(ctx context.Context, step step) error {
	const within = 5 * time.Second // on a machine that has other things to do
	answer, status := s.ask(ctx, step)
	for began := time.Now(); step.retry && !step.is(answer, status) && time.Since(began) < within; {
		time.Sleep(20 * time.Millisecond)
		answer, status = s.ask(ctx, step)
	}
	where := ""
	if len(s.nodes) > 0 {
		where = fmt.Sprintf("    # node-%c", 'a'+step.on)
	}
	fmt.Fprintf(s.out, "\n$ sluice %s%s\n%s", step.does, where, answer)
	if !step.is(answer, status) {
		return fmt.Errorf("sluice %s left with %d, want %d and %q in the answer", step.does, status, step.status, step.tells)
	}
	return nil
}

func (step *step) is(answer string, status int) bool {
	return status == step.status && strings.Contains(answer, step.tells)
}

func (s *stage) ask(ctx context.Context, step step) (answer string, status int) {
	cmd := exec.CommandContext(ctx, s.sluice, strings.Fields(step.does)...)
	cmd.Dir = s.files
	cmd.Env = slices.Concat(os.Environ(), []string{"NO_COLOR=1", "HOME=" + s.files})
	if len(s.nodes) > 0 {
		node := s.nodes[step.on]
		cmd.Env = append(cmd.Env, "SLUICE_ADMIN=http://"+node.Admin, "SLUICE_SERVER=http://"+node.HTTP, "SLUICE_ADMIN__TOKEN="+testnode.AdminToken)
	}
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return string(text), exit.ExitCode()
	case err != nil:
		return err.Error(), -1
	}
	return string(text), 0
}
