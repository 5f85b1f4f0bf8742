package adminhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

const pepper = "planted-pepper-of-at-least-32-characters"

// registryBed is a door over a real database, held to the contract.
type registryBed struct {
	*bed
	db       *postgres.DB
	database *testpg.Database
}

func newRegistryBed(t *testing.T, s setup) *registryBed {
	t.Helper()
	b := &registryBed{database: testpg.New(t)}
	b.open(t, b.database.URL())
	s.change = b.with(s.change)
	b.bed = newBed(t, s)
	return b
}

func (b *registryBed) open(t *testing.T, url string) {
	t.Helper()
	var err error
	if b.db, err = postgres.Open(t.Context(), postgres.Options{URL: url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.db.Close)
}

func (b *registryBed) with(further func(*Options)) func(*Options) {
	return func(o *Options) {
		o.Database = b.db
		o.Auth = adminauth.New(adminauth.Options{
			Bootstrap: func() config.Secret { return token }, Tokens: b.db,
			Parse: func(text string) (string, []byte, bool) {
				id, secret, ok := apikey.ParseToken(text)
				return id, apikey.Hash(pepper, secret), ok
			},
		})
		o.IssueKey = func(id string) (Issued, error) {
			if id != "" {
				text, hash := apikey.Renew(pepper, id)
				return Issued{text, id, hash}, nil
			}
			text, id, hash := apikey.New(pepper)
			return Issued{text, id, hash}, nil
		}
		o.IssueToken = func() (Issued, error) {
			text, id, hash := apikey.NewToken(pepper)
			return Issued{text, id, hash}, nil
		}
		if further != nil {
			further(o)
		}
	}
}

// do asks with the token, holds the answer against the contract and returns it.
func (b *registryBed) do(t *testing.T, method, path, body string, status int, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	header = append([]string{"Authorization", "Bearer " + token, "Content-Type", "application/json"}, header...)
	w := b.call(t, method, path, body, header...)
	if w.Code != status {
		t.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, w.Code, status, w.Body)
	}
	wantAsContract(t, method, path, body, w, header)
	return w
}

// contract routes requests to what api/openapi.yaml says about them.
var contractOnce = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../api/openapi.yaml")
	if err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.PlainBodyDecoder)
	doc.Servers = nil // the tests' servers have other addresses
	for _, item := range doc.Paths.Map() {
		item.Servers = nil
	}
	return legacy.NewRouter(doc)
})

func contract(t *testing.T) routers.Router {
	t.Helper()
	router, err := contractOnce()
	if err != nil {
		t.Fatal(err)
	}
	return router
}

func wantAsContract(t *testing.T, method, path, body string, w *httptest.ResponseRecorder, header []string) {
	t.Helper()
	router := contract(t)
	path = strings.ReplaceAll(path, "%2F", "_") // which their router, unlike ours, takes for a separator
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		t.Errorf("%s %s is not in the contract: %v", method, path, err)
		return
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil && w.Code < 300 {
		t.Errorf("%s %s %s was taken, but the contract says: %v", method, path, body, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: w.Code, Header: w.Header()}
	out.Options = &openapi3filter.Options{IncludeResponseStatus: true}
	out.SetBodyBytes(w.Body.Bytes())
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("%s %s: answer %d %s is not as the contract says: %v", method, path, w.Code, w.Body, err)
	}
}

func into[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return v
}

const (
	loginPath = "/v1/namespaces/default/rules/login"
	loginRule = `{"key":["user"],"limits":[{"limit":5,"window":"1m"}]}`
	laxRule   = `{"key":["user"],"limits":[{"limit":50,"window":"1m"}]}`
)

func TestRules_AreWrittenReadChangedAndDeletedUnderTheirVersion(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	first := b.do(t, "PUT", loginPath, loginRule, http.StatusCreated).Header().Get("ETag")
	got := b.do(t, "GET", loginPath, "", http.StatusOK)
	if rule := into[registry.Rule](t, got); got.Header().Get("ETag") != first || rule.Body.Limits[0].Limit != 5 || rule.UpdatedBy != adminauth.BootstrapName {
		t.Errorf("got %s of %+v", got.Header().Get("ETag"), rule)
	}
	b.do(t, "PUT", loginPath, laxRule, http.StatusPreconditionRequired)
	b.do(t, "DELETE", loginPath, "", http.StatusPreconditionRequired)
	b.do(t, "PUT", loginPath, laxRule, http.StatusPreconditionFailed, "If-None-Match", "*")
	b.do(t, "PUT", loginPath, laxRule, http.StatusPreconditionFailed, "If-Match", `"no-tag-of-ours"`)
	second := b.do(t, "PUT", loginPath, laxRule, http.StatusOK, "If-Match", first).Header().Get("ETag")
	b.do(t, "PUT", loginPath, loginRule, http.StatusPreconditionFailed, "If-Match", first)
	b.do(t, "DELETE", loginPath, "", http.StatusPreconditionFailed, "If-Match", first)
	b.do(t, "DELETE", loginPath, "", http.StatusNoContent, "If-Match", second)
	b.do(t, "GET", loginPath, "", http.StatusNotFound)
	b.do(t, "DELETE", loginPath, "", http.StatusNotFound)
	b.do(t, "PUT", "/v1/namespaces/nowhere/rules/login", loginRule, http.StatusNotFound)
}

func TestRules_WrittenByHandCanBeReplacedAndDeletedLikeOthers(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	b.database.Exec(t, testpg.Superuser, `INSERT INTO sluice.rules (namespace, name, body) VALUES ('default', 'login', '{"limits": "broken"}')`)
	tag := b.do(t, "GET", loginPath, "", http.StatusOK).Header().Get("ETag")
	tag = b.do(t, "PUT", loginPath, loginRule, http.StatusOK, "If-Match", tag).Header().Get("ETag")
	b.do(t, "DELETE", loginPath, "", http.StatusNoContent, "If-Match", tag)
	b.database.Exec(t, testpg.Superuser, `INSERT INTO sluice.rules (namespace, name, body) VALUES ('default', 'login', '{}')`)
	tag = b.do(t, "GET", loginPath, "", http.StatusOK).Header().Get("ETag")
	b.do(t, "DELETE", loginPath, "", http.StatusNoContent, "If-Match", tag)
}

func TestRules_ThatAreFaultyAreRefusedWithEveryFault(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	type answer struct{ Errors []fault }
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"fields":    {`{"kee":["user"],"limits":[{"limit":5,"window":"1m"}],"action":"explode"}`, []string{"/kee", "/action"}},
		"numbers":   {`{"limits":[{"limit":0,"window":"1m"},{"limit":-1,"window":"2m"}]}`, []string{"/limits/0/limit", "/limits/1/limit"}},
		"huge":      {`{"limits":[{"limit":9223372036854775808,"window":"1m"}]}`, []string{"/limits/0/limit"}},
		"patterns":  {`{"match":{"routes":["no-slash"]},"limits":[{"limit":1,"window":"1m"}]}`, []string{"/match/routes/0"}},
		"elsewhere": {`{"namespace":"other","name":"logout","limits":[{"limit":1,"window":"1m"}]}`, []string{"/namespace", "/name"}},
		"no JSON":   {`{"limits":`, []string{""}},
		"no object": {`[]`, []string{""}},
		"two":       {loginRule + "," + loginRule, []string{""}},
	} {
		got := into[answer](t, b.do(t, "PUT", loginPath, c.body, http.StatusUnprocessableEntity))
		var pointers []string
		for _, f := range got.Errors {
			pointers = append(pointers, f.Pointer)
		}
		for _, want := range c.want {
			if !strings.Contains(" "+strings.Join(pointers, " ")+" ", " "+want+" ") {
				t.Errorf("%s: no fault at %q in %+v", name, want, got.Errors)
			}
		}
	}
	got := into[answer](t, b.do(t, "POST", "/v1/namespaces/default/rules:apply",
		`{"rules":[{"name":"a","limits":[{"limit":1,"window":"1m"}]},{"name":"b","limits":[{"limit":0,"window":"1m"}]},{"name":"a","limits":[{"limit":1,"window":"1m"}]}]}`,
		http.StatusUnprocessableEntity))
	if len(got.Errors) != 2 || got.Errors[0].Pointer != "/rules/1/limits/0/limit" || !strings.HasPrefix(got.Errors[1].Pointer, "/rules/2") {
		t.Errorf("apply: %+v", got.Errors)
	}
	if items := into[registry.Listed[registry.Rule]](t, b.do(t, "GET", "/v1/namespaces/default/rules", "", http.StatusOK)).Items; len(items) != 0 {
		t.Errorf("something was written: %+v", items)
	}
}

func TestApply_IsOneRevisionAndRollbackAnother(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	const path = "/v1/namespaces/default/rules:apply"
	rules := func(names ...string) string {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf(`{"name":%q,"limits":[{"limit":5,"window":"1m"}]}`, name))
		}
		return `{"prune":true,"rules":[` + strings.Join(list, ",") + `]}`
	}
	trial := into[applied](t, b.do(t, "POST", path+"?dry_run=1", rules("a", "b"), http.StatusOK))
	if !trial.DryRun || len(trial.Created) != 2 || trial.Verdicts == nil || trial.Verdicts.Unknown == "" {
		t.Errorf("trial: %+v", trial)
	}
	one := into[applied](t, b.do(t, "POST", path, rules("a", "b"), http.StatusOK))
	two := into[applied](t, b.do(t, "POST", path+"?reason=b+is+gone", rules("a", "c"), http.StatusOK))
	if one.Revision != trial.Revision || len(one.Created) != 2 || len(two.Deleted) != 1 || len(two.Same) != 1 {
		t.Fatalf("trial %+v, then %+v, then %+v", trial, one, two)
	}
	back := into[applied](t, b.do(t, "POST", "/v1/namespaces/default/rollback", fmt.Sprintf(`{"revision":%d}`, one.Revision), http.StatusOK))
	if back.Revision <= two.Revision || len(back.Created) != 1 || len(back.Deleted) != 1 {
		t.Errorf("rollback: %+v", back)
	}
	b.do(t, "POST", "/v1/namespaces/default/rollback", `{"revision":999}`, http.StatusNotFound)
	b.do(t, "POST", "/v1/namespaces/default/rollback", `{}`, http.StatusUnprocessableEntity)
	history := into[registry.Listed[changeShown]](t, b.do(t, "GET", "/v1/history?namespace=default&kind=rule&name=b", "", http.StatusOK))
	if len(history.Items) != 3 || history.Items[1].Reason != "b is gone" || len(history.Items[0].Diff) != 1 || history.Items[0].Actor != adminauth.BootstrapName {
		t.Errorf("history of b: %+v", history.Items)
	}
}

func TestDryRun_TellsWhatWouldChangeAndWhoseVerdict(t *testing.T) {
	t.Parallel()
	recent := []sluice.Request{byUser("u_1"), byUser("u_2")}
	b := newRegistryBed(t, setup{rules: []sluice.Rule{userRule("login", 3)}, change: func(o *Options) {
		o.Recent = func() []sluice.Request { return recent }
	}})
	for range 3 {
		b.check(t, byUser("u_1"))
	}
	b.do(t, "PUT", loginPath, loginRule, http.StatusCreated)
	w := b.do(t, "PUT", loginPath+"?dry_run=1", `{"key":["user"],"layer":"login","limits":[{"limit":30,"window":"1h"}]}`, http.StatusOK, "If-Match", "*")
	got := into[trial](t, w)
	if !got.DryRun || got.Before == nil || got.After == nil || len(got.Diff) == 0 {
		t.Errorf("trial: %s", w.Body)
	}
	if v := got.Verdicts; v == nil || v.Tried != 2 || len(v.Differ) != 1 || v.Differ[0].Subject["user"] != "u_1" || !v.Differ[0].After {
		t.Errorf("verdicts: %s", w.Body)
	}
	if rule := into[registry.Rule](t, b.do(t, "GET", loginPath, "", http.StatusOK)); rule.Body.Limits[0].Limit != 5 {
		t.Errorf("a trial changed the rule: %+v", rule)
	}
	b.do(t, "DELETE", loginPath+"?dry_run=1", "", http.StatusOK, "If-Match", "*")
	b.do(t, "GET", loginPath, "", http.StatusOK)
}

func TestKeys_ShowTheirSecretOnce(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	made := into[shownOnce[registry.Key]](t, b.do(t, "POST", "/v1/keys", `{"name":"ci","owner":"u_42","tier":"pro"}`, http.StatusCreated))
	id, secret, ok := apikey.Parse(made.Secret)
	if !ok || id != made.Body.ID {
		t.Fatalf("made %+v", made)
	}
	rotated := into[shownOnce[registry.Key]](t, b.do(t, "POST", "/v1/keys/"+id+"/rotate", `{"overlap":"1h"}`, http.StatusOK))
	if again, _, ok := apikey.Parse(rotated.Secret); !ok || again != id || rotated.Secret == made.Secret || rotated.Body.OldUntil.Before(time.Now().Add(50*time.Minute)) {
		t.Errorf("rotated %+v", rotated)
	}
	for _, path := range []string{"/v1/keys", "/v1/keys/" + id, "/v1/history?kind=key"} {
		if text := b.do(t, "GET", path, "", http.StatusOK).Body.String(); strings.Contains(text, secret) || !strings.Contains(text, id) {
			t.Errorf("%s: %s", path, text)
		}
	}
	if revoked := into[registry.Entry[registry.Key]](t, b.do(t, "DELETE", "/v1/keys/"+id, "", http.StatusOK)); revoked.Body.RevokedBy != adminauth.BootstrapName {
		t.Errorf("revoked %+v", revoked)
	}
	b.do(t, "DELETE", "/v1/keys/"+id, "", http.StatusNotFound)
	b.do(t, "POST", "/v1/keys/"+id+"/rotate", "", http.StatusNotFound)
	b.do(t, "POST", "/v1/keys", `{"name":"ci","expires_at":"2001-01-01T00:00:00Z"}`, http.StatusUnprocessableEntity)
}
