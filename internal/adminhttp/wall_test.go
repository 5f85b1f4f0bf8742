package adminhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
)

func TestRoutes_AreAllInTheTableOfRoles(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{change: withPprof})
	b.opts.GRPC = http.NotFoundHandler()
	h := &handler{opts: b.opts}
	served := h.routes()
	for pattern := range served {
		if adminauth.Table()[pattern] == (adminauth.Need{}) {
			t.Errorf("%s is served and in no table: nobody may", pattern)
		}
	}
	for pattern := range adminauth.Table() {
		if served[pattern] == nil {
			t.Errorf("%s is in the table and not served", pattern)
		}
	}
}

func TestRoutes_ThatAreInNoTableAreRefusedToAll(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{change: func(o *Options) { o.Table = map[string]adminauth.Need{} }})
	for _, path := range []string{"/v1/status", "/v1/whoami", "/v1/rules", "/v1/history"} {
		b.ask(t, "GET", path, "", http.StatusForbidden, nil)
	}
}

func TestDoor_RefusesWhatOtherSitesMakeABrowserSend(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	got := b.call(t, "POST", "/v1/namespaces", `{"name":"x"}`, "Authorization", "Bearer "+token, "Sec-Fetch-Site", "cross-site")
	if got.Code != http.StatusForbidden {
		t.Errorf("status %d", got.Code)
	}
}

func TestSignIn_IsThrottled(t *testing.T) {
	t.Parallel()
	signIn, err := adminauth.NewSignIn(pepper, adminauth.SignInOptions{Issuer: "http://127.0.0.1:1", ClientID: "sluice"})
	if err != nil {
		t.Fatal(err)
	}
	b := newBed(t, setup{change: func(o *Options) {
		o.Auth = adminauth.New(adminauth.Options{Bootstrap: o.Token, SignIn: signIn})
	}})
	for i := range guessesPerMinute + 1 {
		want := http.StatusUnauthorized
		if i == guessesPerMinute {
			want = http.StatusTooManyRequests
		}
		if got := b.call(t, "GET", "/v1/auth/callback?code=x&state=y", "").Code; got != want {
			t.Fatalf("try %d: %d, want %d", i, got, want)
		}
	}
}

// deaf is told of decisions and does nothing.
type deaf struct{ told int }

func (d *deaf) Decided(context.Context, *sluice.Request, *sluice.Decision, time.Time, time.Duration) {
	d.told++
}

func TestRecent_KeepsASampleAndPassesAllOn(t *testing.T) {
	t.Parallel()
	next := new(deaf)
	r := NewRecent(next)
	began := time.Now()
	tell := func(user string, at time.Duration) {
		req := byUser(user)
		req.Attributes = map[string]string{"plan": "trial"}
		r.Decided(t.Context(), &req, &sluice.Decision{}, began.Add(at), 0)
		req.Attributes["plan"] = "changed"
	}
	for i := range 3 * recentRequests {
		tell(fmt.Sprintf("u_%d", i), time.Duration(i)*recentEvery)
		tell("too soon", time.Duration(i)*recentEvery)
	}
	kept := r.Requests()
	if len(kept) != recentRequests || next.told != 6*recentRequests {
		t.Fatalf("kept %d, passed on %d", len(kept), next.told)
	}
	for _, req := range kept {
		if req.Subject.User == "too soon" || req.Subject.User < "u_2000" || req.Attributes["plan"] != "trial" {
			t.Fatalf("kept %+v", req)
		}
	}
}

func TestDiff_NamesWhatChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1,"b":[1,2],"c/d":{"e":null}}`, `{"a":1,"b":[1,3,4],"c/d":{}}`, `[{"pointer":"/b/1","before":2,"after":3},{"pointer":"/b/2","after":4},{"pointer":"/c~1d/e","before":null}]`},
		{``, `{"a":1}`, `[{"pointer":"","after":{"a":1}}]`},
		{`{"a":1}`, ``, `[{"pointer":"","before":{"a":1}}]`},
		{`{"a":1}`, `{"a":1}`, `[]`},
		{``, ``, `[]`},
	} {
		got, err := json.Marshal(diff(json.RawMessage(c.before), json.RawMessage(c.after)))
		if err != nil || string(got) != c.want {
			t.Errorf("%s to %s: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

func FuzzConditionOf(f *testing.F) {
	for _, text := range []string{`"12"`, `*`, `W/"12"`, `"-1"`, `"12", "13"`, `"99999999999999999999"`, ``} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", nil)
		r.Header["If-Match"] = []string{text}
		c := conditionOf(r, true)
		// Whatever is sent, an entry of a version is only changed by its own tag, or by "*".
		if c.version > 0 && c.version != impossible && etag(c.version) != strings.TrimSpace(text) {
			t.Fatalf("%q is version %d", text, c.version)
		}
		if c.version <= 0 && strings.TrimSpace(text) != "*" && strings.TrimSpace(text) != "" {
			t.Fatalf("%q is any version", text)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	f.Add([]byte(loginRule))
	f.Add([]byte(`{"limits":[{"limit":1,"window":"1m"}]}],"tiers":[{"name":"x"}`))
	f.Add([]byte(`{},{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rule, faults := parseRule(text, "default", "login", "/rules/0")
		if faults == nil && (rule.Name != "login" || rule.Namespace != "default") {
			t.Fatalf("%q became %+v", text, rule)
		}
		for _, fault := range faults {
			if !strings.HasPrefix(fault.Pointer, "/rules/0") || fault.Detail == "" {
				t.Fatalf("%q: fault %+v", text, fault)
			}
		}
	})
}
