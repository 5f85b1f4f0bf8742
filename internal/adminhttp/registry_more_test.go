package adminhttp

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

func TestEntries_OfEveryKindAreKept(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	for _, c := range []struct{ path, body, changed string }{
		{"/v1/tiers/pro", `{"display_name":"Pro","groups":[{"name":"all","limits":[{"limit":100,"window":"1h"}]},{"name":"docs","routes":["/docs/*"],"unlimited":true}]}`, `{"price":"29 EUR"}`},
		{"/v1/subjects/user/u%2F42", `{"tier":"pro"}`, `{"tier":"free"}`},
		{"/v1/blocks/ip/10.0.0.0%2F8", `{"reason":"abuse","until":"2999-01-01T00:00:00Z"}`, `{"reason":"more abuse"}`},
		{"/v1/blocks/ip/192.0.2.1", `{"reason":"abuse"}`, `{"reason":"more abuse"}`},
		{"/v1/exemptions/tenant/acme", `{"reason":"ours"}`, `{"reason":"still ours"}`},
	} {
		b.do(t, "GET", c.path, "", http.StatusNotFound)
		first := b.do(t, "PUT", c.path, c.body, http.StatusCreated, "If-None-Match", "*").Header().Get("ETag")
		b.do(t, "PUT", c.path, c.changed, http.StatusOK, "If-Match", first)
		b.do(t, "PUT", c.path, c.changed, http.StatusPreconditionFailed, "If-Match", first)
		second := b.do(t, "GET", c.path, "", http.StatusOK).Header().Get("ETag")
		list := "/" + strings.Join(strings.Split(c.path, "/")[1:3], "/")
		if items := into[registry.Listed[any]](t, b.do(t, "GET", list, "", http.StatusOK)).Items; len(items) != 1 {
			t.Errorf("%s: %v", list, items)
		}
		b.do(t, "DELETE", c.path+"?reason=done", "", http.StatusNoContent, "If-Match", second)
		b.do(t, "GET", c.path, "", http.StatusNotFound)
	}
}

func TestEntries_ThatAreFaultyAreRefused(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	for _, c := range []struct{ method, path, body, pointer string }{
		{"PUT", "/v1/tiers/pro", `{"groups":[{"name":"all","limits":[{"limit":0,"window":"1h"}]}]}`, "/groups/0/limits/0"},
		{"PUT", "/v1/tiers/pro", `{"groups":[{"name":"all","routes":["x"],"unlimited":true}]}`, "/groups/0/routes/0"},
		{"PUT", "/v1/tiers/pro", `{"groups":[{"name":"all"}]}`, "/groups/0/limits"},
		{"PUT", "/v1/subjects/ip/10.0.0.1", `{"tier":"pro"}`, "/subject/dimension"},
		{"PUT", "/v1/subjects/user/a", `{"tier":5}`, "/tier"},
		{"PUT", "/v1/subjects/user/a", `{"level":"pro"}`, "/level"},
		{"PUT", "/v1/blocks/ip/10.0.0.1%2F8", `{"reason":"abuse"}`, "/subject/id"},
		{"PUT", "/v1/blocks/user/a", `{}`, "/reason"},
		{"PUT", "/v1/blocks/user/a", `{"reason":"abuse","subject":{"dimension":"user","id":"b"}}`, "/subject"},
		{"POST", "/v1/overrides", `{"subject":{"dimension":"user","id":"a"},"rule":"r","limits":[{"limit":-1,"window":"1h"}],"reason":"x"}`, "/limits/0"},
		{"POST", "/v1/overrides", `{"subject":{"dimension":"user","id":"a"},"limits":[]}`, "/rule"},
		{"POST", "/v1/tokens", `{"name":"ci","grants":[{"namespace":"default","role":"king"}]}`, "/grants/0/role"},
		{"POST", "/v1/tokens", `{"name":"ci","grants":[]}`, "/grants"},
		{"POST", "/v1/namespaces", `{"name":"*"}`, "/name"},
	} {
		w := b.do(t, c.method, c.path, c.body, http.StatusUnprocessableEntity)
		if !strings.Contains(w.Body.String(), `"pointer":"`+c.pointer) {
			t.Errorf("%s %s %s: no %s in %s", c.method, c.path, c.body, c.pointer, w.Body)
		}
	}
	b.do(t, "GET", "/v1/tiers?limit=5000", "", http.StatusBadRequest)
	b.do(t, "GET", "/v1/tiers?cursor=made-up", "", http.StatusUnprocessableEntity)
	b.do(t, "POST", "/v1/namespaces", `{"name":"default"}`, http.StatusConflict)
}

func TestOverrides_AreMadeChangedAndDeletedByTheirID(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	body := func(n int) string {
		return fmt.Sprintf(`{"subject":{"dimension":"user","id":"u_42"},"rule":"login","limits":[{"limit":%d,"window":"1h"}],"reason":"contract 7"}`, n)
	}
	made := b.do(t, "POST", "/v1/overrides", body(7), http.StatusCreated)
	path := made.Header().Get("Location")
	b.do(t, "PUT", path, body(8), http.StatusOK, "If-Match", made.Header().Get("ETag"))
	if got := into[registry.Entry[registry.Override]](t, b.do(t, "GET", path, "", http.StatusOK)); got.Body.Limits[0].Limit != 8 || got.Body.Author == "" {
		t.Errorf("got %+v", got)
	}
	for query, want := range map[string]int{"?dimension=user&id=u_42": 1, "?rule=logout": 0, "?namespace=default": 1} {
		if got := into[registry.Listed[any]](t, b.do(t, "GET", "/v1/overrides"+query, "", http.StatusOK)).Items; len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	b.do(t, "DELETE", path, "", http.StatusNoContent)
	b.do(t, "DELETE", path, "", http.StatusNotFound)
}

func TestLists_ComeInPages(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	for i := range 5 {
		b.do(t, "PUT", fmt.Sprintf("/v1/subjects/user/u_%d", i), `{"tier":"pro"}`, http.StatusOK)
	}
	var names []string
	for path, pages := "/v1/subjects?limit=2", 0; ; pages++ {
		page := into[registry.Listed[registry.Entry[registry.Subject]]](t, b.do(t, "GET", path, "", http.StatusOK))
		for _, s := range page.Items {
			names = append(names, s.Body.ID)
		}
		if page.Next == "" || pages > 5 {
			break
		}
		path = "/v1/subjects?limit=2&cursor=" + page.Next
	}
	if got := strings.Join(names, " "); got != "u_0 u_1 u_2 u_3 u_4" {
		t.Errorf("got %s", got)
	}
}

func TestImport_WritesAllLinesOrNone(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	good := `{"dimension":"user","id":"u_1","tier":"pro"}` + "\n\n" + `{"dimension":"tenant","id":"acme","tier":"free"}` + "\n"
	w := b.do(t, "POST", "/v1/subjects:import", good+`{"dimension":"user","id":""}`, http.StatusUnprocessableEntity, "Content-Type", "application/x-ndjson")
	if !strings.Contains(w.Body.String(), `"pointer":"/4/subject/id"`) {
		t.Errorf("which line? %s", w.Body)
	}
	b.do(t, "GET", "/v1/subjects/user/u_1", "", http.StatusNotFound)
	w = b.do(t, "POST", "/v1/subjects:import", good, http.StatusOK, "Content-Type", "application/x-ndjson")
	if !strings.Contains(w.Body.String(), `"subjects":2`) {
		t.Errorf("got %s", w.Body)
	}
	b.do(t, "GET", "/v1/subjects/tenant/acme", "", http.StatusOK)
}

func TestIdempotencyKey_MakesARepeatedRequestDoNothing(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	const body = `{"name":"ci","owner":"u_42"}`
	first := b.do(t, "POST", "/v1/keys", body, http.StatusCreated, "Idempotency-Key", "k1")
	again := b.do(t, "POST", "/v1/keys", body, http.StatusCreated, "Idempotency-Key", "k1")
	if again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("first %s, then %s", first.Body, again.Body)
	}
	b.do(t, "POST", "/v1/keys", `{"owner":"u_43"}`, http.StatusUnprocessableEntity, "Idempotency-Key", "k1")
	b.do(t, "POST", "/v1/keys", body, http.StatusCreated, "Idempotency-Key", "k2")
	if keys := into[registry.Listed[any]](t, b.do(t, "GET", "/v1/keys?owner=u_42", "", http.StatusOK)).Items; len(keys) != 2 {
		t.Errorf("%d keys", len(keys))
	}
}

func TestTokens_MayWhatTheyWereGrantedUntilRevoked(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	b.do(t, "POST", "/v1/namespaces", `{"name":"partners"}`, http.StatusCreated)
	made := into[shownOnce[registry.Token]](t, b.do(t, "POST", "/v1/tokens", `{"name":"ci","grants":[{"namespace":"partners","role":"admin"}]}`, http.StatusCreated))
	as := func(method, path, body string) int {
		return b.call(t, method, path, body, "Authorization", "Bearer "+made.Secret).Code
	}
	if got := as("PUT", "/v1/namespaces/partners/rules/login", loginRule); got != http.StatusCreated {
		t.Errorf("own namespace: %d", got)
	}
	if got := as("PUT", loginPath, loginRule); got != http.StatusForbidden {
		t.Errorf("another namespace: %d", got)
	}
	history := into[registry.Listed[changeShown]](t, b.do(t, "GET", "/v1/history?namespace=partners&kind=rule", "", http.StatusOK))
	if len(history.Items) != 1 || !strings.HasPrefix(history.Items[0].Actor, "ci (token ") {
		t.Errorf("history: %+v", history)
	}
	if text := b.do(t, "GET", "/v1/tokens", "", http.StatusOK).Body.String(); !strings.Contains(text, made.Body.ID) || strings.Contains(text, made.Secret) {
		t.Errorf("tokens: %s", text)
	}
	b.do(t, "DELETE", "/v1/tokens/"+made.Body.ID, "", http.StatusOK)
	forged := made.Secret[:len(made.Secret)-1] + "x"
	if got := b.call(t, "GET", "/v1/whoami", "", "Authorization", "Bearer "+forged).Code; got != http.StatusUnauthorized {
		t.Errorf("a mistyped token: %d", got)
	}
}

func TestDatabase_ThatIsDownIsToldAsSuch(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t, testpg.Options{})
	b := &registryBed{database: server.Database(t)}
	b.open(t, b.database.URL())
	b.bed = newBed(t, setup{change: b.with(nil)})
	b.do(t, "GET", "/v1/namespaces", "", http.StatusOK)
	server.Kill()
	if retry := b.do(t, "PUT", loginPath, loginRule, http.StatusServiceUnavailable).Header().Get("Retry-After"); retry == "" {
		t.Error("nothing tells when to come back")
	}
	b.do(t, "GET", "/v1/status", "", http.StatusOK)
	none := newBed(t, setup{})
	none.ask(t, "GET", "/v1/tiers", "", http.StatusNotImplemented, nil)
}

func TestBootstrapToken_CanBeReplacedAndMayEverything(t *testing.T) {
	t.Parallel()
	var current atomic.Pointer[config.Secret]
	first, second := config.Secret("first-token"), config.Secret("second-token")
	current.Store(&first)
	b := newBed(t, setup{change: func(o *Options) { o.Token = func() config.Secret { return *current.Load() } }})
	if got := b.call(t, "GET", "/v1/whoami", "", "Authorization", "Bearer first-token"); !strings.Contains(got.Body.String(), `{"namespace":"*","role":"admin"}`) {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	current.Store(&second)
	if got := b.call(t, "GET", "/v1/whoami", "", "Authorization", "Bearer first-token").Code; got != http.StatusUnauthorized {
		t.Errorf("the old token: %d", got)
	}
}

func TestImport_OutlastsTheServersBoundsOnWholeRequests(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	address := b.serve(t, func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond })
	body, feed := io.Pipe()
	go func() {
		for i := range 3 {
			outlast := time.NewTimer(100 * time.Millisecond)
			<-outlast.C
			_, _ = fmt.Fprintf(feed, `{"dimension":"user","id":"u_%d"}`+"\n", i)
		}
		_ = feed.Close()
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/subjects:import", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `"subjects":3`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
