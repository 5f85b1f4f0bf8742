package apikey

import (
	"bytes"
	"strings"
	"testing"
)

const pepper = "a pepper of at least thirty-two characters"

func TestNew_MakesWhatParseTakesApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make    func(string) (string, string, []byte)
		parse   func(string) (string, string, bool)
		genuine func(string, string) bool
		prefix  string
	}{
		"key":   {New, Parse, Genuine, "slc_"},
		"token": {NewToken, ParseToken, GenuineToken, "slt_"},
	} {
		text, id, hash := c.make(pepper)
		gotID, secret, ok := c.parse(text)
		if !ok || gotID != id || !strings.HasPrefix(text, c.prefix) {
			t.Errorf("%s %q of id %q: parsed id %q, %v", name, text, id, gotID, ok)
		}
		if !bytes.Equal(Hash(pepper, secret), hash) {
			t.Errorf("%s: the secret's hash is not the one to be kept", name)
		}
		if !c.genuine(pepper, id) || c.genuine(pepper+"!", id) {
			t.Errorf("%s: id %q must be genuine with its own pepper, and only so", name, id)
		}
		again, _, _ := c.make(pepper)
		if again == text {
			t.Errorf("%s: the same twice", name)
		}
	}
}

func TestParse_TellsKeysAndTokensApart(t *testing.T) {
	t.Parallel()
	keyText, keyID, _ := New(pepper)
	tokenText, tokenID, _ := NewToken(pepper)
	if _, _, ok := ParseToken(keyText); ok {
		t.Error("an API key passed for a token")
	}
	if _, _, ok := Parse(tokenText); ok {
		t.Error("a token passed for an API key")
	}
	if Genuine(pepper, tokenID) || GenuineToken(pepper, keyID) {
		t.Error("an id of one kind passed for one of the other")
	}
}

func TestParse_RefusesEveryChangedCharacter(t *testing.T) {
	t.Parallel()
	text, _, _ := New(pepper)
	for i := range text {
		for _, c := range []byte("a2_A\n\x00") {
			if text[i] == c {
				continue
			}
			if changed := text[:i] + string(c) + text[i+1:]; accepted(changed) {
				t.Errorf("%q was taken with %q at %d", text, c, i)
			}
		}
	}
	for _, other := range []string{"", "slc_", text + "a", text[1:], text[:len(text)-1], " " + text, strings.ToUpper(text), strings.Repeat("a", len(text))} {
		if accepted(other) {
			t.Errorf("%q was taken", other)
		}
	}
}

func accepted(text string) bool {
	_, _, ok := Parse(text)
	return ok
}

func TestRenew_KeepsTheIDAndChangesTheSecret(t *testing.T) {
	t.Parallel()
	text, id, hash := New(pepper)
	newer, newHash := Renew(pepper, id)
	gotID, secret, ok := Parse(newer)
	if !ok || gotID != id || newer == text || bytes.Equal(hash, newHash) || !bytes.Equal(Hash(pepper, secret), newHash) {
		t.Errorf("%q became %q: id %q, %v", text, newer, gotID, ok)
	}
}

func TestGenuine_RefusesWhatWasNeverHandedOut(t *testing.T) {
	t.Parallel()
	_, id, _ := New(pepper)
	for i := range id {
		other := id[:i] + map[bool]string{true: "b", false: "a"}[id[i] == 'a'] + id[i+1:]
		if Genuine(pepper, other) {
			t.Errorf("%q passed; it was made from %q", other, id)
		}
	}
	for _, other := range []string{"", "a", id + "a", id[1:], strings.ToUpper(id), id[:23] + "\n", strings.Repeat("a", idLength)} {
		if Genuine(pepper, other) {
			t.Errorf("%q passed", other)
		}
	}
}

func TestMatches_TakesTheNewerAndTheOlderAndNoOther(t *testing.T) {
	t.Parallel()
	one, two, three := Hash(pepper, "1"), Hash(pepper, "2"), Hash(pepper, "3")
	for _, c := range []struct {
		kept [][]byte
		hash []byte
		want bool
	}{
		{nil, one, false},
		{nil, make([]byte, HashLength-1), false},
		{[][]byte{one}, one, true},
		{[][]byte{one}, two, false},
		{[][]byte{one, two}, two, true},
		{[][]byte{one, two}, three, false},
		{[][]byte{one}, nil, false},
	} {
		if got := Matches(c.kept, c.hash); got != c.want {
			t.Errorf("Matches(%x, %x) = %v", c.kept, c.hash, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, _, _ := New(pepper)
	f.Add(text)
	f.Add("slc_")
	f.Add(strings.Replace(text, "_", "\n", 2))
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, ok := Parse(text)
		if !ok {
			return
		}
		if key.write(id, secret) != text {
			t.Errorf("%q was read as %q and %q, which write %q", text, id, secret, key.write(id, secret))
		}
		_ = Genuine(pepper, id)
	})
}
