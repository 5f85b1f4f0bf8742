package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// event is a refusal as the admin listener tells it.
type event struct {
	Time       time.Time `json:"time"`
	ID         string    `json:"id"`
	Namespace  string    `json:"namespace"`
	Rule       string    `json:"rule"`
	Outcome    string    `json:"outcome"`
	User       string    `json:"user"`
	Tenant     string    `json:"tenant"`
	APIKey     string    `json:"api_key_sha256"`
	IP         string    `json:"ip"`
	Route      string    `json:"route"`
	Method     string    `json:"method"`
	Mode       string    `json:"mode"`
	RetryAfter *int64    `json:"retry_after_ms"`
	Reason     string    `json:"reason"`
	// Dropped stands alone: how many events were left out because they were not read fast enough.
	Dropped int64 `json:"dropped"`
}

func newTail() *cobra.Command {
	var c client
	filter := map[string]*string{}
	var fullIP bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show refusals of a node as they happen",
		Long: `tail shows what a node refuses, would refuse by a shadow rule, or decides without Redis, until it is stopped. It needs the
admin token, in SLUICE_ADMIN__TOKEN or SLUICE_ADMIN__TOKEN_FILE.`,
		Example: `  sluice tail
  sluice tail --rule login
  sluice tail --user u_42 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, value := range filter {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			if fullIP {
				query.Set("full_ip", "true")
			}
			resp, err := c.open(cmd.Context(), http.MethodGet, "/v1/tail?"+query.Encode(), nil)
			if err != nil {
				return err
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != http.StatusOK {
				text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
				return problemError(resp.StatusCode, text)
			}
			if err = follow(cmd.OutOrStdout(), resp.Body, c.output.json()); cmd.Context().Err() != nil {
				return nil // stopped by whoever watched
			}
			return cmp.Or(err, errTailEnded)
		},
	}
	for _, name := range []string{"namespace", "rule", "user", "tenant", "outcome"} {
		filter[name] = cmd.Flags().String(name, "", "only of this "+name)
	}
	cmd.Flags().BoolVar(&fullIP, "full-ip", false, "show whole addresses instead of networks")
	c.adminFlags(cmd)
	return cmd
}

// errTailEnded tells that there is nothing to watch any more.
var errTailEnded = errors.New("the node ended the tail: it is stopping")

// follow prints events, one per line, until the node ends them.
func follow(w io.Writer, from io.Reader, asJSON bool) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Bytes()
		if len(strings.TrimSpace(string(line))) == 0 {
			continue // a sign of life
		}
		if asJSON {
			_, _ = fmt.Fprintf(w, "%s\n", line)
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("the node sent something else than events: %w", err)
		}
		_, _ = fmt.Fprintln(w, e.text())
	}
	return lines.Err()
}

// text is an event in a line.
func (e *event) text() string {
	if e.Dropped > 0 {
		return fmt.Sprintf("(%d more were left out: they came faster than they were read)", e.Dropped)
	}
	var who []string
	for _, p := range [][2]string{{"tenant", e.Tenant}, {"user", e.User}, {"api_key_sha256", e.APIKey}, {"ip", e.IP}} {
		if p[1] != "" {
			who = append(who, p[0]+"="+p[1])
		}
	}
	return printable(fmt.Sprintf("%s  %s %s  %s  %s", e.Time.Local().Format("15:04:05.000"), e.Method, e.Route, strings.Join(who, " "), e.Reason))
}
