package envoyimport

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

const day = 24 * time.Hour

// unitWindows are the units of the reference service, with its lengths of months and years.
var unitWindows = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour,
	"day": day, "week": 7 * day, "month": 30 * day, "year": 365 * day,
}

// rule makes the rule of a descriptor. One without a rate limit and with nothing below it lets its requests pass, which
// keeps a broader one beside it from taking them.
func (w *walk) rule(here []step, d filed) {
	f := found{pattern: textOf(here)}
	f.rule = ruledoc.Rule{
		Namespace: w.domain, Name: nameOf(f.pattern), Layer: pattern.Attribute,
		Match: ruledoc.Match{Attributes: map[string]string{pattern.Attribute: f.pattern}},
	}
	if d.RateLimit == nil {
		f.rule.Action = sluice.Allow.String()
		w.found = append(w.found, f)
		return
	}
	for i, s := range here {
		if s.Kind != pattern.Exact && !s.shared {
			f.rule.Key = append(f.rule.Key, pattern.Position(i+1))
		}
	}
	if n := len(f.rule.Key); n > sluice.MaxKeyDimensions {
		w.note(d.file, here, fmt.Sprintf("left out, so NOT LIMITED: it counts by %d values, and a rule by %d at most", n, sluice.MaxKeyDimensions))
		return
	}
	f.name = string(d.RateLimit.Name)
	w.replacesOf(&f, here, d)
	w.limit(&f, here, d)
	w.found = append(w.found, f)
}

func (w *walk) replacesOf(f *found, here []step, d filed) {
	for _, r := range d.RateLimit.Replaces {
		switch string(r.Name) {
		case "":
			w.fault(d.file, here, "an entry of replaces has no name")
		case f.name:
			w.fault(d.file, here, "replaces has the name of the limit itself")
		default:
			f.replaces = append(f.replaces, string(r.Name))
		}
	}
}

// limit fills in what happens to requests of the rule.
func (w *walk) limit(f *found, here []step, d filed) {
	limit, rule := d.RateLimit, &f.rule
	window, known := unitWindows[strings.ToLower(string(limit.Unit))]
	switch {
	case bool(limit.Unlimited) && known:
		w.fault(d.file, here, "unit is set, and the limit is unlimited: remove one of them")
	case !bool(limit.Unlimited) && !known:
		w.fault(d.file, here, fmt.Sprintf("unit is %q: it must be second, minute, hour, day, week, month or year", limit.Unit))
	}
	w.label(rule, here, d)
	switch zero, shadow := limit.RequestsPerUnit == 0, bool(d.ShadowMode || d.QuotaMode); {
	case bool(limit.Unlimited):
		f.unlimited = true
		rule.Action, rule.Label, rule.Key = sluice.Allow.String(), pattern.Unlimited, nil
		return
	case zero && shadow:
		w.note(d.file, here, "a limit of 0 that refuses nothing lets its requests pass, and reports no limit")
		rule.Action, rule.Key = sluice.Allow.String(), nil
		return
	case zero:
		rule.Action, rule.Key = sluice.Block.String(), nil
		rule.Response.RetryAfter = ruledoc.Duration(window) // which is also how the door tells the unit of a limit of 0
		return
	case shadow:
		rule.Action = sluice.Shadow.String()
	}
	if d.QuotaMode {
		w.note(d.file, here, "quota_mode becomes the action shadow: it never refuses, and answers carry no metadata about it")
	}
	rule.Limits = []ruledoc.Limit{{Algorithm: w.opts.Algorithm, Limit: int64(limit.RequestsPerUnit), Window: ruledoc.Duration(window)}}
}

// label carries the limit's name over, which Envoy shows to clients.
func (w *walk) label(rule *ruledoc.Rule, here []step, d filed) {
	name := string(d.RateLimit.Name)
	odd := func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }
	if len(name) > sluice.MaxLabelLength || strings.ContainsFunc(name, odd) {
		w.note(d.file, here, fmt.Sprintf("the name %q is left out: a label has up to %d printable ASCII characters, no quotes and no backslashes", name, sluice.MaxLabelLength))
		return
	}
	rule.Label = name
}

// replacements are the rules for limits that others of the same call replace. A descriptor then passes uncounted, when
// one of those stands beside it. Unlimited ones are not replaced.
func (w *walk) replacements() []ruledoc.Rule {
	var rules []ruledoc.Rule
	for _, own := range w.found {
		if own.name == "" || own.unlimited {
			continue
		}
		for _, other := range w.found {
			if !slices.Contains(other.replaces, own.name) {
				continue
			}
			rules = append(rules, ruledoc.Rule{
				Namespace: w.domain, Name: nameOf(own.pattern + " beside " + other.pattern), Layer: pattern.Attribute,
				Match: ruledoc.Match{Attributes: map[string]string{
					pattern.Attribute: own.pattern, pattern.Beside: other.pattern,
				}},
				Action: sluice.Allow.String(),
			})
		}
	}
	return rules
}

// nameOf makes a rule's name of a pattern. What is too long, or holds what a name cannot, is cut and told apart by its
// hash.
func nameOf(text string) string {
	const kept = sluice.MaxNameLength - 17
	if utf8.RuneCountInString(text) <= sluice.MaxNameLength && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	clean := []rune(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(text, "?")))
	hash := sha256.Sum256([]byte(text))
	return string(clean[:min(len(clean), kept)]) + "#" + hex.EncodeToString(hash[:8])
}
