package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
)

// runConfig runs "sluice config ARGS" with a file, and returns what it printed.
func runConfig(t *testing.T, file string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := &config.Flags{}
	root := &cobra.Command{Use: "sluice", SilenceUsage: true, SilenceErrors: true}
	flags.AddTo(root.PersistentFlags())
	root.AddCommand(newConfig(flags))
	tellUsage(root)
	var out, errs strings.Builder
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"config", "--config", path}, args...))
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestConfigCheck_ListsFaultsAndWarnings(t *testing.T) {
	t.Parallel()
	_, _, err := runConfig(t, "[http]\nlistne = ':1'\nmax_in_flight = 0", "check")
	if err == nil || !strings.Contains(err.Error(), "2 faults") || exitCode(err) != exitError {
		t.Errorf("got %v, want two faults", err)
	}
	out, errs, err := runConfig(t, "gateway.listen = ':1'", "check")
	if err != nil || !strings.HasPrefix(out, "ok: ") || !strings.HasPrefix(errs, "warning: gateway.listen") {
		t.Errorf("got %q, %q, %v", out, errs, err)
	}
}

func TestConfigPrint_ShowsOrigins(t *testing.T) {
	t.Parallel()
	out, _, err := runConfig(t, "node = 'a'", "print", "--effective", "--set", "log.level=warn")
	if err != nil || !strings.Contains(out, "# from sluice.toml:1") || !strings.Contains(out, "# from --set") || !strings.Contains(out, "# default") {
		t.Errorf("got %q, %v", out, err)
	}
	out, _, err = runConfig(t, "node = 'a'", "print", "-o", "json")
	if err != nil || !json.Valid([]byte(out)) {
		t.Errorf("got %q, %v", out, err)
	}
	if _, _, err := runConfig(t, "", "print", "-o", "xml"); exitCode(err) != exitUsage {
		t.Errorf("got %v, want a usage error", err)
	}
}

func TestConfigSchema_PrintsJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"schema"}, {"schema", "--rules"}} {
		if out, _, err := runConfig(t, "", args...); err != nil || !json.Valid([]byte(out)) {
			t.Errorf("%v: got %q, %v", args, out, err)
		}
	}
}
