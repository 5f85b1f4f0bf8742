package adminhttp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func TestInspect_ShowsTheCountersOfASubjectByTheirRedisKeys(t *testing.T) {
	t.Parallel()
	login := userRule("login", 5)
	login.Match.Routes = []string{"/login"}
	b := newBed(t, setup{redis: true, rules: []sluice.Rule{userRule("api", 10), login}})
	for range 3 {
		b.check(t, byUser("u_42"))
	}
	onLogin := byUser("u_42")
	onLogin.Route = "/login"
	b.check(t, onLogin)
	b.check(t, byUser("u_43"))

	var got inspection
	b.ask(t, "GET", "/v1/inspect?user=u_42", "", http.StatusOK, &got)
	if len(got.Counters) != 2 || got.Revision != 3 {
		t.Fatalf("got %+v, want two counters at revision 3", got)
	}
	api, loginNow := got.Counters[0], got.Counters[1]
	if api.Rule != "api" || !api.Applies || api.Used != 4 || api.Remaining != 6 || api.ResetAfter <= 0 || api.CountsBy["user"] != "u_42" || api.Limit.Window != ruledoc.Duration(time.Hour) {
		t.Errorf("api: %+v", api)
	}
	if loginNow.Rule != "login" || loginNow.Applies || loginNow.Used != 1 {
		t.Errorf("login, which a request without its route does not meet: %+v", loginNow)
	}
	for _, c := range got.Counters {
		if n, err := b.redis.Do("EXISTS", c.Key); err != nil || n != int64(1) {
			t.Errorf("key %q of rule %s is not in Redis: %v, %v", c.Key, c.Rule, n, err)
		}
	}
}

func TestInspect_ChargesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 2)}})
	for range 5 {
		b.ask(t, "GET", "/v1/inspect?user=u_42", "", http.StatusOK, nil)
	}
	var got inspection
	b.ask(t, "GET", "/v1/inspect?user=u_42", "", http.StatusOK, &got)
	if got.Counters[0].Used != 0 {
		t.Errorf("looking took %d", got.Counters[0].Used)
	}
}

func TestInspect_CountsByRouteAreShownPatternByPattern(t *testing.T) {
	t.Parallel()
	byRoute := userRule("routes", 5)
	byRoute.Key = []sluice.Dimension{sluice.User, sluice.Route}
	byRoute.Match.Routes = []string{"/a/{id}", "/b/*"}
	b := newBed(t, setup{rules: []sluice.Rule{byRoute}})
	req := byUser("u_42")
	req.Route = "/a/7"
	b.check(t, req)
	used := func(query string) string {
		var got inspection
		b.ask(t, "GET", "/v1/inspect?"+query, "", http.StatusOK, &got)
		list := []string{}
		for _, c := range got.Counters {
			list = append(list, fmt.Sprintf("%s %d %t", c.CountsBy["route"], c.Used, c.Applies))
		}
		return strings.Join(list, ", ")
	}
	for query, want := range map[string]string{
		"user=u_42": "/a/{id} 1 false, /b/* 0 false", "user=u_42&route=/a/8": "/a/{id} 1 true", "user=u_42&route=/c": "",
	} {
		if got := used(query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

func TestInspect_LeavesOutRulesForOthersAndNamesWhatIsUntold(t *testing.T) {
	t.Parallel()
	others := userRule("others", 5)
	others.Match.Users = []string{"u_1"}
	tenants := userRule("tenants", 5)
	tenants.Key = []sluice.Dimension{sluice.Tenant, sluice.User, "plan"}
	everyone := sluice.Rule{Name: "everyone", Limits: []sluice.Limit{sluice.PerHour(100)}}
	off := userRule("off", 5)
	off.Disabled = true
	elsewhere := userRule("elsewhere", 5)
	elsewhere.Namespace = "partners"
	b := newBed(t, setup{rules: []sluice.Rule{others, tenants, everyone, off, elsewhere}})
	var got inspection
	b.ask(t, "GET", "/v1/inspect?user=u_42", "", http.StatusOK, &got)
	if len(got.Counters) != 1 || got.Counters[0].Rule != "everyone" {
		t.Errorf("counters: %+v, want that of everyone", got.Counters)
	}
	if fmt.Sprint(got.Untold) != "[{tenants [tenant plan]}]" {
		t.Errorf("untold: %v", got.Untold)
	}
	b.ask(t, "GET", "/v1/inspect?user=u_42&tenant=acme&attribute.plan=trial", "", http.StatusOK, &got)
	if len(got.Counters) != 2 || got.Counters[0].CountsBy["plan"] != "trial" {
		t.Errorf("all told: %+v", got.Counters)
	}
}

func TestInspect_ShowsWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	onRecord := record{"u_42", func(s *sluice.Subject) {
		s.Tier, s.Exempt, s.Blocked = "gold", true, &sluice.BlockedSubject{Reason: "fraud"}
		s.Overrides = []sluice.Override{{Rule: "api", Limits: []sluice.Limit{sluice.PerHour(99)}}}
	}}
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 10)}, record: onRecord})
	var got inspection
	b.ask(t, "GET", "/v1/inspect?user=u_42", "", http.StatusOK, &got)
	if got.Tier != "gold" || !got.Exempt || got.Blocked == nil || got.Blocked.Reason != "fraud" || got.Counters[0].Limit.Limit != 99 {
		t.Errorf("got %+v", got)
	}
}

func TestInspect_TellsWhatTheStoreDidNot(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{redis: true, rules: []sluice.Rule{userRule("api", 10)}})
	b.redis.Kill()
	var got inspection
	b.ask(t, "GET", "/v1/inspect?user=u_42", "", http.StatusOK, &got)
	if got.Counters[0].Error == "" {
		t.Errorf("got %+v", got.Counters[0])
	}
}

func TestInspect_DoesNotShowAPIKeys(t *testing.T) {
	t.Parallel()
	keyed := userRule("keyed", 10)
	keyed.Key = []sluice.Dimension{sluice.APIKey}
	b := newBed(t, setup{rules: []sluice.Rule{keyed}})
	text := b.ask(t, "GET", "/v1/inspect?api_key=planted-key", "", http.StatusOK, nil)
	if strings.Contains(text, "planted-key") || !strings.Contains(text, `"api_key":"sha256:`) {
		t.Errorf("got %s", text)
	}
}

func TestInspect_FaultsNameTheParameter(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	for query, want := range map[string]string{
		"usr=u_42": `"usr"`, "ip=nowhere": `"ip"`, "user=a&user=b": `"user"`, "user=" + strings.Repeat("x", 300): `"user"`, "user=%ff": `"user"`,
	} {
		if got := b.ask(t, "GET", "/v1/inspect?"+query, "", http.StatusBadRequest, nil); !strings.Contains(got, `"pointer":`+want) {
			t.Errorf("%s: got %s, want it to name %s", query, got, want)
		}
	}
}

func FuzzReadSubject(f *testing.F) {
	f.Add("user=u_42&ip=192.0.2.1&attribute.plan=trial&route=/a")
	f.Add("user=%ff&ip=::1%25eth0&namespace=")
	f.Add("attribute.=x&attribute.a=&a=b;c")
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		req, faults := readSubject(query)
		if faults == nil && (req.Namespace == "" || !utf8.ValidString(req.Subject.User) || len(req.Route) > 1024) {
			t.Errorf("%q was taken as %+v", text, req)
		}
		if filter, faults := tailFilter(query); faults == nil && filter.User != query.Get("user") {
			t.Errorf("%q was taken as %+v", text, filter)
		}
	})
}
