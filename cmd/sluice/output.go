package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// form is the value of --output. It is a flag's value, so that a wrong one is refused before anything is asked or charged.
type form struct {
	value string
	known []string
}

// addTo adds the flag; the first form is the default.
func (f *form) addTo(cmd *cobra.Command, known ...string) {
	f.value, f.known = known[0], known
	cmd.Flags().VarP(f, "output", "o", "the form of the answer: "+strings.Join(known, " or "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the form in use.
func (f *form) String() string { return f.value }

// Type is what help calls the value.
func (f *form) Type() string { return "form" }

// Set takes a known form.
func (f *form) Set(value string) error {
	if !slices.Contains(f.known, value) {
		return fmt.Errorf("want %s", strings.Join(f.known, " or "))
	}
	f.value = value
	return nil
}

// json tells whether JSON was asked for.
func (f *form) json() bool { return f.value == "json" }

// printable shows what clients sent. It writes as escapes what would steer the terminal or turn the direction of writing.
func printable(text string) string {
	harmful := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
	if !strings.ContainsFunc(text, harmful) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if harmful(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
