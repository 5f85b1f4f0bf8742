package main

import (
	"fmt"
	"strings"
)

const (
	ruleBody   = `{"key":["user"],"limits":[{"limit":5,"window":"1m"}]}`
	reasonBody = `{"reason":"trial"}`
	tokenBody  = `{"name":"trial","grants":[{"namespace":"own","role":"viewer"}]}`
	keyBody    = `{"name":"trial","owner":"u_1"}`
)

// call makes the request of a route that concerns a namespace, and whatever it needs to be there: everybody's request would be done if they
// might. Most routes need no more than their path.
func (d *door) call(pattern, ns string) request {
	method, path, _ := strings.Cut(pattern, " ")
	*d.calls++
	fresh := fmt.Sprintf("trial-%d", *d.calls)
	r := request{method: method, path: strings.NewReplacer("{ns}", ns, "{name}", fresh, "{dimension}", "user", "{id}", fresh).Replace(path)}
	switch path {
	case "/v1/rules", "/v1/overrides", "/v1/history":
		if ns == "other" { // for one's own, all that one may see is asked for
			r.path += "?namespace=other"
		}
		if pattern == "POST /v1/overrides" {
			r.path, r.body = path, overrideBody(ns)
		}
	case "/v1/inspect", "/v1/tail":
		r.path += "?namespace=" + ns
	case "/v1/explain", "/v1/refund", "/v1/reset":
		r.body = fmt.Sprintf(`{"namespace":%q,"subject":{"user":"u_1"}}`, ns)
	case "/sluice.v1.AdminService/":
		r.path += "Reset"
	case "/debug/pprof/profile", "/debug/pprof/trace":
		r.path += "?seconds=1"
	case "/v1/namespaces":
		r.body = fmt.Sprintf(`{"name":%q}`, fresh)
	case "/v1/namespaces/{ns}/rules/{name}":
		d.ruleCall(&r)
	case "/v1/namespaces/{ns}/rules:apply":
		r.body = fmt.Sprintf(`{"rules":[{"name":%q,"limits":[{"limit":5,"window":"1m"}]}]}`, fresh)
	case "/v1/namespaces/{ns}/rollback":
		r.body = `{"revision":` + d.must("GET", "/v1/nodes", "", "revision") + `}`
		d.must("PUT", "/v1/namespaces/"+ns+"/rules/"+fresh, ruleBody, "") // for there to be something to take back
	default:
		d.entryCall(&r, path, ns)
	}
	return r
}

func (d *door) ruleCall(r *request) {
	if r.method == "PUT" {
		r.body = ruleBody
		return
	}
	d.must("PUT", r.path, ruleBody, "")
	r.header = []string{"If-Match", "*"}
}

// entryCall is for what is in no namespace, and overrides.
func (d *door) entryCall(r *request, path, ns string) {
	body := map[string]string{"/v1/tiers/{name}": `{}`, "/v1/subjects/{dimension}/{id}": `{"tier":"pro"}`}[path]
	switch path {
	case "/v1/blocks/{dimension}/{id}", "/v1/exemptions/{dimension}/{id}":
		body = reasonBody
	case "/v1/overrides/{id}":
		r.path = "/v1/overrides/" + d.must("POST", "/v1/overrides", overrideBody(ns), "name")
		r.body = overrideBody(ns)
	case "/v1/subjects:import":
		r.body = `{"dimension":"user","id":"u_1","tier":"pro"}`
	case "/v1/keys":
		r.body = keyBody
	case "/v1/keys/{id}", "/v1/keys/{id}/rotate":
		r.path = strings.Replace(path, "{id}", d.must("POST", "/v1/keys", keyBody, "name"), 1)
	case "/v1/tokens":
		r.body = tokenBody
	case "/v1/tokens/{id}":
		r.path = "/v1/tokens/" + d.must("POST", "/v1/tokens", tokenBody, "name")
	}
	if body == "" {
		return
	}
	r.body, r.header = body, []string{"If-Match", "*"}
	if r.method != "PUT" {
		d.must("PUT", r.path, body, "")
	}
}

func overrideBody(ns string) string {
	return fmt.Sprintf(`{"namespace":%q,"subject":{"dimension":"user","id":"u_1"},"rule":"login","limits":[{"limit":5,"window":"1m"}],"reason":"trial"}`, ns)
}

// plant puts things in place that only those with a grant for them may read.
func (d *door) plant() {
	d.must("POST", "/v1/namespaces", `{"name":"own"}`, "")
	d.must("POST", "/v1/namespaces", `{"name":"other"}`, "")
	d.must("POST", "/v1/namespaces", fmt.Sprintf(`{"name":%q}`, plantedOther), "")
	d.must("PUT", "/v1/namespaces/other/rules/"+plantedOther, ruleBody, "")
	d.must("POST", "/v1/overrides", strings.Replace(overrideBody("other"), "login", plantedOther, 1), "")
	for path, body := range map[string]string{"subjects": `{"tier":"pro"}`, "blocks": reasonBody, "exemptions": reasonBody} {
		d.must("PUT", "/v1/"+path+"/tenant/"+plantedGlobal, body, "")
	}
	d.must("POST", "/v1/keys", strings.Replace(keyBody, "trial", plantedGlobal, 1), "")
	d.must("POST", "/v1/tokens", strings.Replace(tokenBody, "trial", plantedGlobal, 1), "")
}
