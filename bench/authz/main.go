// Command authz is make bar-authz: every route of the operators' door is called by everybody, about their own namespace and another's, and
// answered as a table written by hand says. Then the database's own wall is tried alone: behind a first wall that lets all through, and by
// SQL as the application's user. Holes are planted in both walls to see that they would be found.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/adminhttp"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

// callers are the columns of the table: the token of each.
var callers = []registry.Grant{
	{}, // nobody
	{Namespace: "own", Role: registry.Viewer},
	{Namespace: "own", Role: registry.Operator},
	{Namespace: "own", Role: registry.Admin},
	{Namespace: "*", Role: registry.Viewer},
	{Namespace: "*", Role: registry.Operator},
	{Namespace: "*", Role: registry.Admin},
}

// everywhere is the first caller with a grant for all namespaces.
const everywhere = 4

func main() {
	b := bar.New("bar-authz")
	main := testredis.Program()
	defer main.Close()
	ctx := context.Background()
	database := testpg.New(main)
	db, err := postgres.Open(ctx, postgres.Options{URL: database.URL()})
	if err != nil {
		b.Fatal(err)
	}
	main.Cleanup(db.Close)
	issuer := provider()
	main.Cleanup(issuer.Close)
	d, err := newDoor(db, issuer.URL)
	if err != nil {
		b.Fatal(err)
	}
	d.plant()
	m := &matrix{bar: b, door: d, tokens: tokens(d)}
	routes := adminhttp.Routes(d.opts)
	slices.Sort(routes)
	firstWall(b, m, routes)
	secondWall(b, m, routes)
	sqlWall(ctx, b, database)
	b.End()
}

// provider describes an identity provider, which is all that a redirect to it takes.
func provider() *httptest.Server {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/authorize","token_endpoint":"%s/token","jwks_uri":"%s/keys"}`, s.URL, s.URL, s.URL, s.URL)
	}))
	return s
}

func tokens(d *door) []string {
	list := []string{""}
	for _, g := range callers[1:] {
		list = append(list, d.must("POST", "/v1/tokens", fmt.Sprintf(`{"name":"caller","grants":[{"namespace":%q,"role":%q}]}`, g.Namespace, g.Role), "secret"))
	}
	return list
}

func firstWall(b *bar.Bar, m *matrix, routes []string) {
	missing, surplus := 0, 0
	for _, route := range routes {
		if expectations[route] == nil {
			b.Say("no expectation for %s", route)
			missing++
		}
	}
	for route := range expectations {
		if !slices.Contains(routes, route) {
			b.Say("no route for the expectation of %s", route)
			surplus++
		}
	}
	b.Exactly("routes without an expectation", int64(missing), 0)
	b.Exactly("expectations without a route", int64(surplus), 0)
	began, wrong := time.Now(), 0
	for _, route := range routes {
		wrong += m.try(route, true)
	}
	b.Shown("routes", float64(len(routes)))
	b.Shown("calls: route × caller × namespace", float64(m.cases))
	b.Exactly("answered otherwise than expected", int64(wrong), 0)
	b.Exactly("answers with what the caller may not read", int64(m.leaks), 0)
	b.Shown("calls with a revoked token", float64(m.revoked(b, routes)))
	b.Exactly("of these let through", int64(m.passed), 0)
	b.Shown("seconds", time.Since(began).Seconds())
	plantHoles(b, m)
}

// plantHoles opens each route of the first wall to every viewer in turn. The table must notice all of them.
func plantHoles(b *bar.Bar, m *matrix) {
	planted, noticed := 0, 0
	open := adminauth.Need{Role: registry.Viewer, Scope: adminauth.Entry}
	for route, need := range adminauth.Table() {
		if need.Role == registry.Viewer && !strings.Contains(strings.Join(expectations[route], ""), "x") {
			continue // as open already
		}
		table := adminauth.Table()
		table[route] = open
		hole := &matrix{bar: b, door: m.door.with(table), tokens: m.tokens}
		planted++
		if hole.try(route, false) > 0 || hole.leaks > 0 {
			noticed++
		} else {
			b.Say("nobody would notice if every viewer might %s", route)
		}
	}
	b.Shown("holes planted in the first wall", float64(planted))
	b.Exactly("of these not noticed", int64(planted-noticed), 0)
}

// secondWall opens all of the first wall to every viewer: what only the database holds back then.
func secondWall(b *bar.Bar, m *matrix, routes []string) {
	table := adminauth.Table()
	for route := range table {
		table[route] = adminauth.Need{Role: registry.Viewer, Scope: adminauth.Any}
	}
	open := m.door.with(table)
	cases, wrong := 0, 0
	for _, route := range routes {
		if !strings.HasPrefix(route, "GET") && inDatabase(route) {
			n, bad := open.breakIn(b, m, route)
			cases, wrong = cases+n, wrong+bad
		}
	}
	b.Shown("changes tried with the first wall open", float64(cases))
	b.Exactly("of these let through by the database", int64(wrong), 0)
}

// inDatabase tells whether a route changes what is in the database.
func inDatabase(route string) bool {
	for _, elsewhere := range []string{"/v1/auth", "/v1/explain", "/v1/refund", "/v1/reset", "/sluice"} {
		if strings.Contains(route, elsewhere) {
			return false
		}
	}
	return true
}
