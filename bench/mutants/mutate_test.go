package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/redisstore"
)

func TestParse_ReadsEveryScript(t *testing.T) {
	t.Parallel()
	for _, s := range redisstore.Scripts() {
		p, err := parse(s.Text)
		if err != nil {
			t.Errorf("script %s: %v", s.Name, err)
			continue
		}
		if len(p.calls) == 0 {
			t.Errorf("script %s: found no call of Redis", s.Name)
		}
	}
}

func TestParse_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"local x='a", "if x then", "x = 1 end", "x!=1", "x = function() end", "return"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
}

func TestMutants_AreTheFaultsAsked(t *testing.T) {
	t.Parallel()
	const text = "-- a<b\nlocal t=call('TIME')\nif d<-5 then d=0 end\nif v then x=d%8 else x=#KEYS end\ncall('SET',k,x,'PX',ARGV[4])\nreturn math.min(x,1)\n"
	list, err := mutants(redisstore.NewScript("s", text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		got = append(got, m.change)
		if m.text == text {
			t.Errorf("%s changes nothing", m)
		}
		if !strings.HasPrefix(m.text, "-- a<b\n") {
			t.Errorf("%s changes a comment", m)
		}
	}
	for _, want := range []string{
		"< -> <=", "< -> >=", "< -> ~=", "- ->", "5 -> 6", "5 -> 4", "5 -> 0", "0 -> 1", "% -> /", "#KEYS -> (#KEYS-1)",
		"d<-5 -> true", "d<-5 -> false", "v -> not(v)", "clamp dropped: if d<-5 then d=0 end", "assignment dropped: x=d%8",
		"write dropped: call('SET',k,x,'PX',ARGV[4])", "write twice: call('SET',k,x,'PX',ARGV[4])",
		",'PX',ARGV[4] ->", "'PX' -> 'EX'", "ARGV[4] -> ARGV[4]+1", "'PX',ARGV[4] -> 'KEEPTTL'", "min -> max",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no mutant %q among %q", want, got)
		}
	}
}

// Two mutants of one name could not be told apart in equivalent.txt.
func TestMutants_HaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	all, err := allMutants("")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.String()] {
			t.Errorf("two mutants are named %s", m)
		}
		seen[m.String()] = true
	}
}

func TestEquivalents_AreMutants(t *testing.T) {
	t.Parallel()
	listed, err := readEquivalents()
	if err != nil {
		t.Fatal(err)
	}
	all, err := allMutants("")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		find(listed, m)
	}
	for _, e := range listed {
		if len(e.found) < len(e.scripts) {
			t.Errorf("no mutant of each of %v | %s | %s", e.scripts, e.line, e.change)
		}
	}
}
