package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
)

// Watch asks nodes without pause and notes by which rules they decide.
type Watch struct {
	nodes []*node
	wait  sync.WaitGroup

	// Decisions, Mixed and Back count answers: all, those that show two revisions at once, those that are older than an answer that had
	// come before they were asked for. Errors are those that were no answers.
	Decisions, Mixed, Back, Errors atomic.Int64
}

// node is one that is watched.
type node struct {
	url string

	mu     sync.Mutex
	limit  int64 // the newest that was shown
	first  map[int64]time.Time
	newest int64 // the highest revision that was shown
	took   []time.Duration
}

// NewWatch watches with some askers for each node, each of which pauses between its requests.
func NewWatch(ctx context.Context, nodes []*testnode.Node, askers int, pause time.Duration) *Watch {
	w := &Watch{}
	for _, n := range nodes {
		watched := &node{url: "http://" + n.HTTP + "/v1/check", first: map[int64]time.Time{}}
		w.nodes = append(w.nodes, watched)
		for i := range askers {
			w.wait.Go(func() { w.run(ctx, watched, fmt.Sprintf("user-%d", i), pause) })
		}
	}
	return w
}

// Wait returns when the context has ended.
func (w *Watch) Wait() { w.wait.Wait() }

func (w *Watch) run(ctx context.Context, n *node, user string, pause time.Duration) {
	body := fmt.Sprintf(`{"subject":{"user":%q},"route":"/"}`, user)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.ask(ctx, n, body)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// decision is an answer as far as it is looked at.
type decision struct {
	Revision int64 `json:"revision"`
	Results  []struct {
		Limit int64 `json:"limit"`
	} `json:"results"`
}

func (w *Watch) ask(ctx context.Context, n *node, body string) {
	n.mu.Lock()
	before, newest := n.limit, n.newest
	n.mu.Unlock()
	d, took, err := check(ctx, n.url, body)
	came := time.Now()
	if ctx.Err() != nil {
		return
	}
	w.Decisions.Add(1)
	if err != nil || len(d.Results) == 0 {
		if err != nil || before > 0 { // else the first rules are on their way
			w.Errors.Add(1)
		}
		return
	}
	limit := d.Results[0].Limit
	for _, r := range d.Results {
		if r.Limit != limit || len(d.Results) != 2 {
			w.Mixed.Add(1)
			return
		}
	}
	if limit < before || d.Revision < newest {
		w.Back.Add(1)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.took = append(n.took, took)
	n.newest = max(n.newest, d.Revision)
	if limit > n.limit {
		n.limit = limit
		n.first[limit] = came
	}
}

func check(ctx context.Context, url, body string) (d decision, took time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return d, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := Client.Do(req)
	if err != nil {
		return d, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	ms, _ := strconv.ParseFloat(strings.TrimPrefix(resp.Header.Get("Server-Timing"), "sluice;dur="), 64)
	return d, time.Duration(ms * float64(time.Millisecond)), err
}

// Acts waits until every node decides by a limit or a later one, and returns when the last of them began to. It gives up after patience.
func (w *Watch) Acts(ctx context.Context, limit int64, patience time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if at, all := w.actsSince(limit); all {
			return at, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("limit %d does not act on every node: %w", limit, ctx.Err())
		}
	}
}

func (w *Watch) actsSince(limit int64) (last time.Time, all bool) {
	for _, n := range w.nodes {
		n.mu.Lock()
		var first time.Time
		for l, at := range n.first {
			if l >= limit && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		n.mu.Unlock()
		if first.IsZero() {
			return last, false
		}
		if first.After(last) {
			last = first
		}
	}
	return last, true
}

// Took returns how long decisions took since it was last asked, as the nodes tell.
func (w *Watch) Took() []time.Duration {
	var all []time.Duration
	for _, n := range w.nodes {
		n.mu.Lock()
		all = append(all, n.took...)
		n.took = nil
		n.mu.Unlock()
	}
	return all
}
