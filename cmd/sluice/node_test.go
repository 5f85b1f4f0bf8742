package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// nodeRules let each user search twice, and do everything else five times, within the test.
const nodeRules = `
[[rule]]
name   = "everything"
key    = ["user"]
limits = [{ algorithm = "fixed_window", limit = 5, window = "365d" }]

[[rule]]
name   = "search"
match  = { routes = ["/search"] }
key    = ["user", "route"]
limits = [{ algorithm = "fixed_window", limit = 2, window = "365d" }]

[[block]]
user   = "mallory"
reason = "abuse\u001b[2J"
`

// startNode runs a node on Redis, and returns the variables by which commands find it.
func startNode(t *testing.T) (node *testnode.Node, env []string) {
	t.Helper()
	redis := testredis.Single(t, testredis.Options{})
	node = testnode.Start(t, testnode.Options{Rules: nodeRules, Config: fmt.Sprintf(
		"[redis]\nurl = \"redis://%s\"\n[limiter]\ntimeout = \"5s\"\n[shutdown]\ngrace = \"10ms\"\n", redis.Addr())})
	return node, []string{"SLUICE_SERVER=http://" + node.HTTP, "SLUICE_ADMIN=http://" + node.Admin, "SLUICE_ADMIN__TOKEN=" + testnode.AdminToken}
}

// run runs a command and fails the test when it ends otherwise or prints something else than wanted.
func run(t *testing.T, env []string, code int, want string, args ...string) testnode.Output {
	t.Helper()
	out := testnode.Run(t, env, args...)
	if out.Code != code || !strings.Contains(out.Stdout+out.Stderr, want) {
		t.Fatalf("sluice %q: got exit code %d, want %d and %q:\n%s%s", args, out.Code, code, want, out.Stdout, out.Stderr)
	}
	return out
}

func TestCheck_ExitsByTheVerdict(t *testing.T) {
	t.Parallel()
	_, env := startNode(t)
	search := []string{"check", "user=u_42", "route=/search"}
	run(t, env, 0, "allowed", search...)
	run(t, env, 0, "allowed", append(search, "--peek")...)
	run(t, env, 0, `"allowed":true`, append(search, "--output", "json")...)
	run(t, env, exitRefused, "refused: try again in", search...)
	run(t, env, exitRefused, `"allowed":false`, append(search, "-o", "json")...)
	run(t, env, 0, "no rule", "check", "ip=192.0.2.1")
	out := run(t, env, exitRefused, "blocked", "check", "user=mallory")
	if strings.Contains(out.Stdout, "\x1b") {
		t.Errorf("the terminal is steered by %q", out.Stdout)
	}
	run(t, env, exitError, "subject/ip", "check", "ip=nonsense")
}

func TestExplain_TellsWhichRulesApplyAndChargesNothing(t *testing.T) {
	t.Parallel()
	_, env := startNode(t)
	for range 3 {
		out := run(t, env, 0, "everything", "explain", "user=u_42", "route=/other")
		if !strings.Contains(out.Stdout, "search") || !strings.Contains(out.Stdout, "no ") {
			t.Errorf("the rule that does not match is not explained:\n%s", out.Stdout)
		}
	}
	var e struct {
		Decision decision `json:"decision"`
	}
	out := run(t, env, 0, "", "explain", "user=u_42", "route=/search", "--output", "json")
	if err := json.Unmarshal([]byte(out.Stdout), &e); err != nil || len(e.Decision.Results) != 2 || e.Decision.Results[0].Remaining < 2 {
		t.Errorf("got %+v, %v, want two results with nothing charged", e, err)
	}
}

func TestInspectResetAndRefund_LookAtAndChangeCounters(t *testing.T) {
	t.Parallel()
	_, env := startNode(t)
	search := []string{"user=u_42", "route=/search"}
	used := func(want int64) {
		t.Helper()
		var in struct {
			Counters []struct {
				Rule, Key string
				Used      int64
			}
		}
		out := run(t, env, 0, "", append([]string{"inspect", "--output", "json"}, search...)...)
		if err := json.Unmarshal([]byte(out.Stdout), &in); err != nil || len(in.Counters) != 2 {
			t.Fatalf("%v in %s", err, out.Stdout)
		}
		for _, c := range in.Counters {
			if c.Used != want || !strings.HasPrefix(c.Key, "rl1:{") {
				t.Errorf("rule %s has used %d at %q, want %d and a key of Redis", c.Rule, c.Used, c.Key, want)
			}
		}
	}
	used(0)
	run(t, env, 0, "allowed", append([]string{"check"}, search...)...)
	run(t, env, 0, "allowed", append([]string{"check"}, search...)...)
	used(2)
	run(t, env, 0, "given back", append([]string{"refund", "cost=1"}, search...)...)
	used(1)
	run(t, env, 0, `"rules":["everything","search"]`, append([]string{"reset", "-o", "json"}, search...)...)
	used(0)
	run(t, env, exitError, "No rule", "reset", "ip=192.0.2.1")
}

func TestStatus_IsForThoseWithTheToken(t *testing.T) {
	t.Parallel()
	node, env := startNode(t)
	run(t, env, 0, `"ready": true`, "status")
	run(t, env, 0, `"ready":true`, "status", "--output", "json")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(testnode.AdminToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := "SLUICE_ADMIN=http://" + node.Admin
	run(t, []string{at, "SLUICE_ADMIN__TOKEN_FILE=" + file}, 0, "ready", "status")
	run(t, []string{"SLUICE_ADMIN__TOKEN_FILE=" + file}, 0, "ready", "status", "--admin", "http://"+node.Admin)
	run(t, []string{at}, exitError, "Bearer", "status")
	run(t, []string{at, "SLUICE_ADMIN__TOKEN=wrong"}, exitError, "Bearer", "status")
	run(t, []string{at, "SLUICE_ADMIN__TOKEN_FILE=/nonexistent"}, exitError, "SLUICE_ADMIN__TOKEN_FILE", "status")
}

func TestTail_ShowsARefusalAsItHappens(t *testing.T) {
	t.Parallel()
	node, env := startNode(t)
	for _, form := range []string{"text", "json"} {
		user := "u_" + form
		for range 2 {
			run(t, env, 0, "allowed", "check", "user="+user, "route=/search")
		}
		tail := startTail(t, env, "--user", user, "--output", form)
		// The tail tells what happens while it is there; until it is, refusals are repeated.
		line := ""
		for deadline := time.Now().Add(20 * time.Second); line == "" && time.Now().Before(deadline); {
			run(t, env, exitRefused, "refused", "check", "user="+user, "route=/search")
			select {
			case line = <-tail.lines:
			case <-time.After(time.Second):
			}
		}
		if !strings.Contains(line, user) || !strings.Contains(line, "/search") {
			t.Errorf("got %q, want the refusal of %s", line, user)
		}
		if form == "json" && !json.Valid([]byte(line)) {
			t.Errorf("got %q, want JSON", line)
		}
		if form == "text" { // ended by whoever watches, it is a success
			_ = tail.cmd.Process.Signal(os.Interrupt)
			if err := tail.wait(); err != nil {
				t.Errorf("interrupted: %v", err)
			}
			continue
		}
		if _, err := node.Stop(20 * time.Second); err != nil {
			t.Fatal(err)
		}
		if err := tail.wait(); err == nil || !strings.Contains(tail.stderr.String(), "stopping") {
			t.Errorf("the node stopped: got %v, %s", err, tail.stderr.String())
		}
	}
}

// tail is a running sluice tail.
type tail struct {
	cmd    *exec.Cmd
	stderr strings.Builder
	lines  chan string
}

func startTail(t *testing.T, env []string, args ...string) *tail {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tl := &tail{cmd: exec.CommandContext(ctx, testnode.Binary(t), append([]string{"tail"}, args...)...), lines: make(chan string, 100)}
	tl.cmd.Env, tl.cmd.Stderr = append(os.Environ(), env...), &tl.stderr
	out, err := tl.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tl.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	go tl.read(out)
	return tl
}

func (tl *tail) read(out io.Reader) {
	defer close(tl.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		tl.lines <- lines.Text()
	}
}

// wait waits until it ended.
func (tl *tail) wait() error {
	for range tl.lines {
		continue // read to the end, as Wait asks for
	}
	return tl.cmd.Wait()
}
