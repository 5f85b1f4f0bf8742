package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
)

func TestMetrics_HaveRulesAndNeverUsers(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	const user = "user-whom-nobody-may-see"
	if got := admitted(t, node, user, 5); got != 3 {
		t.Fatalf("%d of 5 pass, want 3", got)
	}
	for series, want := range map[string]string{
		`sluice_decisions_total{mode="exact",namespace="default",outcome="allowed",rule="users"}`: "3",
		`sluice_decisions_total{mode="exact",namespace="default",outcome="refused",rule="users"}`: "2",
		`sluice_rule_results_total{namespace="default",result="refused",rule="users"}`:            "2",
		`sluice_rules_loaded`: "1",
		`sluice_nodes`:        "1",
	} {
		if got := metric(t, node, series); got != want {
			t.Errorf("%s is %q, want %s", series, got, want)
		}
	}
	// A namespace that callers invent makes no series of its own.
	mustRequest(t, http.MethodPost, "http://"+node.HTTP+"/v1/check", `{"namespace":"invented-namespace","subject":{"user":"`+user+`"},"route":"/secret-route"}`)
	all := mustRequest(t, http.MethodGet, "http://"+node.Admin+"/metrics", "").body
	for _, word := range []string{user, "invented-namespace", "secret-route"} {
		if strings.Contains(all, word) {
			t.Errorf("the metrics have %q in them", word)
		}
	}
}

// span is one as the console exporter writes it.
type span struct {
	Name        string
	SpanContext struct{ TraceID string }
	Parent      struct{ SpanID string }
	Attributes  []struct {
		Key   string
		Value struct{ Value any }
	}
}

func TestTraces_HaveOneSpanPerDecisionUnderTheCallersTrace(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule, Stdout: &stdout, Env: []string{"OTEL_TRACES_EXPORTER=console"}})
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for range 2 {
		mustRequest(t, http.MethodPost, "http://"+node.HTTP+"/v1/check", `{"subject":{"user":"ann"}}`, "Traceparent", "00-"+traceID+"-"+spanID+"-01")
	}
	stopped(t, node, exitWithin)

	spans := 0
	for dec := json.NewDecoder(&stdout); ; spans++ {
		var s span
		if err := dec.Decode(&s); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if s.Name != "sluice.check" || s.SpanContext.TraceID != traceID || s.Parent.SpanID != spanID {
			t.Errorf("got %+v, want sluice.check in the caller's trace", s)
		}
		seen := map[string]any{}
		for _, a := range s.Attributes {
			seen[a.Key] = a.Value.Value
		}
		if seen["sluice.rule"] != "users" || seen["sluice.outcome"] != "allowed" || seen["sluice.mode"] != "exact" {
			t.Errorf("got attributes %v", seen)
		}
	}
	if spans != 2 {
		t.Errorf("%d spans of 2 decisions", spans)
	}
}

func TestTraces_WrongVariablesEndTheNodeAtItsStart(t *testing.T) {
	t.Parallel()
	out := testnode.Run(t, []string{"OTEL_TRACES_EXPORTER=nonsense"}, "serve", "--set", "redis.url=memory",
		"--set", "http.listen=127.0.0.1:0", "--set", "grpc.listen=", "--set", "admin.listen=")
	if out.Code != 1 || !strings.Contains(out.Stderr, "OTEL_") {
		t.Errorf("got exit code %d, want 1 and the variables named:\n%s", out.Code, out.Stderr)
	}
}
