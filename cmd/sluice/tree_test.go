package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/testnode"
)

// commands are all that users see, the root included.
func commands(t *testing.T) []*cobra.Command {
	t.Helper()
	var all []*cobra.Command
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		all = append(all, cmd)
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(newRoot())
	if len(all) < 20 {
		t.Fatalf("only %d commands", len(all))
	}
	return all
}

func TestCommands_HelpHasAnExample(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands(t) {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append(strings.Fields(cmd.CommandPath())[1:], "--help"))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s --help: %v", cmd.CommandPath(), err)
		}
		if !strings.Contains(out.String(), "Examples:\n") || !strings.Contains(cmd.Example, cmd.CommandPath()) || cmd.Short == "" {
			t.Errorf("%s --help shows no example of it:\n%s", cmd.CommandPath(), out.String())
		}
	}
}

func TestCommands_ExamplesUseFlagsThatExist(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands(t) {
		for line := range strings.Lines(cmd.Example) {
			words := strings.Fields(line)
			at := slices.Index(words, "sluice")
			if at < 0 { // source <(sluice completion bash)
				continue
			}
			used, rest, err := newRoot().Find(words[at+1:])
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			for _, word := range rest {
				name, isFlag := strings.CutPrefix(word, "--")
				name, _, _ = strings.Cut(name, "=")
				if isFlag && used.Flag(name) == nil && name != "help" {
					t.Errorf("%q: %s has no flag --%s", strings.TrimSpace(line), used.CommandPath(), name)
				}
			}
		}
	}
}

func TestCommands_ThatPrintDataPrintJSON(t *testing.T) {
	t.Parallel()
	for _, cmd := range commands(t) {
		name := strings.TrimPrefix(cmd.CommandPath(), "sluice ")
		flag := cmd.Flags().Lookup("output")
		switch name {
		case "check", "explain", "inspect", "reset", "refund", "status", "tail", "doctor", "config print", "history verify",
			"rules list", "rules get", "rules apply", "rules diff", "rules delete", "rules history", "rules rollback", "rules test",
			"tiers list", "tiers get", "tiers set", "tiers delete", "subjects get", "subjects set", "subjects delete", "subjects import",
			"overrides list", "overrides set", "overrides delete", "keys create", "keys list", "keys rotate", "keys revoke",
			"blocks list", "blocks set", "blocks delete", "exemptions list", "exemptions set", "exemptions delete",
			"tokens create", "tokens list", "tokens revoke", "nodes", "namespaces list", "namespaces create", "context list":
			if flag == nil || flag.Value.Type() != "form" || flag.Value.Set("json") != nil || flag.Value.Set("xml") == nil {
				t.Errorf("%s has no --output json", name)
			}
		}
	}
}

func TestCompletion_IsWrittenForEveryShell(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := testnode.Run(t, nil, "completion", shell); out.Code != 0 || !strings.Contains(out.Stdout, "sluice") || len(out.Stdout) < 1000 {
			t.Errorf("%s: got exit code %d and %d bytes:\n%s", shell, out.Code, len(out.Stdout), out.Stderr)
		}
	}
}

func TestCompletion_OffersFieldsAndForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args       []string
		want, lack string
	}{
		{[]string{"check", ""}, "user=", ""},
		{[]string{"check", "user=u_42", ""}, "route=", "user="},
		{[]string{"status", "--output", ""}, "json", "toml"},
		{[]string{"config", "print", "--output", ""}, "toml", "text"},
		{[]string{"in"}, "inspect", "check"},
	} {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(append([]string{"__complete"}, c.args...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		offered := strings.Split(out.String(), "\n")
		has := func(word string) bool {
			return slices.ContainsFunc(offered, func(line string) bool { first, _, _ := strings.Cut(line, "\t"); return first == word })
		}
		if !has(c.want) || c.lack != "" && has(c.lack) {
			t.Errorf("%q: offered %q, want %s and not %s", c.args, offered, c.want, c.lack)
		}
	}
}

func TestDocs_NameEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, cmd := range commands(t) {
		if !strings.Contains(page, "`"+cmd.CommandPath()) {
			t.Errorf("docs/cli.md does not name `%s`", cmd.CommandPath())
		}
		for name := range flagNames(cmd) {
			if !strings.Contains(page, "--"+name) {
				t.Errorf("docs/cli.md does not name --%s of %s", name, cmd.CommandPath())
			}
		}
	}
	for _, variable := range []string{"SLUICE_SERVER", "SLUICE_ADMIN", "SLUICE_ADMIN__TOKEN", "SLUICE_ADMIN__TOKEN_FILE", "SLUICE_CONFIG", "SLUICE_CONTEXT"} {
		if !strings.Contains(page, "`"+variable+"`") {
			t.Errorf("docs/cli.md does not name %s", variable)
		}
	}
}
