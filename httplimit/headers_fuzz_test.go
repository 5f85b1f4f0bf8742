package httplimit_test

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

func names(h http.Header) string {
	list := make([]string, 0, len(h))
	for name := range h {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// FuzzHeaders lets a store and the rules' labels say anything, and reads the header fields as a client would.
func FuzzHeaders(f *testing.F) {
	f.Add("user", "user", int64(10), int64(20), int64(60_000), int64(3), int64(1_500), int64(9_000), uint8(0), uint8(0), int64(0))
	f.Add("a\"b\\", "é\x00\r\n", int64(1), int64(1), int64(100), int64(-1), int64(-1), int64(1<<62), uint8(3), uint8(4), int64(30_000))
	f.Add("a", "a-2", int64(5), int64(0), int64(500), int64(5), int64(math.MinInt64), int64(0), uint8(2), uint8(0), int64(1))
	f.Add("", "-2", int64(1<<40), int64(0), int64(500), int64(1<<60), int64(0), int64(0), uint8(1), uint8(2), int64(1))
	f.Fuzz(func(t *testing.T, label1, label2 string, limit, burst, window, remaining, retry, reset int64, allowed, mode uint8, longer int64) {
		ms := func(n int64) time.Duration { return time.Duration(n%1e12) * time.Millisecond }
		first := labelled("1", "1", sluice.Bucket(limit, ms(window), burst), sluice.Limit{Algorithm: sluice.FixedWindow, Limit: limit, Window: ms(window)})
		first.Response.RetryAfter = ms(longer)
		rules := []sluice.Rule{first, labelled("2", "2", sluice.Per(limit, ms(window)))}
		if slices.ContainsFunc(sluice.Validate(rules), func(e *sluice.RuleError) bool { return !e.Warning }) {
			t.Skip()
		}
		states := make([]sluice.State, 3)
		for i := range states {
			states[i] = sluice.State{
				Allowed: allowed>>i&1 != 0, Mode: sluice.Mode(mode % 5), Remaining: remaining * int64(i+1),
				RetryAfter: ms(retry * int64(i+1)), ResetAfter: ms(reset),
			}
			if retry == math.MinInt64 {
				states[i].RetryAfter = sluice.Never
			}
		}
		d := decisionOf(t, rules, states...)
		for i, label := range []string{label1, label1, label2} { // as a rule set of another making might have them
			r := *d.Results()[i].Rule
			r.Label = label
			d.Results()[i].Rule = &r
		}
		h := http.Header{}
		httplimit.WriteHeaders(h, &d, 0, epoch)
		checkHeaders(t, h, &d)
	})
}

func checkHeaders(t *testing.T, h http.Header, d *sluice.Decision) {
	t.Helper()
	for name, values := range h {
		if len(values) != 1 || strings.ContainsFunc(values[0], func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%s: %q, want one line of printable ASCII", name, values)
		}
	}
	policies, quotas := list(t, h, "RateLimit-Policy"), list(t, h, "RateLimit")
	if len(policies) != len(d.Results()) || len(quotas) != len(policies) {
		t.Fatalf("%d policies and %d quotas, want %d of each", len(policies), len(quotas), len(d.Results()))
	}
	waiting := !d.Allowed && d.RetryAfter != sluice.Never
	retry := number(t, h, "Retry-After", !waiting)
	seen := map[string]bool{}
	for i := range policies {
		name := policies[i].Value.(string)
		if seen[name] || quotas[i].Value != name {
			t.Errorf("policy %d is named %q among %v, its quota %q", i, name, seen, quotas[i].Value)
		}
		seen[name] = true
		q, left, wait := param(t, policies[i], "q"), param(t, quotas[i], "r"), param(t, quotas[i], "t")
		if left > q {
			t.Errorf("policy %q: %d of %d left", name, left, q)
		}
		if w, ok := policies[i].Params.Get("w"); ok && w.(int64) < 1 {
			t.Errorf("policy %q: w=%v", name, w)
		}
		if waiting && !d.Results()[i].Allowed && retry < wait {
			t.Errorf("Retry-After %d is earlier than t=%d of %q", retry, wait, name)
		}
	}
	if limit, left := number(t, h, "X-RateLimit-Limit", false), number(t, h, "X-RateLimit-Remaining", false); left < 0 || left > limit {
		t.Errorf("X-RateLimit-Remaining is %d of %d", left, limit)
	}
	if reset := number(t, h, "X-RateLimit-Reset", false); !time.Unix(reset, 0).After(epoch) {
		t.Errorf("X-RateLimit-Reset %d is not after %d", reset, epoch.Unix())
	} else if waiting && time.Unix(reset, 0).After(epoch.Add(time.Duration(retry)*time.Second)) {
		t.Errorf("X-RateLimit-Reset %d is after Retry-After %d", reset, retry)
	}
}

// list parses a field as a list of strings with integer parameters.
func list(t *testing.T, h http.Header, name string) []httpsfv.Item {
	t.Helper()
	parsed, err := httpsfv.UnmarshalList(h.Values(name))
	if err != nil {
		t.Fatalf("%s: %q: %v", name, h.Values(name), err)
	}
	items := make([]httpsfv.Item, len(parsed))
	for i, member := range parsed {
		item, ok := member.(httpsfv.Item)
		if _, isString := item.Value.(string); !ok || !isString {
			t.Fatalf("%s: %q: member %d is no string", name, h.Values(name), i)
		}
		for _, p := range item.Params.Names() {
			param(t, item, p)
		}
		items[i] = item
	}
	return items
}

func param(t *testing.T, item httpsfv.Item, name string) int64 {
	t.Helper()
	value, _ := item.Params.Get(name)
	n, ok := value.(int64)
	if !ok || n < 0 {
		t.Errorf("%q: parameter %s is %v, want an integer", item.Value, name, value)
	}
	return n
}

func number(t *testing.T, h http.Header, name string, absent bool) int64 {
	t.Helper()
	if absent {
		if h.Get(name) != "" {
			t.Errorf("%s: %q, want none", name, h.Get(name))
		}
		return 0
	}
	n, err := strconv.ParseInt(h.Get(name), 10, 64)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return n
}
