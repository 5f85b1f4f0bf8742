package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
)

// control asks a node about what operators keep: rules, tiers, subjects and so on.
type control struct {
	client
	space  string // --namespace
	reason string
	dryRun bool
	limit  int
}

// readFlags are for commands that only look.
func (c *control) readFlags(cmd *cobra.Command, forms ...string) {
	if len(forms) == 0 {
		forms = []string{"table", "json", "yaml"}
	}
	c.adminForms(cmd, forms...)
}

// writeFlags are for commands that change something.
func (c *control) writeFlags(cmd *cobra.Command) {
	c.readFlags(cmd)
	cmd.Flags().StringVar(&c.reason, "reason", "", "why, for those who read the history")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "change nothing, and tell what would change")
}

func (c *control) namespaceFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&c.space, "namespace", "n", "", `the namespace; default: the context's, else "default"`)
}

func (c *control) limitFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&c.limit, "limit", 1000, "list no more than this many; 0: all")
}

// in returns the namespace that is meant.
func (c *control) in() (string, error) {
	err := c.resolve()
	return cmp.Or(c.space, c.namespace, sluice.DefaultNamespace), err
}

// path makes a path of segments, each of which may hold anything.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// question is a request for the admin API.
type question struct {
	method, path string
	query        url.Values
	body         any
	// ifMatch is the tag that the entry must have; "none": there must be no entry. Empty: whichever.
	ifMatch string
}

// answerFor asks, and returns the body and the entry's tag.
func (c *control) answerFor(ctx context.Context, q question) (answer []byte, tag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	req, err := c.compose(ctx, q)
	if err != nil {
		return nil, "", err
	}
	resp, err := c.send(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return nil, "", fmt.Errorf("read the answer of %s: %w", c.url, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, "", problemError(resp.StatusCode, answer)
	}
	return answer, resp.Header.Get("ETag"), nil
}

// maxAnswer is far above a page of a thousand large rules.
const maxAnswer = 512 << 20

func (c *control) compose(ctx context.Context, q question) (*http.Request, error) {
	body := []byte(nil)
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
	}
	query := q.query
	if query == nil {
		query = url.Values{}
	}
	if q.method != http.MethodGet {
		c.addCircumstances(query)
	}
	target := q.path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := c.request(ctx, q.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	switch q.ifMatch {
	case "":
	case "none":
		req.Header.Set("If-None-Match", "*")
	default:
		req.Header.Set("If-Match", q.ifMatch)
	}
	if q.method == http.MethodPost && !c.dryRun {
		req.Header.Set("Idempotency-Key", rand.Text()) // the transport may send it twice where a connection breaks
	}
	return req, nil
}

// addCircumstances adds why, and whether it is only a trial.
func (c *control) addCircumstances(query url.Values) {
	if c.reason != "" {
		query.Set("reason", c.reason)
	}
	if c.dryRun {
		query.Set("dry_run", "1")
	}
}

// put creates or replaces an entry. The entry's tag is asked for first, so that a change made by somebody else meanwhile is not lost.
func (c *control) put(ctx context.Context, path string, body any) ([]byte, error) {
	_, tag, err := c.answerFor(ctx, question{method: http.MethodGet, path: path})
	if isMissing(err) {
		tag, err = "none", nil
	}
	if err != nil {
		return nil, err
	}
	answer, _, err := c.answerFor(ctx, question{method: http.MethodPut, path: path, body: body, ifMatch: tag})
	return answer, err
}

// remove deletes an entry, as put replaces one.
func (c *control) remove(ctx context.Context, path string) ([]byte, error) {
	_, tag, err := c.answerFor(ctx, question{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	answer, _, err := c.answerFor(ctx, question{method: http.MethodDelete, path: path, ifMatch: tag})
	return answer, err
}

func isMissing(err error) bool {
	var said nodeError
	return errors.As(err, &said) && said.status == http.StatusNotFound
}

// tell reports a change: that it is done, or for a trial what it would change, or the answer where JSON or YAML was asked for.
func (c *control) tell(cmd *cobra.Command, answer []byte, done string) error {
	w := cmd.OutOrStdout()
	switch {
	case c.output.value != "table" && len(answer) > 0:
		return c.output.printJSON(w, answer)
	case c.output.value != "table":
		return c.output.printJSON(w, []byte("{}"))
	case c.dryRun:
		asYAML := form{value: "yaml"}
		return asYAML.printJSON(w, answer)
	}
	_, err := fmt.Fprintln(w, printable(done))
	return err
}

// pageSize is the most that the API gives at once.
const pageSize = 1000

// listed asks for page after page, up to --limit. More tells that there are others.
func listed[T any](ctx context.Context, c *control, path string, query url.Values) (items []T, more bool, err error) {
	asked := url.Values{}
	for name, values := range query {
		if values[0] != "" {
			asked[name] = values
		}
	}
	for {
		size := pageSize
		if c.limit > 0 {
			size = min(size, c.limit-len(items))
		}
		asked.Set("limit", strconv.Itoa(size))
		answer, _, err := c.answerFor(ctx, question{method: http.MethodGet, path: path, query: asked})
		if err != nil {
			return nil, false, err
		}
		var page struct {
			Items []T    `json:"items"`
			Next  string `json:"next"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, false, fmt.Errorf("the node's answer is no list: %w", err)
		}
		items = append(items, page.Items...)
		if page.Next == "" || c.limit > 0 && len(items) >= c.limit {
			return items, page.Next != "", nil
		}
		asked.Set("cursor", page.Next)
	}
}

// printList asks for a list and prints it: row makes a row of each item.
func printList[T any](cmd *cobra.Command, c *control, path string, query url.Values, t *table, row func(*T)) error {
	items, more, err := listed[json.RawMessage](cmd.Context(), c, path, query)
	if err != nil {
		return err
	}
	if more {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "there are more than %d: raise --limit\n", c.limit)
	}
	if c.output.value != "table" {
		if items == nil {
			items = []json.RawMessage{}
		}
		return c.output.printValue(cmd.OutOrStdout(), map[string]any{"items": items})
	}
	for _, text := range items {
		var item T
		if err := json.Unmarshal(text, &item); err != nil {
			return fmt.Errorf("the node's answer is not understood: %w", err)
		}
		row(&item)
	}
	return t.print(cmd.OutOrStdout())
}
