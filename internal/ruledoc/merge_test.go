package ruledoc

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

func parse(t *testing.T, name, text string) *Parsed {
	t.Helper()
	p, faults := Decode(name, TOML, []byte(text))
	for _, f := range faults {
		t.Logf("fault: %v", f)
	}
	if p == nil {
		t.Fatalf("%s cannot be parsed", name)
	}
	return p
}

func wantFaults(t *testing.T, got []Fault, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d faults %v, want %d", len(got), got, len(want))
		return
	}
	for i, f := range got {
		if !strings.Contains(f.Error(), want[i]) {
			t.Errorf("fault %q, want %q in it", f.Error(), want[i])
		}
	}
}

const limited = "key = [\"ip\"]\nlimits = [{ limit = 5, window = \"1m\" }]\n"

func TestMerge_NamesBothPlacesOfANameGivenTwice(t *testing.T) {
	t.Parallel()
	m, faults := Merge(
		parse(t, "a.toml", "[[rule]]\nname = \"login\"\n"+limited),
		parse(t, "b.toml", "\n[[rule]]\nname = \"login\"\n"+limited+"[[rule]]\nnamespace = \"other\"\nname = \"login\"\n"+limited),
		nil,
	)
	wantFaults(t, faults, `b.toml:3:1: rule "login": name: a.toml:1 has the same name`)
	if len(m.Document.Rules) != 2 {
		t.Errorf("%d rules, want the first and the one of another namespace", len(m.Document.Rules))
	}
}

func TestMerge_KeepsOneTierForEachSubjectAndOneDefault(t *testing.T) {
	t.Parallel()
	m, faults := Merge(parse(t, "a.toml", `
[[tier]]
name = "free"
default = true
users = ["u1"]
[[tier]]
name = "pro"
default = true
users = ["u2", "u1"]
[[tier]]
name = "free"
`))
	wantFaults(t, faults, `a.toml:8:1: tier "pro": default: tier "free" is the default already`,
		`a.toml:9:16: warning: tier "pro": users[1]: user "u1" is on tier "free" already`,
		`a.toml:11:1: tier "free": name: a.toml:2 has the same name`)
	if len(m.Document.Tiers) != 2 || m.Document.Tiers[1].Default {
		t.Errorf("tiers %+v", m.Document.Tiers)
	}
}

func TestMerge_WarnsAboutOverridesThatDoNothing(t *testing.T) {
	t.Parallel()
	_, faults := Merge(parse(t, "a.toml", `
[[rule]]
name = "slow"
action = "throttle"
max_delay = "1s"
limits = [{ algorithm = "token_bucket", limit = 5, window = "1m" }]
[[rule]]
name = "open"
action = "allow"
[[override]]
user = "u"
rule = "gone"
limits = [{ limit = 5, window = "1m" }]
[[override]]
user = "u"
rule = "slow"
limits = [{ limit = 5, window = "1m" }]
[[override]]
user = "u"
rule = "open"
limits = [{ limit = 5, window = "1m" }]
`))
	wantFaults(t, faults, `a.toml:12:1: warning: override of rule "gone" for user "u": rule: there is no rule "gone" in namespace "default"`,
		"the rule throttles, which needs a token_bucket", `the rule's action is "allow", which has no limits to replace`)
}

func TestCompile_TellsFileAndLineOfWhatTheRuleSetRefuses(t *testing.T) {
	t.Parallel()
	m, faults := Merge(parse(t, "a.toml", "[[rule]]\nname = \"ok\"\n"+limited), parse(t, "b.toml", `
[[rule]]
name = "bad"
key = ["route"]
limits = [{ limit = 5, window = "1m" },
  { limit = 5, window = "1ms" }]

[[rule]]
name = "shaded"
key = ["ip"]
limits = [{ limit = 5, window = "1m" }]
`))
	wantFaults(t, faults)
	set, held, faults := m.Compile(nil)
	wantFaults(t, faults, `b.toml:4:8: rule "bad": key[0]: counting by route needs match.routes`,
		`b.toml:6:16: rule "bad": limits[1].window: window is 1ms`,
		`b.toml:8:3: warning: rule "shaded": never wins`)
	if set.Len() != 2 || len(held) != 0 {
		t.Errorf("%d rules, held %v: want the bad one left out alone", set.Len(), held)
	}
}

func TestCompile_KeepsAFaultyRuleInItsLastGoodForm(t *testing.T) {
	t.Parallel()
	good, _ := Merge(parse(t, "a.toml", "[[rule]]\nname = \"a\"\n"+limited+"[[rule]]\nname = \"b\"\nkey=[\"user\"]\nlimits = [{ limit = 7, window = \"1m\" }]\n[[rule]]\nname = \"c\"\nkey=[\"tenant\"]\nlimits = [{ limit = 7, window = \"1m\" }]\n"))
	before, _, faults := good.Compile(nil)
	wantFaults(t, faults)
	// a is misspelt, b does not compile, c was taken out by purpose, d is new and faulty.
	edited, _ := Merge(parse(t, "a.toml", "[[rule]]\nname = \"a\"\nkye = [\"ip\"]\n[[rule]]\nname = \"b\"\nlimits = [{ limit = 0, window = \"1m\" }]\n[[rule]]\nname = \"d\"\n[[rule]]\nname = \"e\"\n"+limited))
	after, held, _ := edited.Compile(before)
	var names []string
	for r := range after.Rules() {
		names = append(names, r.Name)
		if r.Name == "b" && r.Limits[0].Limit != 7 {
			t.Errorf("b has limits %v, want those it had", r.Limits)
		}
	}
	if strings.Join(names, "") != "eab" || len(held) != 2 {
		t.Errorf("rules %v, held %v: want e, and a and b as they were", names, held)
	}
	if before.Len() != 3 {
		t.Error("the set before was changed")
	}
	var none *sluice.RuleSet
	if set, held, _ := edited.Compile(none); set.Len() != 1 || len(held) != 0 {
		t.Errorf("without a set before: %d rules, held %v", set.Len(), held)
	}
}

func TestFromDocument_LeavesFaultyEntriesOut(t *testing.T) {
	t.Parallel()
	p, faults := FromDocument("database", Document{
		Rules:  []Rule{{Name: "x", Action: "nothing"}, {Name: "y"}},
		Blocks: []Block{{Who: Who{CIDR: "10.0.0.0"}, Reason: "r"}, {}},
	})
	wantFaults(t, faults, `database: rule "x": action: unknown action`, "database: block of nobody: names nobody")
	if len(p.Document.Rules) != 1 || len(p.Document.Blocks) != 1 {
		t.Errorf("kept %+v", p.Document)
	}
	if m, faults := Merge(p); len(faults) > 0 || len(m.Document.Rules) != 1 {
		t.Errorf("merged %+v, faults %v", m, faults)
	}
}
