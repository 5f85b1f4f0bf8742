package control

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

type ruleText = ruledoc.Rule

func sample() registry.Snapshot {
	return registry.Snapshot{
		Revision: 42, Rules: []ruleText{rule("a", 1), rule("b", 2)},
		Tiers:       []registry.Tier{{Name: "pro", Default: true, Groups: []registry.RouteGroup{{Name: "all", Unlimited: true}}}},
		Blocks:      []registry.Block{{Who: registry.Who{Dimension: "ip", ID: "10.0.0.0/8"}, Reason: "scan"}},
		Exemptions:  []registry.Exemption{{Who: registry.Who{Dimension: "ip", ID: "10.1.0.0/16"}, Reason: "probe"}},
		Quarantined: []json.RawMessage{[]byte(`{"kind":"rule","namespace":"default","name":"c","fault":"broken"}`)},
	}
}

func TestSeal_RoundTrip(t *testing.T) {
	t.Parallel()
	s, err := seal(sample())
	if err != nil {
		t.Fatal(err)
	}
	again, snap, err := open(s.text)
	if err != nil || again.revision != 42 || again.digest != s.digest {
		t.Fatalf("open: %v, %d %s, want 42 %s", err, again.revision, again.digest, s.digest)
	}
	if want := sample(); !reflect.DeepEqual(snap, want) {
		t.Errorf("got %+v, want %+v", snap, want)
	}
	later := sample()
	later.Revision = 43
	if next, _ := seal(later); next.digest != s.digest {
		t.Errorf("another revision with the same rules has digest %s, want %s", next.digest, s.digest)
	}
}

func TestOpen_RefusesEveryPartAndEveryOtherByte(t *testing.T) {
	t.Parallel()
	s, err := seal(sample())
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.text {
		if _, _, err := open(s.text[:i]); !errors.Is(err, errDamaged) {
			t.Fatalf("the first %d bytes: %v, want damaged", i, err)
		}
		broken := []byte(string(s.text))
		broken[i] ^= 1
		if again, _, err := open(broken); err == nil && (again.revision != s.revision || again.digest != s.digest) {
			t.Fatalf("with byte %d changed it was taken", i)
		}
	}
}

func FuzzOpen(f *testing.F) {
	s, err := seal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.text)
	f.Add(stamp(1, []byte(`{"rules":[{"name":1}]}`)).text)
	f.Add([]byte("sluice-snapshot 1 9 x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, snap, err := open(text)
		if err == nil && s.revision != snap.Revision {
			t.Errorf("%q: revision %d and %d", text, s.revision, snap.Revision)
		}
	})
}

func TestSeal_QuarantinesEntriesThatAreTooLongAlone(t *testing.T) {
	t.Parallel()
	in := sample()
	long := rule("long", 1)
	long.Match.Users = []string{strings.Repeat("u", 10<<20)}
	in.Rules = append(in.Rules, long)
	s, err := seal(in)
	if err != nil {
		t.Fatal(err)
	}
	_, snap, err := open(s.text)
	if err != nil || len(snap.Rules) != 2 || len(snap.Quarantined) != 2 || len(s.text) > maxEntry {
		t.Fatalf("open: %v, %d rules, %d quarantined, %d bytes, want 2 and 2", err, len(snap.Rules), len(snap.Quarantined), len(s.text))
	}
	text := textOf(snap)
	if len(text.LeftOut) != 2 || text.LeftOut[1].Name != "long" || !strings.Contains(text.Faults[1].Error(), "match by tier") {
		t.Errorf("left out %v because of %v, want the long rule and what to do", text.LeftOut, text.Faults)
	}
}

func TestFile_ReplacesWholeAndRefusesDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "snapshot")
	f := newFile(path)
	if _, _, err := f.load(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	s, _ := seal(sample())
	if err := f.save(s); err != nil {
		t.Fatal(err)
	}
	if got, snap, err := f.load(); err != nil || got.revision != 42 || len(snap.Rules) != 2 {
		t.Errorf("load: %v, %+v", err, snap)
	}
	if err := os.Truncate(path, int64(len(s.text)/2)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.load(); !errors.Is(err, errDamaged) {
		t.Errorf("truncated: %v, want damaged", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files are left, want the snapshot alone", len(entries))
	}
}

func TestTextOf_MakesOneRuleOfEachGroupOfATier(t *testing.T) {
	t.Parallel()
	limits := []ruledoc.Limit{{Limit: 10, Window: ruledoc.Duration(time.Minute)}}
	other := rule("x", 1)
	other.Namespace = "shop"
	text := textOf(registry.Snapshot{Rules: []ruleText{other}, Tiers: []registry.Tier{{Name: "pro", Groups: []registry.RouteGroup{
		{Name: "search", Routes: []string{"/search/*"}, Limits: limits}, {Name: "rest", Unlimited: true},
	}}}})
	parsed, faults := ruledoc.FromDocument("database", *text.Document)
	merged, more := ruledoc.Merge(parsed)
	set, _, last := merged.Compile(nil)
	if n := len(faults) + len(more) + len(last); n != 0 || set.Len() != 5 {
		t.Fatalf("%d rules, faults %v %v %v, want the rule and two for the tier in each of two namespaces", set.Len(), faults, more, last)
	}
	for r := range set.Rules() {
		switch r.Name {
		case "tier:pro:search":
			if r.Layer != "tier" || len(r.Limits) != 1 || len(r.Key) != 1 || r.Key[0] != sluice.User || r.Match.Tiers[0] != "pro" {
				t.Errorf("search is %+v", r)
			}
		case "tier:pro:rest":
			if r.Action != sluice.Allow || len(r.Limits) != 0 {
				t.Errorf("rest is %+v", r)
			}
		}
	}
}

func TestGap_TellsOfRevisionsWithoutANotice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gap
		step := func(revision sluice.Revision, want bool, why string) {
			t.Helper()
			if got := g.polled(revision, time.Now()); got != want {
				t.Errorf("%s: missed is %v, want %v", why, got, want)
			}
			time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		}
		step(5, false, "what was before")
		step(6, false, "its notice may come")
		g.noticed(6)
		step(6, false, "it came")
		step(7, false, "its notice may come")
		step(7, true, "it did not")
		step(7, false, "told once")
	})
}

func TestCensus_CountsThoseWhoBeatBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	var c census
	if alive, _ := c.look(map[string]string{"a": `{"number":1}`, "dead": `{"number":9}`}); len(alive) != 0 {
		t.Errorf("at the first look %v are alive, want nobody: one cannot tell", alive)
	}
	for n := range silentLooks {
		alive, gone := c.look(map[string]string{"a": `{"revision":3,"number":` + time.Duration(n + 2).String()[:1] + `}`, "dead": `{"number":9}`})
		if last := n == silentLooks-1; (len(gone) == 1) != last || n == 0 && (len(alive) != 1 || alive[0].Name != "a" || alive[0].Revision != 3) {
			t.Fatalf("look %d: alive %v, gone %v", n, alive, gone)
		}
	}
}
