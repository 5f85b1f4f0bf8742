package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"unicode"
	"unicode/utf8"
)

// Logger returns a logger that writes to w: "json", "text", or "auto", which is text where w is a terminal and JSON
// elsewhere. Neither form is coloured. Whatever is logged, no control character and nothing that turns the direction
// of writing reaches w but the line's end, so that a log cannot steer the terminal it is read on.
func Logger(w io.Writer, format string, level *slog.LevelVar) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "text" || format != "json" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(escaper{w}, opts))
	}
	return slog.New(slog.NewJSONHandler(escaper{w}, opts))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// escaper escapes the characters that slog's handlers leave alone and terminals do not: DEL in text; in JSON also the C1
// controls and the marks that turn the direction of writing. In JSON they stand in strings only, where the escape means the same.
type escaper struct{ w io.Writer }

// Write implements io.Writer for whole lines.
func (e escaper) Write(line []byte) (int, error) {
	if bytes.ContainsFunc(line, harmful) {
		if _, err := e.w.Write(escape(line)); err != nil {
			return 0, err
		}
		return len(line), nil
	}
	return e.w.Write(line)
}

func harmful(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }

func escape(line []byte) []byte {
	escaped := make([]byte, 0, len(line)+16)
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case harmful(r) && r > 0xffff: // as JSON writes them: two halves
			r -= 0x10000
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case harmful(r):
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = append(escaped, line[:size]...)
		}
		line = line[size:]
	}
	return escaped
}
