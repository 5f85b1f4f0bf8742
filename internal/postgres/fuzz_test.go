package postgres

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/registry"
)

func FuzzParseCursor(f *testing.F) {
	f.Add("", "a", "b")
	f.Add(cursorOf([]string{"user", "u_42"}), "", "")
	f.Add("WyJ4Il0", "x", "y")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		if parts, err := parseCursor(text, "", ""); err == nil && len(parts) != 2 {
			t.Errorf("%q: %q, want two parts", text, parts)
		}
		key := []string{strings.ToValidUTF8(a, "?"), strings.ToValidUTF8(b, "?")}
		if got, err := parseCursor(cursorOf(key), "", ""); len(cursorOf(key)) <= maxCursor && (err != nil || !slices.Equal(got, key)) {
			t.Errorf("%q comes back as %q (%v)", key, got, err)
		}
	})
}

func FuzzParsePoint(f *testing.F) {
	f.Add(Point{}.String())
	f.Add("120:" + strings.Repeat("aB", 32))
	f.Add("120:ab12")
	f.Add("-1:" + strings.Repeat("00", 32))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePoint(text)
		if again, parseErr := ParsePoint(p.String()); parseErr != nil || again != p {
			t.Errorf("%q: %v comes back as %v (%v)", text, p, again, parseErr)
		}
		if err == nil && (p.Revision < 0 || !strings.Contains(text, ":")) {
			t.Errorf("%q is taken for %v", text, p)
		}
	})
}

func FuzzParseNotice(f *testing.F) {
	f.Add(`{"revision":3,"kind":"block","who":{"dimension":"user","id":"u"}}`)
	f.Add("nonsense")
	f.Fuzz(func(t *testing.T, payload string) {
		n := parseNotice(payload)
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if again := parseNotice(string(text)); again != n {
			t.Errorf("%q: %+v comes back as %+v", payload, n, again)
		}
	})
}

func FuzzSnapshot_PieceIsTakenOrQuarantined(f *testing.F) {
	f.Add("rule", `{"limits":[{"limit":1,"window":"1m"}]}`)
	f.Add("tier", `{"groups":[{"name":"all","unlimited":true}]}`)
	f.Add("block", `{"subject":{"dimension":"ip","id":"::1"},"until":"2026-01-01T00:00:00+00:00"}`)
	f.Add("revision", "7")
	f.Fuzz(func(t *testing.T, kind, body string) {
		var s registry.Snapshot
		p := piece{kind: kind, namespace: "default", name: "x", body: body}
		if err := p.addTo(&s); err != nil {
			if q := p.quarantined(err); !json.Valid(q) {
				t.Errorf("%q is quarantined as %q", body, q)
			}
			if len(s.Rules)+len(s.Tiers)+len(s.Blocks)+len(s.Exemptions) > 0 {
				t.Errorf("%q is taken and quarantined", body)
			}
		}
	})
}
