// Package bar is the frame of every make bar-NAME target: it collects figures with their goals, prints them as a
// table or as JSON, ends with one line that says whether the goals were met, and exits accordingly.
package bar

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// Bar collects the figures of one run.
type Bar struct {
	name    string
	output  *string
	figures []Figure
}

// Figure is one measured value with its goal.
type Figure struct {
	What string  `json:"what"`
	Got  float64 `json:"got"`
	// Must is the goal that decides; Aim, where it differs, is the wish beyond it. Goal tells both in words.
	Must float64 `json:"must"`
	Aim  float64 `json:"aim"`
	Goal string  `json:"goal"`
	Met  bool    `json:"met"`
}

// New starts a bar. It registers the flag --output and parses the command line, so programs declare their own flags first.
func New(name string) *Bar {
	b := &Bar{name: name, output: flag.String("output", "table", "how to print the figures: table or json")}
	flag.Parse()
	return b
}

// Say prints progress, which goes to standard error so that JSON output stays clean.
func (b *Bar) Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// AtLeast records a figure that must reach must and would better reach aim.
func (b *Bar) AtLeast(what string, got, must, aim float64) {
	b.add(Figure{What: what, Got: got, Must: must, Aim: aim, Goal: goal("≥", must, aim), Met: got >= must})
}

// AtMost records a figure that must not exceed must and would better not exceed aim.
func (b *Bar) AtMost(what string, got, must, aim float64) {
	b.add(Figure{What: what, Got: got, Must: must, Aim: aim, Goal: goal("≤", must, aim), Met: got <= must})
}

// Exactly records a count that must equal want.
func (b *Bar) Exactly(what string, got, want int64) {
	b.add(Figure{What: what, Got: float64(got), Must: float64(want), Aim: float64(want), Goal: fmt.Sprintf("= %d", want), Met: got == want})
}

// Shown records a figure without a goal.
func (b *Bar) Shown(what string, got float64) {
	b.add(Figure{What: what, Got: got, Met: true})
}

// AimedAtLeast records a figure with a wish but no goal that decides.
func (b *Bar) AimedAtLeast(what string, got, aim float64) {
	b.add(Figure{What: what, Got: got, Aim: aim, Goal: "aim ≥ " + Format(aim), Met: true})
}

// AimedAtMost records a figure with a wish but no goal that decides.
func (b *Bar) AimedAtMost(what string, got, aim float64) {
	b.add(Figure{What: what, Got: got, Aim: aim, Goal: "aim ≤ " + Format(aim), Met: true})
}

func (b *Bar) add(f Figure) { b.figures = append(b.figures, f) }

// Fatal ends the run as failed before its figures are complete.
func (b *Bar) Fatal(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", b.name, err)
	os.Exit(1)
}

// End prints everything, last the line "NAME: figure … (goal …)", and exits non-zero when a goal was missed.
func (b *Bar) End() {
	met := !slices.ContainsFunc(b.figures, func(f Figure) bool { return !f.Met })
	if *b.output == "json" {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		_ = enc.Encode(struct {
			Name    string   `json:"name"`
			Met     bool     `json:"met"`
			Figures []Figure `json:"figures"`
		}{b.name, met, b.figures})
	} else {
		w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
		for _, f := range b.figures {
			mark := ""
			if !f.Met {
				mark = "MISSED"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", f.What, Format(f.Got), f.Goal, mark)
		}
		_ = w.Flush()
		fmt.Println(b.lastLine())
	}
	if !met {
		os.Exit(1)
	}
}

func (b *Bar) lastLine() string {
	var parts []string
	for _, f := range b.figures {
		if f.Goal != "" {
			parts = append(parts, fmt.Sprintf("%s %s (goal %s)", f.What, Format(f.Got), f.Goal))
		}
	}
	return b.name + ": " + strings.Join(parts, "; ")
}

func goal(sign string, must, aim float64) string {
	if must == aim {
		return sign + " " + Format(must)
	}
	return fmt.Sprintf("%s %s, aim %s", sign, Format(must), Format(aim))
}

// Format prints whole numbers plainly and others with three significant digits.
func Format(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d", int64(v))
	}
	if v >= 1000 || v <= -1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// Median returns the middle value; of an even number, the mean of the two in the middle. It panics on none.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
