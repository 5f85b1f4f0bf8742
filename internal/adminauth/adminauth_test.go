package adminauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/registry"
)

const pepper = "a-pepper-of-at-least-32-characters"

func grants(pairs ...string) (list []registry.Grant) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, registry.Grant{Namespace: pairs[i], Role: registry.Role(pairs[i+1])})
	}
	return list
}

func TestMay_IsWhatTheRoleCoversInTheNamespace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		has       []registry.Grant
		role      registry.Role
		namespace string
		want      bool
	}{
		{grants("a", "viewer"), registry.Viewer, "a", true},
		{grants("a", "viewer"), registry.Viewer, "b", false},
		{grants("a", "viewer"), registry.Operator, "a", false},
		{grants("a", "admin"), registry.Viewer, "a", true},
		{grants("a", "admin"), registry.Viewer, Everywhere, false},
		{grants("*", "operator"), registry.Operator, "a", true},
		{grants("*", "operator"), registry.Admin, "a", false},
		{grants("*", "operator"), registry.Operator, Everywhere, true},
		{grants("a", "viewer", "b", "admin"), registry.Admin, "a", false},
		{grants("a", "king"), registry.Viewer, "a", false},
		{grants("*", "admin"), "", "a", false},
		{grants("", "admin"), registry.Viewer, "", false},
		{nil, registry.Viewer, "a", false},
		{nil, "", "", false},
	} {
		if got := May(registry.Actor{Grants: c.has}, c.role, c.namespace); got != c.want {
			t.Errorf("%v may %q in %q: %v", c.has, c.role, c.namespace, got)
		}
	}
}

func TestTable_GivesNothingAwayByTheZeroNeed(t *testing.T) {
	t.Parallel()
	all := registry.Actor{Grants: grants("*", "admin")}
	none := Table()["GET /unheard-of"]
	if May(all, none.Role, Everywhere) || MaySomewhere(all, none.Role) {
		t.Error("a route that is not in the table is given to somebody")
	}
	for route, need := range Table() {
		if !Known(need.Role) {
			t.Errorf("%s needs %q", route, need.Role)
		}
		if reads := strings.HasPrefix(route, "GET"); !reads && need.Role == registry.Viewer && route != "POST /v1/explain" {
			t.Errorf("a viewer may %s", route)
		}
	}
}

// onRecord has tokens and counts how often it is asked.
type onRecord struct {
	tokens map[string]registry.Token
	err    error
	asked  int
}

func (o *onRecord) TokenByID(_ context.Context, id string) (registry.Token, error) {
	o.asked++
	if o.err != nil {
		return registry.Token{}, o.err
	}
	if found, ok := o.tokens[id]; ok {
		return found, nil
	}
	return registry.Token{}, registry.ErrNotFound
}

func parse(text string) (string, []byte, bool) {
	id, secret, ok := apikey.ParseToken(text)
	return id, apikey.Hash(pepper, secret), ok
}

func asking(t *testing.T, header ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestAuthenticate_KnowsTokensUntilTheyEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text, id, hash := apikey.NewToken(pepper)
		stranger, _, _ := apikey.NewToken(pepper)
		otherSecret, _, _ := apikey.NewToken("another-pepper-of-at-least-32-chars")
		token := registry.Token{ID: id, Name: "ci", Grants: grants("a", "viewer"), Hash: hash, ExpiresAt: time.Now().Add(time.Minute)}
		tokens := &onRecord{tokens: map[string]registry.Token{id: token}}
		a := New(Options{Bootstrap: func() config.Secret { return "configured" }, Tokens: tokens, Parse: parse})
		as := func(text string) error {
			_, err := a.Authenticate(asking(t, "Authorization", "Bearer "+text))
			return err
		}
		if actor, err := a.Authenticate(asking(t, "Authorization", "bearer "+text)); err != nil || len(actor.Grants) != 1 || actor.Name != fmt.Sprintf("ci (token %s)", id) {
			t.Fatalf("%+v, %v", actor, err)
		}
		for name, wrong := range map[string]string{"none": "", "unknown": stranger, "other pepper": otherSecret, "mistyped": text[:len(text)-1] + "_", "key": strings.Replace(text, "slt", "slc", 1)} {
			if err := as(wrong); !errors.Is(err, ErrWrong) {
				t.Errorf("%s: %v", name, err)
			}
		}
		tokens.asked = 0
		for range 100 {
			_, _ = as(text), as(stranger)
		}
		if tokens.asked > 2 {
			t.Errorf("%d queries within a moment", tokens.asked)
		}
		token.RevokedAt = time.Now()
		tokens.tokens[id] = token
		<-time.After(freshFor)
		if err := as(text); !errors.Is(err, ErrWrong) {
			t.Errorf("a second after it was revoked: %v", err)
		}
		token.RevokedAt = time.Time{}
		tokens.tokens[id] = token
		<-time.After(time.Minute)
		if err := as(text); !errors.Is(err, ErrWrong) {
			t.Errorf("after it expired: %v", err)
		}
	})
}

func TestAuthenticate_TellsApartWhyNobodyIsKnown(t *testing.T) {
	t.Parallel()
	text, _, _ := apikey.NewToken(pepper)
	down := &onRecord{err: registry.ErrUnavailable}
	configured := func() config.Secret { return "configured" }
	for name, c := range map[string]struct {
		opts   Options
		header []string
		want   error
	}{
		"nothing configured": {Options{}, []string{"Authorization", "Bearer x"}, ErrNone},
		"nothing sent":       {Options{Bootstrap: configured}, nil, ErrMissing},
		"other scheme":       {Options{Bootstrap: configured}, []string{"Authorization", "Basic configured"}, ErrMissing},
		"empty":              {Options{Tokens: down, Parse: parse}, []string{"Authorization", "Bearer "}, ErrWrong},
		"database down":      {Options{Tokens: down, Parse: parse}, []string{"Authorization", "Bearer " + text}, registry.ErrUnavailable},
	} {
		if _, err := New(c.opts).Authenticate(asking(t, c.header...)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	a := New(Options{Bootstrap: configured, Tokens: down, Parse: parse})
	if actor, err := a.Authenticate(asking(t, "Authorization", "Bearer configured")); err != nil || !May(actor, registry.Admin, Everywhere) {
		t.Errorf("the configured token while the database is down: %+v, %v", actor, err)
	}
}

func TestAccount_IsTheIdInATokenAndElseTheConfiguredToken(t *testing.T) {
	t.Parallel()
	text, id, _ := apikey.NewToken(pepper)
	invented, inventedID, _ := apikey.NewToken("another-pepper-of-at-least-32-chars")
	key, _, _ := apikey.New(pepper)
	tokens := &onRecord{err: errors.New("nobody is to be asked")}
	withTokens := New(Options{Tokens: tokens, Parse: func(text string) (string, []byte, bool) {
		id, hash, ok := parse(text)
		return id, hash, ok && apikey.GenuineToken(pepper, id)
	}})
	alone := New(Options{Bootstrap: func() config.Secret { return "configured" }})
	for name, c := range map[string]struct{ header, want, alone string }{
		"a token":        {"Bearer " + text, id, BootstrapName},
		"with spaces":    {"bearer  " + text + " ", id, BootstrapName},
		"an invented id": {"Bearer " + invented, inventedID, BootstrapName},
		"mistyped":       {"Bearer " + text[:len(text)-1] + "_", BootstrapName, BootstrapName},
		"cut off":        {"Bearer slt_" + id + "_", BootstrapName, BootstrapName},
		"an API key":     {"Bearer " + key, BootstrapName, BootstrapName},
		"the configured": {"Bearer configured", BootstrapName, BootstrapName},
		"nothing sent":   {"", "", ""},
		"empty":          {"Bearer  ", "", ""},
		"another scheme": {"Basic " + text, "", ""},
		"without scheme": {text, "", ""},
	} {
		r := asking(t, "Authorization", c.header)
		if got, got2 := withTokens.Account(r), alone.Account(r); got != c.want || got2 != c.alone {
			t.Errorf("%s: %q, and %q without tokens on record; want %q and %q", name, got, got2, c.want, c.alone)
		}
	}
	if tokens.asked != 0 {
		t.Errorf("looked up %d times", tokens.asked)
	}
}

func TestGrantsIn_TakesWhatItUnderstands(t *testing.T) {
	t.Parallel()
	got := grantsIn([]any{"*:viewer", "a:b:admin", "a:king", "admin", ":admin", 5, nil})
	if fmt.Sprint(got) != "[{* viewer} {a:b admin}]" {
		t.Errorf("got %v", got)
	}
	if got := grantsIn("a:viewer b:operator"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if got := grantsIn(map[string]any{"a": "admin"}); got != nil {
		t.Errorf("got %v", got)
	}
}

func FuzzGrantsIn(f *testing.F) {
	f.Add("*:viewer")
	f.Add("a:b:admin x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, claim := range []any{text, []any{text}} {
			for _, g := range grantsIn(claim) {
				if g.Namespace == "" || !Known(g.Role) || !strings.Contains(text, g.Namespace+":"+string(g.Role)) {
					t.Fatalf("%q grants %+v", text, g)
				}
			}
		}
	})
}
