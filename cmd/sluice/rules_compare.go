package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

// ruleChange is what becomes of a rule.
type ruleChange struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Change is "create", "update" or "delete".
	Change string `json:"change"`
	// Before and After are TOML; empty where there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// compareRules tells what it takes to make rules of a namespace those wanted. Others stay, unless they are pruned.
func compareRules(namespace string, now, wanted []ruledoc.Rule, prune bool) []ruleChange {
	before := map[string]string{}
	for _, r := range now {
		before[r.Name] = written(r)
	}
	var changes []ruleChange
	named := map[string]bool{}
	for _, r := range wanted {
		named[r.Name] = true
		c := ruleChange{namespace, r.Name, "update", before[r.Name], written(r)}
		if c.Before == c.After {
			continue
		}
		if c.Before == "" {
			c.Change = "create"
		}
		changes = append(changes, c)
	}
	for name, text := range before {
		if prune && !named[name] {
			changes = append(changes, ruleChange{namespace, name, "delete", text, ""})
		}
	}
	slices.SortFunc(changes, func(a, b ruleChange) int { return cmp.Compare(a.Name, b.Name) })
	return changes
}

// written is a rule in one form, so that defaults that were spelled out, and times in other units, are no differences.
func written(r ruledoc.Rule) string {
	r.Namespace = ""
	if rule, err := r.ToRule(); err == nil {
		r = ruledoc.FromRule(rule)
	}
	var text strings.Builder
	_ = r.WriteTOML(&text) // a builder takes everything
	return text.String()
}

// print shows a change line by line.
func (c *ruleChange) print(w io.Writer, colours bool) {
	_, _ = fmt.Fprintf(w, "%s rule %s in namespace %s\n", c.Change, printable(c.Name), printable(c.Namespace))
	for _, line := range compareLines(lines(c.Before), lines(c.After)) {
		text := line.sign + " " + printable(line.text)
		if colours && line.sign != " " {
			text = map[string]string{"-": "\x1b[31m", "+": "\x1b[32m"}[line.sign] + text + "\x1b[0m"
		}
		_, _ = fmt.Fprintln(w, "  "+text)
	}
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// diffLine is a line that stays (" "), goes ("-") or comes ("+").
type diffLine struct{ sign, text string }

// maxCompared bounds the table of compareLines, which has the product of both lengths; longer rules are shown as a whole, before and after.
const maxCompared = 1 << 20

// compareLines finds the shortest way from one text to another, by their longest common subsequence.
func compareLines(a, b []string) []diffLine {
	var out []diffLine
	if len(a)*len(b) > maxCompared {
		for _, text := range a {
			out = append(out, diffLine{"-", text})
		}
		for _, text := range b {
			out = append(out, diffLine{"+", text})
		}
		return out
	}
	common := make([][]int, len(a)+1) // how many lines are common from here on
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			out = append(out, diffLine{"-", a[i]})
			i++
		default:
			out = append(out, diffLine{"+", b[j]})
			j++
		}
	}
	return out
}

// coloured tells whether a writer shows colours: a terminal, unless NO_COLOR is set; CLICOLOR_FORCE asks for them anywhere.
func coloured(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return isTerminal(w) && os.Getenv("TERM") != "dumb"
}

// isTerminal tells whether a file is a device that shows characters. It takes /dev/null for one, which does no harm.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
