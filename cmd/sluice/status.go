package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

func newStatus() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Tell how a node is: rules in force and their faults, Redis, nodes",
		Example: "  sluice status\n  sluice status --admin https://node-3:9090 --ca-file ca.pem",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := c.ask(cmd.Context(), http.MethodGet, "/v1/status", nil)
			if err != nil {
				return err
			}
			return c.printIndented(cmd.OutOrStdout(), answer)
		},
	}
	c.adminFlags(cmd)
	return cmd
}

// query writes a request as parameters of a URL.
func (r *request) query() url.Values {
	v := url.Values{}
	for _, p := range [][2]string{
		{"namespace", r.Namespace},
		{"tenant", r.Subject.Tenant},
		{"user", r.Subject.User},
		{"api_key", r.Subject.APIKey},
		{"ip", r.Subject.IP},
		{"tier", r.Subject.Tier},
		{"route", r.Route},
		{"method", r.Method},
	} {
		if p[1] != "" {
			v.Set(p[0], p[1])
		}
	}
	if r.Cost > 0 {
		v.Set("cost", strconv.FormatInt(r.Cost, 10))
	}
	for name, value := range r.Attributes {
		v.Set("attribute."+name, value)
	}
	return v
}

// printIndented prints JSON as it is, or indented for people.
func (c *client) printIndented(w io.Writer, answer []byte) error {
	if !c.output.json() {
		var b bytes.Buffer
		if err := json.Indent(&b, answer, "", "  "); err != nil {
			return fmt.Errorf("the node's answer is no JSON: %w", err)
		}
		answer = b.Bytes()
	}
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(answer))
	return err
}
