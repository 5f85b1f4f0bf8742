package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/adminhttp"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/checkhttp"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/telemetry"
	"github.com/sluicehq/sluice/memstore"
)

const (
	pepper    = "a-pepper-of-at-least-32-characters"
	bootstrap = "the-configured-token"
	// Whoever has a grant for "own" alone must never read these.
	plantedOther  = "planted-in-other"
	plantedGlobal = "planted-for-all"
)

// door is the operators' door over a real database.
type door struct {
	opts    adminhttp.Options
	engine  *engine.Engine
	handler http.Handler
	calls   *int // shared with doors of another table
}

func newDoor(db *postgres.DB, issuer string) (*door, error) {
	limits := []sluice.Limit{sluice.PerHour(1000)}
	set, _ := sluice.Compile([]sluice.Rule{
		{Namespace: "own", Name: "in-force", Key: []sluice.Dimension{sluice.User}, Limits: limits},
		{Namespace: "other", Name: plantedOther, Key: []sluice.Dimension{sluice.User}, Limits: limits},
	})
	store := memstore.New(memstore.Options{})
	limiter := sluice.New(store, set, sluice.Options{})
	d := &door{engine: engine.New(limiter, engine.Options{}), calls: new(int)}
	signIn, err := adminauth.NewSignIn(pepper, adminauth.SignInOptions{Issuer: issuer, ClientID: "sluice", RedirectURL: "https://sluice.example/v1/auth/callback"})
	if err != nil {
		return nil, err
	}
	metrics := telemetry.NewMetrics(prometheus.NewRegistry(), telemetry.MetricsOptions{})
	d.opts = adminhttp.Options{
		Health: adminhttp.NewHealth(), Rules: limiter.Rules, Metrics: metrics.Handler(), Tail: telemetry.NewTail(metrics), Store: store, Pprof: true,
		Status:  func() adminhttp.Status { return adminhttp.Status{Node: plantedGlobal} },
		Explain: checkhttp.New(d.engine, checkhttp.Options{}), Database: db,
		GRPC: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(plantedGlobal)) }),
		Auth: adminauth.New(adminauth.Options{
			Bootstrap: func() config.Secret { return bootstrap }, Tokens: db, SignIn: signIn,
			Parse: func(text string) (string, []byte, bool) {
				id, secret, ok := apikey.ParseToken(text)
				return id, apikey.Hash(pepper, secret), ok
			},
		}),
		IssueKey: func(id string) (adminhttp.Issued, error) {
			if id != "" {
				text, hash := apikey.Renew(pepper, id)
				return adminhttp.Issued{Text: text, ID: id, Hash: hash}, nil
			}
			text, id, hash := apikey.New(pepper)
			return adminhttp.Issued{Text: text, ID: id, Hash: hash}, nil
		},
		IssueToken: func() (adminhttp.Issued, error) {
			text, id, hash := apikey.NewToken(pepper)
			return adminhttp.Issued{Text: text, ID: id, Hash: hash}, nil
		},
	}
	d.handler = adminhttp.New(d.engine, d.opts)
	return d, nil
}

// with is the same door with another table of routes and roles.
func (d *door) with(table map[string]adminauth.Need) *door {
	changed := *d
	changed.opts.Table = table
	changed.handler = adminhttp.New(d.engine, changed.opts)
	return &changed
}

// request is one call.
type request struct {
	method, path, body string
	header             []string
}

// answer is what came of it.
type answer struct {
	status int
	body   string
}

// streamTime is enough for a stream to begin. Those that are refused do not take it.
const streamTime = 30 * time.Millisecond

// ask sends a request with a token, each from an address of its own: wrong ones must not tire the guard. It also counts by account.
func (d *door) ask(r request, token string) answer {
	*d.calls++
	ctx := context.Background()
	if strings.HasPrefix(r.path, "/v1/tail") {
		limited, cancel := context.WithTimeout(ctx, streamTime)
		defer cancel()
		ctx = limited
	}
	req := httptest.NewRequestWithContext(ctx, r.method, r.path, strings.NewReader(r.body))
	req.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", *d.calls>>16&255, *d.calls>>8&255, *d.calls&255)
	for i := 0; i < len(r.header); i += 2 {
		req.Header.Set(r.header[i], r.header[i+1])
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, req)
	return answer{w.Code, w.Body.String()}
}

// must does something as whoever may everything, and reads a field of the answer.
func (d *door) must(method, path, body, field string) string {
	a := d.ask(request{method: method, path: path, body: body}, bootstrap)
	if a.status >= 300 {
		panic(fmt.Sprintf("prepare %s %s %s: %d %s", method, path, body, a.status, a.body))
	}
	if field == "" {
		return ""
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(a.body), &fields); err != nil {
		panic(fmt.Sprintf("prepare %s %s: %v", method, path, err))
	}
	return fmt.Sprint(fields[field])
}
