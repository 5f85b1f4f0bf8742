package ruledoc

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice"
)

// names are texts that are hard to write: quotes, escapes, what other formats read as numbers, bools or nothing.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z][a-z0-9_-]{0,12}`),
		rapid.SampledFrom([]string{"true", "no", "null", "~", "1", "007", "1e3", "2026-01-01", "a: b", "- a", "#a", "'", `"`, `\`, "\n", "\t", "é", "a\x7fb", " a ", "{", "*a", "&a", "!a", "%", "@", "`", "0x1", "<<", "=", "\u2028", "\ufeff", "[", "?", "|", ">"}),
		rapid.String(),
	).Filter(func(s string) bool { return s != "" })
}

func durations() *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.Map(rapid.Int64Range(0, 1000), func(n int64) time.Duration { return time.Duration(n) * time.Second }),
		rapid.Map(rapid.Int64Range(0, 400), func(n int64) time.Duration { return time.Duration(n) * 24 * time.Hour }),
		rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }),
	)
}

func lists[T any](g *rapid.Generator[T]) *rapid.Generator[[]T] { return rapid.SliceOfN(g, 0, 3) }

func rules() *rapid.Generator[sluice.Rule] {
	return rapid.Custom(func(t *rapid.T) sluice.Rule {
		text := func(label string) string { return rapid.OneOf(rapid.Just(""), names()).Draw(t, label) }
		prefix := rapid.Custom(func(t *rapid.T) netip.Prefix {
			if rapid.Bool().Draw(t, "v6") {
				return netip.PrefixFrom(netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "addr"))), rapid.IntRange(0, 128).Draw(t, "bits")).Masked()
			}
			return netip.PrefixFrom(netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "addr"))), rapid.IntRange(0, 32).Draw(t, "bits")).Masked()
		})
		limit := rapid.Custom(func(t *rapid.T) sluice.Limit {
			return sluice.Limit{
				Algorithm: sluice.Algorithm(rapid.IntRange(0, 3).Draw(t, "algorithm")), Limit: rapid.Int64().Draw(t, "limit"),
				Window: durations().Draw(t, "window"), Burst: rapid.Int64().Draw(t, "burst"),
			}
		})
		return sluice.Rule{
			Namespace: text("namespace"), Name: text("name"), Priority: rapid.Int().Draw(t, "priority"), Layer: text("layer"),
			Match: sluice.Match{
				Tenants: lists(names()).Draw(t, "tenants"), Users: lists(names()).Draw(t, "users"), APIKeys: lists(names()).Draw(t, "api_keys"),
				Tiers: lists(names()).Draw(t, "tiers"), Routes: lists(names()).Draw(t, "routes"), Methods: lists(names()).Draw(t, "methods"),
				CIDRs: lists(prefix).Draw(t, "cidrs"), Attributes: rapid.MapOfN(names(), names(), 0, 3).Draw(t, "attributes"),
			},
			Key:    rapid.SliceOfN(rapid.Map(names(), func(s string) sluice.Dimension { return sluice.Dimension(s) }), 0, 3).Draw(t, "key"),
			Limits: lists(limit).Draw(t, "limits"), Action: sluice.Action(rapid.IntRange(0, 4).Draw(t, "action")),
			MaxDelay: durations().Draw(t, "max_delay"), OnStoreError: sluice.StoreErrorPolicy(rapid.IntRange(0, 2).Draw(t, "on_store_error")),
			Label: text("label"), Cost: rapid.Int64().Draw(t, "cost"),
			Response: sluice.Response{Status: rapid.IntRange(0, 999).Draw(t, "status"), Message: text("message"), RetryAfter: durations().Draw(t, "retry_after")},
			Disabled: rapid.Bool().Draw(t, "disabled"),
		}
	})
}

// normal fills in what FromRule leaves out because it is the default, and forgets the difference between empty and nil.
func normal(r sluice.Rule) sluice.Rule {
	if r.Namespace == sluice.DefaultNamespace {
		r.Namespace = ""
	}
	if r.Cost == 1 {
		r.Cost = 0
	}
	if r.Priority == sluice.DefaultPriority {
		r.Priority = 0
	}
	if r.Response.Status == sluice.DefaultStatus {
		r.Response.Status = 0
	}
	if r.Label == r.Layer {
		r.Label = ""
	}
	for i, p := range r.Match.CIDRs {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			r.Match.CIDRs[i] = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
	}
	match := reflect.ValueOf(&r.Match).Elem()
	for i := range match.NumField() {
		if match.Field(i).Len() == 0 {
			match.Field(i).SetZero()
		}
	}
	if len(r.Key) == 0 {
		r.Key = nil
	}
	if len(r.Limits) == 0 {
		r.Limits = nil
	}
	return r
}

func TestWrite_IsReadBackAsTheSameRule(t *testing.T) {
	t.Parallel()
	formats := map[Format]func(Document) ([]byte, error){
		TOML: func(d Document) ([]byte, error) {
			var b bytes.Buffer
			err := d.WriteTOML(&b)
			return b.Bytes(), err
		},
		YAML: func(d Document) ([]byte, error) {
			var b bytes.Buffer
			err := d.WriteYAML(&b)
			return b.Bytes(), err
		},
		JSON: func(d Document) ([]byte, error) { return json.Marshal(d) },
	}
	rapid.Check(t, func(t *rapid.T) {
		rule := normal(rules().Draw(t, "rule"))
		for format, write := range formats {
			text, err := write(Document{Rules: []Rule{FromRule(rule)}})
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			p, faults := Decode("written", format, text)
			if p == nil || len(faults) > 0 {
				t.Fatalf("%s of %+v:\n%s\n%v", format, rule, text, faults)
			}
			got, err := p.Document.Rules[0].ToRule()
			if err != nil || !reflect.DeepEqual(normal(got), rule) {
				t.Fatalf("%s:\n%s\ngot  %+v\nwant %+v (%v)", format, text, got, rule, err)
			}
		}
	})
}

func TestWriteTOML_ReadsAsAPersonWouldWriteIt(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := decodeFile(t, "testdata/all.yaml", YAML).WriteTOML(&b); err != nil {
		t.Fatal(err)
	}
	const want = `[[rule]]
namespace = "shop"
name = "search-free"
priority = 50
match = { tenants = ["t1"], users = ["u1"], api_keys = ["k1"], tiers = ["free"], routes = ["/api/search", "/api/v1/*"], methods = ["GET"], cidrs = ["10.0.0.0/8", "::1"], attributes = { plan = "trial" } }
key = ["user", "route"]
layer = "search"
limits = [
  { algorithm = "sliding_window", limit = 100, window = "1h" },
  { algorithm = "token_bucket", limit = 10, window = "1s", burst = 20 },
]
action = "throttle"
`
	if got := b.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant it to begin\n%s", got, want)
	}
}

func TestDuration_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "1h": time.Hour, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "24h": 24 * time.Hour, "10m": 10 * time.Minute, "20s": 20 * time.Second,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.Std() != want || d.String() != text {
			t.Errorf("%s: read as %s (%v), written as %s", text, d.Std(), err, d)
		}
	}
	for _, text := range []string{"", "5", "d", "1.5d", "106752d", "99999999999999999999d", "1w", "1d2h"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %s, want an error", text, d.Std())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(durations().Draw(t, "d"))
		var back Duration
		if err := back.UnmarshalText([]byte(d.String())); err != nil || back != d {
			t.Fatalf("%d is written %s and read %d (%v)", d, d, back, err)
		}
	})
}
