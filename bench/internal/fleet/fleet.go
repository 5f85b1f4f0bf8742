// Package fleet runs nodes on one database and one Redis for measurements of the control plane: it changes rules as an operator does and
// watches by which rules every node decides.
package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// Options say what a fleet is made of.
type Options struct {
	// Nodes is how many there are.
	Nodes int
	// URL is that of the database, Listen the one for notices where it differs.
	URL, Listen string
	// Redis is host:port.
	Redis string
	// Snapshot keeps the rules on disk.
	Snapshot bool
}

// Start runs the nodes.
func Start(tb testnode.TB, opts Options) []*testnode.Node {
	nodes := make([]*testnode.Node, 0, opts.Nodes)
	for i := range opts.Nodes {
		nodes = append(nodes, testnode.Start(tb, opts.Node(fmt.Sprintf("node-%d", i))))
	}
	return nodes
}

// Node is one of the fleet.
func (o Options) Node(name string) testnode.Options {
	n := testnode.Options{
		Config:   fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n[limiter]\ntimeout = \"100ms\"\n[shutdown]\ngrace = \"10ms\"\n", o.Redis),
		Database: o.URL, Snapshot: o.Snapshot, Name: name,
	}
	if o.Listen != "" {
		n.Env = append(n.Env, "SLUICE_DATABASE__LISTEN_URL="+o.Listen)
	}
	return n
}

// Client is for everything that is asked.
var Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 10 * time.Second}

// Pair are two rules that every request is counted by, with the same limit: a decision that shows two different ones mixes revisions.
func Pair(limit int64) []ruledoc.Rule {
	rules := make([]ruledoc.Rule, 0, 2)
	for _, name := range []string{"first", "second"} {
		rules = append(rules, ruledoc.Rule{
			Name: name, Key: []string{"user"}, Layer: name, Limits: []ruledoc.Limit{{Limit: limit, Window: ruledoc.Duration(time.Hour)}},
		})
	}
	return rules
}

// Base is added to the number of a change to make a limit that is never reached.
const Base = 1_000_000

// Editor changes rules.
type Editor struct {
	admin  string // host:port of the administration API
	direct *postgres.Scoped
}

// Root may everything everywhere.
var Root = registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}

// NewEditor changes rules through a node's administration API.
func NewEditor(n *testnode.Node) *Editor { return &Editor{admin: n.Admin} }

// NewDirectEditor changes rules in the database itself, by what the API calls.
func NewDirectEditor(db *postgres.DB) *Editor { return &Editor{direct: db.As(Root)} }

// Apply puts rules, all in one transaction.
func (e *Editor) Apply(ctx context.Context, rules []ruledoc.Rule) error {
	if e.direct != nil {
		_, err := e.direct.ApplyRules(ctx, "default", rules, false, registry.Edit{Reason: "measured"})
		return err
	}
	body, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		return err
	}
	status, text, err := e.Call(ctx, http.MethodPost, "/v1/namespaces/default/rules:apply", body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("apply: %d %s", status, text)
	}
	return err
}

// Call asks the administration API.
func (e *Editor) Call(ctx context.Context, method, path string, body []byte) (int, string, error) {
	return Ask(ctx, method, "http://"+e.admin+path, body)
}

// Ask sends a request with the operator's token.
func Ask(ctx context.Context, method, url string, body []byte) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+testnode.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := Client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// Redis starts one.
func Redis(tb testnode.TB) *testredis.Server { return testredis.Single(tb, testredis.Options{}) }
