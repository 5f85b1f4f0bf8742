package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
)

func newSubjects() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subjects",
		Short: "Show and change who is on which tier",
		Example: `  sluice subjects get user=u_42
  sluice subjects set user=u_42 tier=pro --reason "upgraded"
  sluice subjects import customers.csv`,
	}
	cmd.AddCommand(newSubjectsGet(), newSubjectsSet(), newSubjectsDelete(), newSubjectsImport())
	return cmd
}

func newSubjectsGet() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:               "get SUBJECT",
		Short:             "Show what is on record about a subject",
		Example:           "  sluice subjects get user=u_42\n  sluice subjects get tenant=acme --output json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWho(subjectDimensions),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := parseWho(args[0], subjectDimensions)
			if err != nil {
				return err
			}
			answer, _, err := c.answerFor(cmd.Context(), question{method: http.MethodGet, path: path("subjects", who.Dimension, who.ID)})
			if err != nil {
				return err
			}
			return c.output.printJSON(cmd.OutOrStdout(), answer)
		},
	}
	c.readFlags(cmd, "yaml", "json")
	return cmd
}

func newSubjectsSet() *cobra.Command {
	var c control
	var since string
	cmd := &cobra.Command{
		Use:               "set SUBJECT tier=TIER",
		Short:             "Put a subject on a tier",
		Example:           "  sluice subjects set user=u_42 tier=pro --reason upgraded\n  sluice subjects set tenant=acme tier=enterprise --since 2026-11-01T00:00:00Z",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeWho(subjectDimensions),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := parseWho(args[0], subjectDimensions)
			if err != nil {
				return err
			}
			tier, found := strings.CutPrefix(args[1], "tier=")
			if !found || tier == "" {
				return usageError{fmt.Errorf("%q is no tier: write tier=NAME", args[1])}
			}
			subject := registry.Subject{Who: who, Tier: tier}
			if subject.TierSince, err = parseInstant(since, time.Now()); err != nil {
				return err
			}
			answer, err := c.put(cmd.Context(), path("subjects", who.Dimension, who.ID), subject)
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, showWho(who)+" is on tier "+tier)
		},
	}
	c.writeFlags(cmd)
	cmd.Flags().StringVar(&since, "since", "", "since when; default: now")
	return cmd
}

func newSubjectsDelete() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:               "delete SUBJECT",
		Short:             "Take a subject off record; it is on the default tier then",
		Example:           "  sluice subjects delete user=u_42 --reason \"account closed\"",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWho(subjectDimensions),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := parseWho(args[0], subjectDimensions)
			if err != nil {
				return err
			}
			answer, err := c.remove(cmd.Context(), path("subjects", who.Dimension, who.ID))
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "deleted "+showWho(who))
		},
	}
	c.writeFlags(cmd)
	return cmd
}
