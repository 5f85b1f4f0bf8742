package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testnode"
)

const (
	callers  = 256 // so many that the machine's work decides, and not who waits for whom
	legs     = 40  // each side runs every leg, in turns
	warmSize = 50  // questions in a call while warming
)

// partNames are the parts whose work is shown.
var partNames = [...]string{"node", "Redis", "database", "caller"}

// race sends the same draws to a node with a directory and to one without.
type race struct {
	with, without *testnode.Node
	crowd         *crowd
	draws         int
	client        *http.Client
	// parts tells what each part of the machine has used so far, by the side that is being asked.
	parts func(side int) [len(partNames)]time.Duration

	took [2]time.Duration
	// lookups are what the directory did for the draws that were timed, by the names of its metrics.
	lookups map[string]float64
	work    [2][len(partNames)]time.Duration
	ratios  []float64
	wrong   atomic.Int64 // answers that did not go by what is on record
}

func newRace(with, without *testnode.Node, parts func(side int) [len(partNames)]time.Duration, subjects, draws int) *race {
	return &race{
		with: with, without: without, parts: parts, crowd: newCrowd(subjects, 1), draws: draws,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}, Timeout: 30 * time.Second},
	}
}

// warm sends the first draws to the node with a directory, many in a call. They are not timed.
func (r *race) warm(ctx context.Context) error {
	var calls [][]byte
	for range r.draws / warmSize {
		var body bytes.Buffer
		body.WriteString(`{"requests":[`)
		for i := range warmSize {
			if i > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"subject":{"user":%q},"route":"/"}`, nameOf(r.crowd.next()))
		}
		body.WriteString("]}")
		calls = append(calls, body.Bytes())
	}
	return each(len(calls), func(i int) error {
		_, err := r.post(ctx, r.with, "/v1/check/batch", calls[i])
		return err
	})
}

// run times the next draws, leg by leg, each on both nodes; who begins changes.
func (r *race) run(ctx context.Context, b *bar.Bar) error {
	before, err := r.counts(ctx)
	if err != nil {
		return err
	}
	for leg := range legs {
		draws := make([]uint64, r.draws/legs)
		for i := range draws {
			draws[i] = r.crowd.next()
		}
		var took [2]time.Duration
		for _, side := range [2][2]int{{0, 1}, {1, 0}}[leg%2] {
			before, began := r.parts(side), time.Now()
			if err := r.leg(ctx, side, draws); err != nil {
				return err
			}
			took[side] = time.Since(began)
			r.took[side] += took[side]
			for i, used := range r.parts(side) {
				r.work[side][i] += used - before[i]
			}
		}
		r.ratios = append(r.ratios, float64(took[1])/float64(took[0]))
		b.Say("leg %d: %.0f decisions/s with, %.0f without", leg, float64(len(draws))/took[0].Seconds(), float64(len(draws))/took[1].Seconds())
	}
	r.lookups, err = r.counts(ctx)
	for name := range r.lookups {
		r.lookups[name] -= before[name]
	}
	return err
}

// counts reads what the directory did so far.
func (r *race) counts(ctx context.Context) (map[string]float64, error) {
	return load.Metrics(ctx, r.with.Admin, "sluice_directory_")
}

func (r *race) leg(ctx context.Context, side int, draws []uint64) error {
	node := [2]*testnode.Node{r.with, r.without}[side]
	return each(len(draws), func(i int) error {
		text, err := r.post(ctx, node, "/v1/check", fmt.Appendf(nil, `{"subject":{"user":%q},"route":"/"}`, nameOf(draws[i])))
		if err != nil || side == 1 {
			return err
		}
		limit := "1000000"
		if draws[i]%100 == 0 {
			limit = "700000"
		}
		if !bytes.Contains(text, []byte(`"limit":`+limit+",")) {
			r.wrong.Add(1)
		}
		return nil
	})
}

func (r *race) report(b *bar.Bar) {
	b.Shown("decisions per second with a directory", float64(r.draws)/r.took[0].Seconds())
	b.Shown("decisions per second without", float64(r.draws)/r.took[1].Seconds())
	for _, name := range slices.Sorted(maps.Keys(r.lookups)) {
		b.Say("%s: %.4f a decision", name, r.lookups[name]/float64(r.draws))
	}
	for i, name := range partNames {
		perDecision := func(side int) float64 { return r.work[side][i].Seconds() * 1e6 / float64(r.draws) }
		b.Say("CPU of the %s: %.1f µs a decision with a directory, %.1f without", name, perDecision(0), perDecision(1))
	}
	b.AtLeast("decision rate with a directory, × that without", bar.Median(r.ratios), 0.9, 0.95)
	b.AtMost("answers not by what is on record, %", 100*float64(r.wrong.Load())/float64(r.draws), 0.1, 0)
}

func (r *race) post(ctx context.Context, n *testnode.Node, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.HTTP+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK || !json.Valid(text) {
		err = errors.Join(err, fmt.Errorf("%s: %.200s", resp.Status, text))
	}
	return text, err
}

// each calls fn for every number below n, some at a time.
func each(n int, fn func(i int) error) error {
	var next atomic.Int64
	var fault atomic.Pointer[error]
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && fault.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := fn(i); err != nil {
					fault.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := fault.Load(); err != nil {
		return *err
	}
	return nil
}
