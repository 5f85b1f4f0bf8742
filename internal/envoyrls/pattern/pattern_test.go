package pattern_test

import (
	"slices"
	"testing"

	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
)

func TestParse_ReadsWhatStringWrites(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]pattern.Pattern{
		"remote_address":            {{Key: "remote_address", Kind: pattern.Any}},
		"path=/v1/*,user":           {{Key: "path", Kind: pattern.Prefix, Value: "/v1/"}, {Key: "user", Kind: pattern.Any}},
		"a=*":                       {{Key: "a", Kind: pattern.Prefix}},
		"a=":                        {{Key: "a"}},
		`a=b\*`:                     {{Key: "a", Value: "b*"}},
		"a=b*c":                     {{Key: "a", Value: "b*c"}},
		`a\=b=c=d\,e,f\\g`:          {{Key: "a=b", Value: "c=d,e"}, {Key: `f\g`, Kind: pattern.Any}},
		"generic_key=x,generic_key": {{Key: "generic_key", Value: "x"}, {Key: "generic_key", Kind: pattern.Any}},
	} {
		got, err := pattern.Parse(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if got := want.String(); got != text {
			t.Errorf("%+v is written %q, want %q", want, got, text)
		}
	}
}

func TestParse_RefusesWhatIsNoPattern(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ",", "a,", "=b", `a\`, `a=b\`} {
		if got, err := pattern.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a=b,c=d*,e")
	f.Add(`a\=b=c\,d\*,\\`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := pattern.Parse(text)
		if err != nil {
			return
		}
		again, err := pattern.Parse(p.String())
		if err != nil || !slices.Equal(p, again) {
			t.Fatalf("%q is %+v, written %q, which is %+v, %v", text, p, p.String(), again, err)
		}
	})
}
