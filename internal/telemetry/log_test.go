package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// nasty is what somebody might send to forge lines or to steer a terminal.
var nasty = []string{
	"line one\nlevel=ERROR msg=forged", "\r\x1b[2J\x1b[31mred", "\x9b31m", "\u009b31m", "\x7f", "\u202egpj.exe", "\u2066x\u2069", "a\x00b",
	"\u2028", "\U000e0001tag", "\xff\xfe", `"},{"msg":"forged"`, strings.Repeat("long", 1000),
}

func TestLogger_WritesOneLinePerRecordWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text", "auto"} {
		for _, bad := range nasty {
			var out bytes.Buffer
			log := Logger(&out, format, new(slog.LevelVar))
			log.Info(bad, bad, bad, "error", errors.New(bad), slog.Group(bad, "in", bad), "list", []string{bad})
			wantClean(t, format, bad, out.Bytes())
		}
	}
}

func wantClean(t *testing.T, format, bad string, out []byte) {
	t.Helper()
	line, found := bytes.CutSuffix(out, []byte("\n"))
	if !found || !utf8.Valid(line) {
		t.Fatalf("%s of %q: not one line of UTF-8: %q", format, bad, out)
	}
	if i := bytes.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
		t.Fatalf("%s of %q: a control character at %d of %q", format, bad, i, out)
	}
	if format == "text" {
		return
	}
	var record map[string]any
	if err := json.Unmarshal(line, &record); err != nil {
		t.Fatalf("%s of %q: not JSON: %v: %q", format, bad, err, out)
	}
	if utf8.ValidString(bad) && record["msg"] != bad {
		t.Fatalf("%s: the message became %q, want %q", format, record["msg"], bad)
	}
}

func TestLogger_LevelChangesWhileItRuns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	level := new(slog.LevelVar)
	log := Logger(&out, "text", level)
	log.Debug("hidden")
	level.Set(slog.LevelDebug)
	log.Debug("shown")
	if got := out.String(); strings.Contains(got, "hidden") || !strings.Contains(got, "shown") {
		t.Errorf("got %q", got)
	}
}

func FuzzLogger(f *testing.F) {
	for _, bad := range nasty {
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, bad string) {
		for _, format := range []string{"json", "text"} {
			var out bytes.Buffer
			Logger(&out, format, new(slog.LevelVar)).Info(bad, "value", bad, "error", errors.New(bad))
			wantClean(t, format, bad, out.Bytes())
		}
	})
}
