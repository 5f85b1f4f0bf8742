package adminhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/registry"
)

const applyPath = "/v1/namespaces/default/rules:apply"

// versions are those of a namespace's rules, as the list gives them.
func (b *registryBed) versions(t *testing.T) string {
	t.Helper()
	versions := map[string]int64{}
	for _, r := range into[registry.Listed[registry.Rule]](t, b.do(t, "GET", "/v1/namespaces/default/rules", "", http.StatusOK)).Items {
		versions[r.Name] = r.Version
	}
	text, err := json.Marshal(versions)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestApply_IsRefusedWhenItsRulesAreOthersByNow(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	login := strings.Replace(loginRule, "{", `{"name":"login",`, 1)
	body := func(prune bool, versions string) string {
		return fmt.Sprintf(`{"prune":%t,"rules":[%s],"if_versions":%s}`, prune, login, versions)
	}
	b.do(t, "POST", applyPath, body(true, `{}`), http.StatusOK)
	b.do(t, "PUT", "/v1/namespaces/default/rules/other", loginRule, http.StatusCreated)
	made := b.versions(t)
	b.do(t, "PUT", "/v1/namespaces/default/rules/other", laxRule, http.StatusOK, "If-Match", "*")

	for _, query := range []string{"", "?dry_run=1"} {
		w := b.do(t, "POST", applyPath+query, body(true, made), http.StatusPreconditionFailed)
		p := into[problem](t, w)
		if want := fmt.Sprintf(`rule "other" was changed by %q`, adminauth.BootstrapName); !strings.Contains(p.Detail, want) || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %q as %s, want %q as a problem", query, p.Detail, w.Header().Get("Content-Type"), want)
		}
	}
	if b.versions(t) == made || into[registry.Rule](t, b.do(t, "GET", "/v1/namespaces/default/rules/other", "", http.StatusOK)).Body.Limits[0].Limit != 50 {
		t.Errorf("the other's change is lost: %s", b.versions(t))
	}
	b.do(t, "POST", applyPath, body(false, made), http.StatusOK) // which leaves the other rule alone
	b.do(t, "POST", "/v1/namespaces", `{"name":"elsewhere"}`, http.StatusCreated)
	made = b.versions(t)
	b.do(t, "PUT", "/v1/namespaces/elsewhere/rules/other", loginRule, http.StatusCreated)
	if done := into[applied](t, b.do(t, "POST", applyPath, body(true, made), http.StatusOK)); len(done.Deleted) != 1 {
		t.Errorf("applied %+v, want the other rule deleted", done)
	}
	b.do(t, "POST", applyPath, `{"rules":[],"prune":true,"if_versions":{"login":"1"}}`, http.StatusUnprocessableEntity)
	b.do(t, "POST", applyPath, `{"rules":[],"prune":true,"if_versions":[1]}`, http.StatusUnprocessableEntity)
	b.do(t, "POST", applyPath, `{"rules":[],"prune":true}`, http.StatusOK) // whichever there are
}

func TestRollback_IsRefusedWhenTheRulesAreOthersByNow(t *testing.T) {
	t.Parallel()
	b := newRegistryBed(t, setup{})
	const path = "/v1/namespaces/default/rollback"
	b.do(t, "PUT", loginPath, loginRule, http.StatusCreated)
	made := b.versions(t)
	b.do(t, "DELETE", loginPath, "", http.StatusNoContent, "If-Match", "*")
	p := into[problem](t, b.do(t, "POST", path, fmt.Sprintf(`{"revision":0,"if_versions":%s}`, made), http.StatusPreconditionFailed))
	if !strings.Contains(p.Detail, `rule "login" was deleted`) {
		t.Errorf("got %q, want the rule that is gone", p.Detail)
	}
	back := into[applied](t, b.do(t, "POST", path, fmt.Sprintf(`{"revision":1,"if_versions":%s}`, b.versions(t)), http.StatusOK))
	if len(back.Created) != 1 {
		t.Errorf("rolled back: %+v, want the rule again", back)
	}
	many := map[string]int64{}
	for i := range 10_000 {
		many[fmt.Sprintf("a-rule-with-a-name-of-some-length-%d", i)] = 1
	}
	text, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	b.do(t, "POST", path, fmt.Sprintf(`{"revision":1,"if_versions":%s}`, text), http.StatusPreconditionFailed)
}
