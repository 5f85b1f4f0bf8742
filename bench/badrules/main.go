// Command badrules is make bar-badrules: rules that make no sense, sent through the administration API, written by direct SQL past every
// check, and damaged on their way to the nodes. Each must be refused or left out alone, while the other rules act as before.
package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/fleet"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

const patience = 60 * time.Second

// run is a fleet whose good rules are watched all the time.
type run struct {
	b     *bar.Bar
	main  testnode.TB
	nodes []*testnode.Node
	pids  []int
	edit  *fleet.Editor
	watch *fleet.Watch
	db    *testpg.Database
	redis *testredis.Server
	made  int64
}

func main() {
	b := bar.New("bar-badrules")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r := &run{b: b, main: main, db: testpg.Start(main, testpg.Options{}).Database(main), redis: fleet.Redis(main)}
	r.nodes = fleet.Start(main, fleet.Options{Nodes: 2, URL: r.db.URL(), Redis: r.redis.Addr(), Snapshot: true})
	for _, n := range r.nodes {
		r.pids = append(r.pids, n.PID())
	}
	r.edit = fleet.NewEditor(r.nodes[0])
	watching, stop := context.WithCancel(ctx)
	r.watch = fleet.NewWatch(watching, r.nodes, 2, 5*time.Millisecond)
	r.goodChange(ctx)

	r.throughTheAPI(ctx)
	r.pastTheAPI(ctx)
	r.tooMany(ctx)
	r.damaged(ctx)
	stop()
	r.watch.Wait()
	up := int64(0)
	for i, n := range r.nodes {
		if n.PID() == r.pids[i] && n.Ready(ctx) {
			up++
		}
	}
	b.Exactly("nodes up and ready at the end", up, 2)
	b.AtLeast("decisions by the good rules", float64(r.watch.Decisions.Load()), 5_000, 5_000)
	b.Exactly("of these wrong", r.watch.Mixed.Load()+r.watch.Back.Load()+r.watch.Errors.Load(), 0)
	b.End()
}

// goodChange shows that good rules still change, and returns how long it took.
func (r *run) goodChange(ctx context.Context) time.Duration {
	r.made++
	began := time.Now()
	if err := r.edit.Apply(ctx, fleet.Pair(fleet.Base+r.made)); err != nil {
		r.b.Fatal(err)
	}
	at, err := r.watch.Acts(ctx, fleet.Base+r.made, patience)
	if err != nil {
		r.b.Fatal(fmt.Errorf("a good change among bad rules: %w", err))
	}
	return at.Sub(began)
}

// bodies are rules that make no sense. None matches what the good rules' callers ask for.
var bodies = map[string]string{
	"no limits":          `{"key":["user"],"match":{"routes":["/bad"]}}`,
	"blank key":          `{"key":[""],"match":{"routes":["/bad"]},"limits":[{"limit":1,"window":"1m"}]}`,
	"blank window":       `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":1,"window":""}]}`,
	"limit 0":            `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":0,"window":"1m"}]}`,
	"limit -1":           `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":-1,"window":"1m"}]}`,
	"limit 2^63":         `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":9223372036854775808,"window":"1m"}]}`,
	"limit a text":       `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":"many","window":"1m"}]}`,
	"window negative":    `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":1,"window":"-1m"}]}`,
	"pattern unclosed":   `{"key":["user"],"match":{"routes":["/bad/{id"]},"limits":[{"limit":1,"window":"1m"}]}`,
	"pattern star":       `{"key":["user"],"match":{"routes":["/bad/*/more"]},"limits":[{"limit":1,"window":"1m"}]}`,
	"network":            `{"key":["ip"],"match":{"cidrs":["10.0.0.0/99"]},"limits":[{"limit":1,"window":"1m"}]}`,
	"unknown field":      `{"key":["user"],"match":{"routes":["/bad"]},"limit":1}`,
	"unknown action":     `{"key":["user"],"match":{"routes":["/bad"]},"action":"explode"}`,
	"unknown algorithm":  `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"algorithm":"dice","limit":1,"window":"1m"}]}`,
	"status 99":          `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":1,"window":"1m"}],"response":{"status":99}}`,
	"list instead of it": `{"limits":{"limit":1}}`,
}

// throughTheAPI sends them as an operator would. All must be refused.
func (r *run) throughTheAPI(ctx context.Context) {
	r.b.Say("%d bad rules through the API", len(bodies)+2)
	sent, refused := int64(0), int64(0)
	try := func(name, body string) {
		sent++
		status, text, err := r.edit.Call(ctx, http.MethodPut, "/v1/namespaces/default/rules/"+name, []byte(body))
		if err == nil && status >= 400 && status < 500 {
			refused++
			return
		}
		r.b.Say("taken: %s: %d %.200s %v", name, status, text, err)
	}
	const good = `{"key":["user"],"match":{"routes":["/bad"]},"limits":[{"limit":1,"window":"1m"}]}`
	if status, text, err := r.edit.Call(ctx, http.MethodPut, "/v1/namespaces/default/rules/fine", []byte(good)); err != nil || status >= 300 {
		r.b.Fatal(fmt.Errorf("a good rule sent the same way: %d %s %w", status, text, err)) // else nothing would be shown by refusals
	}
	i := 0
	for _, body := range bodies {
		i++
		try("bad-"+strconv.Itoa(i), body)
	}
	try("bad-long", `{"key":["user"],"match":{"users":["`+strings.Repeat("u", 10<<20)+`"]},"limits":[{"limit":1,"window":"1m"}]}`)
	try("bad-broken", `{"key":["user"`)
	r.goodChange(ctx)
	r.b.Exactly("bad rules refused by the API", refused, sent)
}

// sql runs statements as one whom no check binds.
func (r *run) sql(statement string) { r.db.Exec(r.main, testpg.Superuser, statement) }

// pastTheAPI writes them by direct SQL. Each must be left out alone and told of; one that was good before goes on as it was.
func (r *run) pastTheAPI(ctx context.Context) {
	r.b.Say("%d bad rules by direct SQL", len(bodies)+1)
	r.sql(`ALTER TABLE sluice.rules DROP CONSTRAINT rules_body_size`)
	i := 0
	for _, body := range bodies {
		i++
		r.sql(fmt.Sprintf(`INSERT INTO sluice.rules (namespace, name, body) VALUES ('default', 'sql-%d', '%s')`, i, body))
	}
	r.sql(`INSERT INTO sluice.rules (namespace, name, body) VALUES ('default', 'sql-long', jsonb_build_object('match', jsonb_build_object('users', jsonb_build_array(repeat('u', 10485760)))))`)
	r.goodChange(ctx)
	faults := r.faults(ctx)
	r.b.AtLeast("faults that the nodes tell of", faults, float64(len(bodies)+1), float64(len(bodies)+1))
	r.b.AtLeast("alarm: sluice_rules_faults", r.metric(ctx), 1, 1)
	r.sql(`DELETE FROM sluice.rules WHERE name LIKE 'sql-%'`)
	// A good rule that direct SQL breaks goes on in its last good form: the watch would see it missing.
	r.sql(`UPDATE sluice.rules SET body = '{"limits": 7}' WHERE name = 'first'`)
	if status, text, err := r.edit.Call(ctx, http.MethodPost, "/v1/namespaces", []byte(`{"name":"other"}`)); err != nil || status >= 300 {
		r.b.Fatal(fmt.Errorf("create a namespace: %d %s %w", status, text, err))
	}
	r.waitFor(ctx, "the broken rule is told of", func() bool { return r.faults(ctx) == 1 })
	r.goodChange(ctx)
	r.waitFor(ctx, "all faults are gone", func() bool { return r.faults(ctx) == 0 })
}

// tooMany writes a hundred thousand rules.
func (r *run) tooMany(ctx context.Context) {
	r.b.Say("100,000 rules by direct SQL")
	r.sql(`INSERT INTO sluice.rules (namespace, name, body) SELECT 'default', 'many-' || n,
		jsonb_build_object('key', jsonb_build_array('user'), 'layer', 'many', 'match', jsonb_build_object('routes', jsonb_build_array('/many/' || n)),
		'limits', jsonb_build_array(jsonb_build_object('limit', 5, 'window', '1m'))) FROM generate_series(1, 100000) n`)
	if status, text, err := r.edit.Call(ctx, http.MethodPost, "/v1/namespaces", []byte(`{"name":"another"}`)); err != nil || status >= 300 {
		r.b.Fatal(fmt.Errorf("create a namespace: %d %s %w", status, text, err))
	}
	r.waitFor(ctx, "both nodes tell that there are too many", func() bool { return r.faults(ctx) >= 1 })
	r.b.AtLeast("alarm with 100,000 rules: sluice_rules_faults", r.metric(ctx), 1, 1)
	largest := 0.0
	for _, n := range r.nodes {
		largest = max(largest, float64(load.ProcessMemory(n.PID()))/(1<<20))
	}
	r.b.Shown("memory of a node meanwhile, MB", largest)
	r.sql(`DELETE FROM sluice.rules WHERE name LIKE 'many-%'`)
	r.goodChange(ctx)
}

// damaged cuts the snapshot that the nodes read. The next one is whole again.
func (r *run) damaged(ctx context.Context) {
	r.b.Say("snapshot in Redis truncated")
	const snapshot, revision = "rl1:{control}snapshot", "rl1:{control}revision"
	text, err := r.redis.Do("GET", snapshot)
	if err != nil {
		r.b.Fatal(err)
	}
	half := fmt.Sprint(text)
	if _, err := r.redis.Do("SET", snapshot, half[:len(half)/2]); err != nil {
		r.b.Fatal(err)
	}
	if _, err := r.redis.Do("SET", revision, "999999 ffff"); err != nil { // nodes look, and find it broken
		r.b.Fatal(err)
	}
	r.waitFor(ctx, "both nodes tell of it", func() bool {
		for _, n := range r.nodes {
			if !strings.Contains(n.Log(), "the snapshot is damaged") {
				return false
			}
		}
		return true
	})
	if _, err := r.redis.Do("DEL", revision); err != nil {
		r.b.Fatal(err)
	}
	r.b.Shown("a change after a damaged snapshot acts after, ms", float64(r.goodChange(ctx).Milliseconds()))
}

func (r *run) waitFor(ctx context.Context, what string, so func() bool) {
	for began := time.Now(); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience || ctx.Err() != nil {
			r.b.Fatal(fmt.Errorf("%s: not within %s", what, patience))
		}
	}
}
