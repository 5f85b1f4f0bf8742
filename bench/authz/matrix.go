package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/bench/internal/bar"
)

// matrix calls routes as everybody.
type matrix struct {
	bar    *bar.Bar
	door   *door
	tokens []string

	cases, leaks, passed int
}

// try calls a route as everybody and returns how many answers were not as expected.
func (m *matrix) try(route string, loud bool) (wrong int) {
	for i, row := range expectations[route] {
		ns := []string{"own", "other"}[i]
		for caller := range callers {
			m.cases++
			a := m.door.ask(m.door.call(route, ns), m.tokens[caller])
			if got := letter(a); got != row[caller] {
				wrong++
				if loud {
					m.bar.Say("%s about %s as %s: %c, want %c: %d %.200s", route, ns, named(caller), got, row[caller], a.status, a.body)
				}
			}
			if caller < everywhere && (strings.Contains(a.body, plantedOther) || strings.Contains(a.body, plantedGlobal)) {
				m.leaks++
				if loud {
					m.bar.Say("%s about %s as %s shows too much: %.300s", route, ns, named(caller), a.body)
				}
			}
		}
	}
	return wrong
}

// letter is an answer as the table writes it. A refusal by the second wall alone is none of the letters: the first should have refused.
func letter(a answer) byte {
	switch {
	case a.status == http.StatusUnauthorized:
		return '.'
	case a.status == http.StatusForbidden && strings.Contains(a.body, "This takes the role"):
		return 'x'
	case a.status == http.StatusNotFound:
		return 'n'
	case a.status < 400:
		return 'o'
	}
	return '?'
}

func named(caller int) string {
	if caller == 0 {
		return "nobody"
	}
	return fmt.Sprintf("%s of %s", callers[caller].Role, callers[caller].Namespace)
}

// revoked calls every route that asks who calls with a token that was revoked, and returns how many.
func (m *matrix) revoked(b *bar.Bar, routes []string) (calls int) {
	for _, route := range routes {
		if expectations[route] == nil || expectations[route][0][0] != '.' {
			continue
		}
		// Each has one of its own: an account that was tried too often is not heard.
		name := m.door.must("POST", "/v1/tokens", `{"name":"revoked","grants":[{"namespace":"*","role":"admin"}]}`, "secret")
		m.door.must("DELETE", "/v1/tokens/"+strings.Split(name, "_")[1], "", "")
		calls++
		if a := m.door.ask(m.door.call(route, "own"), name); a.status != http.StatusUnauthorized {
			b.Say("%s with a revoked token: %d", route, a.status)
			m.passed++
		}
	}
	return calls
}

// breakIn tries a change as everybody who may not, past a first wall that holds nobody with a token back.
func (d *door) breakIn(b *bar.Bar, m *matrix, route string) (cases, wrong int) {
	for i, row := range expectations[route] {
		ns := []string{"own", "other"}[i]
		for caller := range callers {
			if row[caller] != 'x' {
				continue
			}
			cases++
			if a := d.ask(d.call(route, ns), m.tokens[caller]); a.status < 300 {
				wrong++
				b.Say("past the first wall, %s about %s as %s: %d %.200s", route, ns, named(caller), a.status, a.body)
			}
		}
	}
	return cases, wrong
}
