package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a command that was written wrongly.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// tellUsage makes every mistake on the command line a usageError, in a command and all below it. Cobra only lets flags be
// told apart from other errors.
func tellUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	cmd.SuggestionsMinimumDistance = 2 // a typing mistake or two
	if cmd.HasSubCommands() {
		// Without them cobra answers an unknown command by help and success, or by an error like any other.
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, oneOfBelow
	} else if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
			}
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		tellUsage(below)
	}
}

// oneOfBelow runs where a command was left out, which shows what there is, or is unknown.
func oneOfBelow(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	text := fmt.Sprintf("%q is no command of %s", args[0], cmd.CommandPath())
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return usageError{fmt.Errorf("%s: see %s --help", text, cmd.CommandPath())}
}
