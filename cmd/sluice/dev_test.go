package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
)

// startDev runs sluice dev and returns what it printed once it answers.
func startDev(t *testing.T) (printed []string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, testnode.Binary(t), "dev", "--quiet")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		printed = append(printed, lines.Text())
		if strings.Contains(lines.Text(), "Ctrl-C") {
			break
		}
	}
	if lines.Err() != nil || len(printed) == 0 {
		t.Fatalf("sluice dev printed nothing: %v\n%s", lines.Err(), &stderr)
	}
	return printed, func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		err := cmd.Wait()
		if stderr.Len() > 0 {
			t.Errorf("it warned:\n%s", &stderr)
		}
		return err
	}
}

func TestDev_AnswersTheCommandsItPrints(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	printed, stop := startDev(t)
	ran := 0
	for _, line := range printed {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "curl "):
			out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "curl ", "curl -sS --fail-with-body ", 1)).CombinedOutput()
			if err != nil || len(out) == 0 {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
			ran++
		case strings.Contains(line, " sluice tail "): // only that it connects: it stays until it is stopped
			env, rest, _ := strings.Cut(line, " sluice tail ")
			tl := startTail(t, []string{env}, strings.Fields(rest)...)
			t.Cleanup(func() { _ = tl.cmd.Process.Kill(); _ = tl.wait() })
			ran++
		}
	}
	if ran < 4 {
		t.Errorf("it printed %d commands, want 4 or more:\n%s", ran, strings.Join(printed, "\n"))
	}
	// Its first sentence says that the third search is refused. One is charged already.
	codes := ""
	for range 2 {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", lineWith(t, printed, "/v1/check")+" -s -o /dev/null -w %{http_code}").Output()
		if err != nil {
			t.Fatal(err)
		}
		codes += string(out)
	}
	if codes != "200429" {
		t.Errorf("the second and third search were answered %s, want 200 and 429", codes)
	}
	if err := stop(); err != nil {
		t.Errorf("Ctrl-C: %v, want a success", err)
	}
}

func TestDev_RulesActWhenTheirFileChangesAndAreGoneAtTheEnd(t *testing.T) {
	t.Parallel()
	printed, stop := startDev(t)
	_, file, _ := strings.Cut(lineWith(t, printed, "rules in"), "rules in ")
	check := lineWith(t, printed, "/v1/check")
	_, server, _ := strings.Cut(check, "http://")
	server, _, _ = strings.Cut(server, "/")
	if err := os.WriteFile(file, []byte("[[rule]]\nname = \"none\"\naction = \"block\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		out := testnode.Run(t, []string{"SLUICE_SERVER=http://" + server}, "check", "--peek", "user=a")
		if out.Code == exitRefused {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the changed rules do not act: %s%s", out.Stdout, out.Stderr)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(file))); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}

// lineWith is the printed line that has a text in it.
func lineWith(t *testing.T, printed []string, text string) string {
	t.Helper()
	for _, line := range printed {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no line has %q:\n%s", text, strings.Join(printed, "\n"))
	return ""
}
