package adminhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

func TestReset_ForgetsTheCountersOfASubject(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{redis: true, rules: []sluice.Rule{userRule("api", 2), userRule("search", 5)}})
	for range 2 {
		b.check(t, byUser("u_42"))
		b.check(t, byUser("u_43"))
	}
	if b.check(t, byUser("u_42")).Allowed {
		t.Fatal("the limit is not spent")
	}
	var got changed
	b.ask(t, "POST", "/v1/reset", `{"subject":{"user":"u_42"}}`, http.StatusOK, &got)
	if fmt.Sprint(got) != "{default [api search] 0}" {
		t.Errorf("answer: %+v", got)
	}
	if !b.check(t, byUser("u_42")).Allowed {
		t.Error("the subject is still refused")
	}
	if b.check(t, byUser("u_43")).Allowed {
		t.Error("another subject was reset, too")
	}
}

func TestRefund_GivesUnitsBack(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{redis: true, rules: []sluice.Rule{userRule("api", 10)}})
	for range 10 {
		b.check(t, byUser("u_42"))
	}
	b.ask(t, "POST", "/v1/refund", `{"subject":{"user":"u_42"},"cost":4}`, http.StatusOK, nil)
	for i := range 5 {
		if d := b.check(t, byUser("u_42")); d.Allowed != (i < 4) {
			t.Errorf("request %d after giving 4 back: allowed %t", i+1, d.Allowed)
		}
	}
}

func TestChange_IsLoggedWithActorAndSubjectAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 10)}})
	b.ask(t, "POST", "/v1/refund", `{"subject":{"user":"u_42","api_key":"planted-key","ip":"192.0.2.77"},"cost":4}`, http.StatusOK, nil)
	var line map[string]any
	if err := json.Unmarshal([]byte(b.log.String()), &line); err != nil {
		t.Fatalf("%v in %q", err, b.log)
	}
	for name, want := range map[string]any{
		"level": "INFO", "actor": "admin.token", "from": "192.0.2.1:1234", "user": "u_42", "namespace": "default", "cost": 4.0, "ip": "192.0.2.0/24",
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v in %s", name, line[name], want, b.log)
		}
	}
	if strings.Contains(b.log.String(), "planted-key") {
		t.Errorf("the API key is in the log: %s", b.log)
	}
}

func TestChange_OfNothingSaysSo(t *testing.T) {
	t.Parallel()
	login := userRule("login", 10)
	login.Match.Routes = []string{"/login"}
	b := newBed(t, setup{rules: []sluice.Rule{login}})
	if got := b.ask(t, "POST", "/v1/reset", `{"subject":{"user":"u_42"}}`, http.StatusNotFound, nil); !strings.Contains(got, "such as the route") {
		t.Errorf("got %s", got)
	}
	b.ask(t, "POST", "/v1/reset", `{"subject":{"user":"u_42"},"route":"/login"}`, http.StatusOK, nil)
}

func TestChange_MatchesByWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	gold := userRule("gold", 10)
	gold.Match.Tiers = []string{"gold"}
	onRecord := record{"u_42", func(s *sluice.Subject) { s.Tier = "gold" }}
	b := newBed(t, setup{rules: []sluice.Rule{gold}, record: onRecord})
	b.ask(t, "POST", "/v1/reset", `{"subject":{"user":"u_42"}}`, http.StatusOK, nil)
	b.ask(t, "POST", "/v1/reset", `{"subject":{"user":"u_43"}}`, http.StatusNotFound, nil)
}

func TestChange_FaultsPointAtTheField(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 10)}})
	for body, want := range map[string]string{
		``: "empty", `{`: "JSON", `{"usr":"x"}`: `"#/usr"`, `{"subject":{"ip":"x"}}`: `"#/subject/ip"`, `{"cost":-1}`: `"#/cost"`, `{"cost":"x"}`: `"#/cost"`, `{} {}`: "one value",
	} {
		for _, path := range []string{"/v1/refund", "/v1/reset"} {
			var p problem
			if got := b.ask(t, "POST", path, body, http.StatusBadRequest, &p); !strings.Contains(got, want) || len(p.Errors) == 0 {
				t.Errorf("%s %s: %s, want it to say %s", path, body, got, want)
			}
		}
	}
	large := `{"route":"` + strings.Repeat("x", maxBody) + `"}`
	b.ask(t, "POST", "/v1/reset", large, http.StatusRequestEntityTooLarge, nil)
}

func TestChange_WithoutTheStoreSaysThatTheResultIsUnknown(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{redis: true, rules: []sluice.Rule{userRule("api", 10)}})
	b.redis.Kill()
	for _, path := range []string{"/v1/refund", "/v1/reset"} {
		if got := b.ask(t, "POST", path, `{"subject":{"user":"u_42"}}`, http.StatusServiceUnavailable, nil); !strings.Contains(got, "not known") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestRefund_OfASlidingLogIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	exact := userRule("exact", 10)
	exact.Limits = []sluice.Limit{{Algorithm: sluice.SlidingLog, Limit: 10, Window: sluice.MinWindow}}
	b := newBed(t, setup{rules: []sluice.Rule{exact}})
	if got := b.ask(t, "POST", "/v1/refund", `{"subject":{"user":"u_42"}}`, http.StatusBadRequest, nil); !strings.Contains(got, "sliding_log") {
		t.Errorf("got %s", got)
	}
}
