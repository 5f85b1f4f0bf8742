package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testnode"
)

// answer is what a client saw of one request.
type answer struct {
	route      string
	sent, came time.Time
	took       time.Duration // in the handler
	status     int
	allowed    bool
	mode       string
	err        error
}

// generator asks the nodes in turn, at a steady rate whatever they answer.
type generator struct {
	nodes  []*testnode.Node
	client *http.Client

	mu  sync.Mutex
	got []answer
}

// askers is how many requests can be under way; more than 2,500/s need at a deadline of 10 ms.
const askers = 128

func newGenerator(nodes []*testnode.Node) *generator {
	return &generator{
		nodes:  nodes,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: askers}, Timeout: 10 * time.Second},
	}
}

func (g *generator) run(ctx context.Context) {
	load.Steady(ctx, rate, askers, func(n int64) {
		a := g.ask(n)
		g.mu.Lock()
		g.got = append(g.got, a)
		g.mu.Unlock()
	})
}

func (g *generator) answers() []answer { return g.got }

// ask sends request n. Half of them are for the local rule, which must stay under pressure on both nodes.
func (g *generator) ask(n int64) answer {
	a := answer{route: [...]string{"/local", "/allow", "/local", "/deny"}[n/2%4], sent: time.Now()}
	node := g.nodes[n%int64(len(g.nodes))]
	body := fmt.Sprintf(`{"subject":{"user":"u"},"route":%q}`, a.route)
	resp, err := g.client.Post("http://"+node.HTTP+"/v1/check", "application/json", strings.NewReader(body))
	if err != nil {
		a.err = err
		return a
	}
	defer func() { _ = resp.Body.Close() }()
	var decision struct {
		Allowed bool   `json:"allowed"`
		Mode    string `json:"mode"`
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &decision)
	}
	a.came, a.status, a.err = time.Now(), resp.StatusCode, err
	a.allowed, a.mode = decision.Allowed, decision.Mode
	a.took, err = timing(resp.Header.Get("Server-Timing"))
	if a.err == nil {
		a.err = err
	}
	return a
}

// timing reads "sluice;dur=0.123".
func timing(header string) (time.Duration, error) {
	text, found := strings.CutPrefix(header, "sluice;dur=")
	ms, err := strconv.ParseFloat(text, 64)
	if !found || err != nil {
		return 0, fmt.Errorf("no time of the decision in Server-Timing: %q", header)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}
