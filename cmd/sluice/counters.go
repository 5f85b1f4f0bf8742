package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func newReset() *cobra.Command {
	return newCounterCommand(&cobra.Command{
		Use:   "reset NAME=VALUE...",
		Short: "Forget what was counted for a request's subject",
		Long: `reset forgets the counters of every rule that matches the request. It needs the admin token, in SLUICE_ADMIN__TOKEN or
SLUICE_ADMIN__TOKEN_FILE.

` + requestHelp,
		Example: "  sluice reset user=u_42 route=/api/search",
	}, "/v1/reset", "forgotten")
}

func newRefund() *cobra.Command {
	return newCounterCommand(&cobra.Command{
		Use:   "refund NAME=VALUE...",
		Short: "Give units back to a request's subject",
		Long: `refund gives the cost back to the counters of every rule that matches the request, no more than they have counted. It
needs the admin token, in SLUICE_ADMIN__TOKEN or SLUICE_ADMIN__TOKEN_FILE.

` + requestHelp,
		Example: "  sluice refund user=u_42 route=/api/search cost=5",
	}, "/v1/refund", "given back")
}

// newCounterCommand completes a command that changes counters.
func newCounterCommand(cmd *cobra.Command, path, done string) *cobra.Command {
	var c client
	cmd.ValidArgsFunction = completeRequest
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req, err := parseRequest(args)
		if err != nil {
			return err
		}
		answer, err := c.ask(cmd.Context(), http.MethodPost, path, req)
		if err != nil {
			return err
		}
		if c.output.json() {
			_, err = cmd.OutOrStdout().Write(answer)
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
		return err
	}
	c.adminFlags(cmd)
	return cmd
}
