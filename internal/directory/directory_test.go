package directory

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// on returns a directory of a document at a time that the test can move.
func on(t testing.TB, text string) (*Directory, *time.Time) {
	t.Helper()
	p, faults := ruledoc.Decode("t.toml", ruledoc.TOML, []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s, faults := Build(p.Document, noon)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	now := noon
	d := New(func() time.Time { return now })
	d.Set(s)
	return d, &now
}

func filled(d *Directory, s sluice.Subject) sluice.Subject {
	d.Fill("", &s)
	return s
}

const tiers = `
[[tier]]
name = "free"
default = true
[[tier]]
name = "pro"
users = ["ann"]
[[tier]]
name = "team"
tenants = ["acme"]
[[tier]]
name = "robot"
api_keys = ["k1"]
`

func TestFill_TakesTheTierOfTheMostSpecific(t *testing.T) {
	t.Parallel()
	d, _ := on(t, tiers)
	for _, c := range []struct {
		subject sluice.Subject
		want    string
	}{
		{sluice.Subject{}, "free"},
		{sluice.Subject{User: "bob"}, "free"},
		{sluice.Subject{User: "bob", Tenant: "acme"}, "team"},
		{sluice.Subject{User: "ann", Tenant: "acme"}, "pro"},
		{sluice.Subject{User: "ann", Tenant: "acme", APIKey: "k1"}, "robot"},
		{sluice.Subject{User: "ann", Tier: "gold"}, "gold"}, // told by a verified source
	} {
		if got := filled(d, c.subject).Tier; got != c.want {
			t.Errorf("%+v is on tier %q, want %q", c.subject, got, c.want)
		}
	}
}

func TestFill_BlocksAndExemptsByEveryFieldAndEveryNetworkAround(t *testing.T) {
	t.Parallel()
	d, now := on(t, `
[[block]]
cidr = "10.0.0.0/8"
reason = "wide"
until = 2026-11-15T14:00:00Z
[[block]]
cidr = "10.1.0.0/16"
reason = "narrow"
until = 2026-11-15T13:00:00Z
[[block]]
cidr = "2001:db8::/32"
reason = "six"
[[block]]
user = "eve"
reason = "abuse"
until = 2026-11-15T15:00:00Z
[[block]]
user = "eve"
reason = "for good"
[[block]]
user = "old"
reason = "over"
until = 2026-11-15T11:00:00Z
[[exemption]]
cidr = "10.1.2.3"
[[exemption]]
tenant = "us"
[[exemption]]
api_key = "probe"
`)
	ip := func(s string) sluice.Subject { return sluice.Subject{IP: netip.MustParseAddr(s)} }
	for _, c := range []struct {
		at      string
		subject sluice.Subject
		blocked string
		exempt  bool
	}{
		{"12:00", ip("10.9.9.9"), "wide", false},
		{"12:00", ip("::ffff:10.9.9.9"), "wide", false},
		{"12:00", ip("10.1.9.9"), "wide", false}, // the one that ends last
		{"12:00", ip("10.1.2.3"), "wide", true},
		{"14:00", ip("10.1.9.9"), "", false},
		{"14:00", ip("10.1.2.3"), "", true},
		{"12:00", ip("11.0.0.0"), "", false},
		{"12:00", ip("2001:db8::1%eth0"), "six", false},
		{"12:00", sluice.Subject{User: "eve"}, "for good", false},
		{"12:00", sluice.Subject{User: "eve", IP: netip.MustParseAddr("10.9.9.9")}, "for good", false},
		{"12:00", sluice.Subject{User: "old"}, "", false},
		{"12:00", sluice.Subject{Tenant: "us"}, "", true},
		{"12:00", sluice.Subject{APIKey: "probe", User: "eve"}, "for good", true},
		{"12:00", sluice.Subject{User: "ann", Blocked: &sluice.BlockedSubject{Reason: "by the door"}}, "by the door", false},
	} {
		hour, err := time.Parse("15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		*now = noon.Truncate(24 * time.Hour).Add(time.Duration(hour.Hour()) * time.Hour)
		got := filled(d, c.subject)
		reason := ""
		if got.Blocked != nil {
			reason = got.Blocked.Reason
		}
		if reason != c.blocked || got.Exempt != c.exempt {
			t.Errorf("at %s %+v: blocked %q exempt %v, want %q %v", c.at, c.subject, reason, got.Exempt, c.blocked, c.exempt)
		}
	}
}

func TestFill_GivesTheOverridesThatAreValidNowMostSpecificFirst(t *testing.T) {
	t.Parallel()
	override := func(who, rule string, limit int, more string) string {
		return fmt.Sprintf("[[override]]\n%s\nrule = %q\nlimits = [{ limit = %d, window = \"1h\" }]\n%s\n", who, rule, limit, more)
	}
	d, now := on(t, override(`tenant = "acme"`, "api", 1, "")+
		override(`user = "ann"`, "api", 2, "valid_until = 2026-11-15T13:00:00Z")+
		override(`user = "ann"`, "search", 3, "")+
		override(`user = "ann"`, "api", 4, "valid_from = 2026-11-15T13:00:00Z")+
		override(`user = "ann"`, "api", 5, "namespace = \"shop\"")+
		override(`api_key = "k1"`, "api", 6, "")+
		override(`user = "ann"`, "api", 7, "valid_until = 2026-11-15T12:00:00Z"))
	for _, c := range []struct {
		hour      int
		namespace string
		subject   sluice.Subject
		want      string
	}{
		{12, "", sluice.Subject{User: "ann"}, "api=2 search=3"},
		{13, "default", sluice.Subject{User: "ann"}, "search=3 api=4"},
		{12, "shop", sluice.Subject{User: "ann"}, "api=5"},
		{12, "other", sluice.Subject{User: "ann"}, ""},
		{12, "", sluice.Subject{User: "ann", Tenant: "acme", APIKey: "k1"}, "api=6 api=2 search=3 api=1"},
		{12, "", sluice.Subject{Tenant: "acme", Overrides: []sluice.Override{{Rule: "api", Limits: []sluice.Limit{sluice.PerHour(9)}}}}, "api=9 api=1"},
	} {
		*now = noon.Truncate(24 * time.Hour).Add(time.Duration(c.hour) * time.Hour)
		subject := c.subject
		d.Fill(c.namespace, &subject)
		var got []string
		for _, o := range subject.Overrides {
			got = append(got, fmt.Sprintf("%s=%d", o.Rule, o.Limits[0].Limit))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("at %d:00 in %q %+v: overrides %v, want %s", c.hour, c.namespace, c.subject, got, c.want)
		}
	}
}

func TestBuild_LeavesFaultyEntriesOutAlone(t *testing.T) {
	t.Parallel()
	s, faults := Build(ruledoc.Document{
		Tiers:      []ruledoc.Tier{{Name: ""}, {Name: "a", Users: []string{"u"}}},
		Blocks:     []ruledoc.Block{{}, {Who: ruledoc.Who{CIDR: "10.0.0.0/33"}}, {Who: ruledoc.Who{User: "u", Tenant: "t"}}},
		Exemptions: []ruledoc.Exemption{{Who: ruledoc.Who{CIDR: "::1"}}},
		Overrides:  []ruledoc.Override{{Who: ruledoc.Who{User: "u"}, Rule: "r"}},
	}, noon)
	if len(faults) != 5 || s.Len() != 2 {
		t.Errorf("%d subjects on record, faults %v: want 2 and 5", s.Len(), faults)
	}
}

func TestFill_SeesOneSnapshotWhileOthersAreSet(t *testing.T) {
	t.Parallel()
	d := New(nil)
	var done sync.WaitGroup
	for _, tier := range []string{"a", "b"} {
		s, _ := Build(ruledoc.Document{
			Tiers:  []ruledoc.Tier{{Name: tier, Users: []string{"u"}}},
			Blocks: []ruledoc.Block{{Who: ruledoc.Who{User: "u"}, Reason: tier}},
		}, noon)
		d.Set(s)
		done.Go(func() {
			for range 2000 {
				d.Set(s)
				if got := filled(d, sluice.Subject{User: "u"}); got.Blocked == nil || got.Tier != got.Blocked.Reason {
					t.Errorf("tier %q of one snapshot, block %+v of another", got.Tier, got.Blocked)
					return
				}
			}
		})
	}
	done.Wait()
}

func TestFill_AllocatesNothing(t *testing.T) {
	d, _ := on(t, large())
	for name, s := range subjects() {
		if n := testing.AllocsPerRun(100, func() {
			subject := s
			d.Fill("default", &subject)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// large has 10,000 users on tiers, 1,000 networks and 1,000 overrides.
func large() string {
	var b strings.Builder
	b.WriteString("[[tier]]\nname = \"free\"\ndefault = true\n[[tier]]\nname = \"pro\"\nusers = [")
	for i := range 10_000 {
		fmt.Fprintf(&b, "\"user-%d\",", i)
	}
	b.WriteString("]\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "[[block]]\ncidr = \"10.%d.%d.0/24\"\nreason = \"abuse\"\nuntil = 2027-01-01T00:00:00Z\n", i/256, i%256)
		fmt.Fprintf(&b, "[[override]]\nuser = \"user-%d\"\nrule = \"api\"\nlimits = [{ limit = 5, window = \"1h\" }]\nvalid_until = 2027-01-01T00:00:00Z\n", i)
	}
	return b.String()
}

func subjects() map[string]sluice.Subject {
	free := netip.MustParseAddr("192.0.2.1")
	return map[string]sluice.Subject{
		"unknown":    {User: "nobody", Tenant: "none", APIKey: "k", IP: free},
		"tier":       {User: "user-5000", Tenant: "none", IP: free},
		"overridden": {User: "user-500", IP: free},
		"blocked":    {User: "nobody", IP: netip.MustParseAddr("10.1.1.1")},
	}
}

func BenchmarkFill(b *testing.B) {
	d, _ := on(b, large())
	d.now = time.Now
	for name, s := range subjects() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				subject := s
				d.Fill("default", &subject)
			}
		})
	}
}
