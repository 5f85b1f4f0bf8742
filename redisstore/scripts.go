package redisstore

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1; nothing secret depends on it.
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/internal/algo"
)

// Script is a Lua script and the name Redis knows it by.
type Script struct {
	Name string // for logs and errors
	Text string
	SHA  string

	timed bool // the reply starts with the store's time
}

//go:embed scripts/*.lua
var sources embed.FS

// Each algorithm is written once, as a piece without closures or returns, and stands in the frames that use it: one
// (a single limit, an integer reply, the cheapest) and take (groups of limits). The composed texts are kept in
// testdata/*.lua, so that people read what runs.
var (
	scriptOne = map[algo.Kind]*Script{
		algo.TokenBucket:   compose("one_token_bucket", "one_bucket", "piece", "token_bucket"),
		algo.LongBucket:    compose("one_long_bucket", "one_bucket", "piece", "long_bucket"),
		algo.SlidingWindow: compose("one_sliding_window", "one", "piece", "sliding_window"),
		algo.FixedWindow:   compose("one_fixed_window", "one", "piece", "fixed_window"),
		algo.SlidingLog:    compose("one_sliding_log", "one_log"),
	}
	scriptTake  = compose("take", "take")
	scriptPeek  = compose("peek", "peek")
	scriptGive  = compose("give", "give")
	scriptReset = compose("reset", "reset")
)

// Scripts returns every script the store runs, for tools that load or check them ahead of time.
func Scripts() []*Script {
	all := []*Script{scriptTake, scriptPeek, scriptGive, scriptReset}
	for _, kind := range []algo.Kind{algo.TokenBucket, algo.LongBucket, algo.SlidingWindow, algo.FixedWindow, algo.SlidingLog} {
		all = append(all, scriptOne[kind])
	}
	return all
}

// NewScript names a text as Redis does.
func NewScript(name, text string) *Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &Script{Name: name, Text: text, SHA: hex.EncodeToString(sum[:])}
}

// compose puts pieces in the place of their marks. alias renames one mark: mark, piece.
func compose(name, frame string, alias ...string) *Script {
	text := source(frame)
	if len(alias) == 2 {
		text = strings.ReplaceAll(text, mark(alias[0]), mark(alias[1]))
	}
	// A frame may include a piece that includes others, never deeper.
	for range 2 {
		for _, piece := range []string{"sets", "check", "sliding_log", "sliding_log_write", "token_bucket", "long_bucket", "sliding_window", "fixed_window"} {
			text = include(text, piece)
		}
	}
	s := NewScript(name, onlyWhatCharges(text, frame != "peek"))
	s.timed = frame == "take" || frame == "peek"
	return s
}

// onlyWhatCharges keeps or drops the lines that pieces mark with --set: they make the value to store, which a frame that
// charges nothing has no use for.
func onlyWhatCharges(text string, charges bool) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		line, marked := strings.CutSuffix(line, " --set")
		if charges || !marked {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func mark(piece string) string { return "--[[" + piece + "]]" }

// include replaces a piece's marks by its text, indented as the mark is.
func include(text, piece string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if indent, found := strings.CutSuffix(line, mark(piece)); found {
			body := strings.TrimSuffix(pieceText(piece), "\n")
			lines[i] = indent + strings.ReplaceAll(body, "\n", "\n"+indent)
		}
	}
	return strings.Join(lines, "\n")
}

// pieceText returns a piece; the two tick lengths of the token bucket are one text.
func pieceText(piece string) string {
	switch piece {
	case "token_bucket":
		return strings.NewReplacer("{ticks}", "8192", "{other}", "8", "{decode}", "v+0", "{convert}", "d=math.min(d*1024,6755399441055744)",
			"\n{encode} --set", "").Replace(source("token_bucket"))
	case "long_bucket":
		return strings.NewReplacer("{ticks}", "8", "{other}", "8192", "{decode}", "-1-v", "{convert}", "d=(d+1023-(d+1023)%1024)/1024",
			"{encode}", "set=-1-set").Replace(source("token_bucket"))
	}
	return source(piece)
}

func source(name string) string {
	text, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("redisstore: script %s is not embedded: %v", name, err))
	}
	return string(text)
}
