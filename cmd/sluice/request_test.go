package main

import (
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagNames are those of a command itself.
func flagNames(cmd *cobra.Command) iter.Seq[string] {
	return func(yield func(string) bool) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden {
				yield(f.Name)
			}
		})
	}
}

func TestParseRequest_ReadsFieldsAndAttributes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want request
	}{
		{"user=u_42", request{Subject: subject{User: "u_42"}}},
		{
			"namespace=n tenant=t user=u api_key=k ip=192.0.2.1 tier=gold route=/a method=GET cost=5",
			request{Namespace: "n", Subject: subject{"t", "u", "k", "192.0.2.1", "gold"}, Route: "/a", Method: "GET", Cost: 5},
		},
		{"route=/a?b=c plan=a=b", request{Route: "/a?b=c", Attributes: map[string]string{"plan": "a=b"}}},
		{"User=x", request{Attributes: map[string]string{"User": "x"}}},
		{"cost=9223372036854775807", request{Cost: 1<<63 - 1}},
	} {
		got, err := parseRequest(strings.Fields(c.args))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.args, got, err, c.want)
		}
	}
}

func TestParseRequest_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "name who asks", "user": "not name=value", "=x": "not name=value", "user=": "not name=value", "cost=0": "from 1", "cost=-1": "from 1", "cost=1.5": "from 1",
		"cost=9223372036854775808": "from 1", "user=a user=b": "user is there twice", "plan=a plan=b": "plan is there twice", "cost=1 cost=1": "cost is there twice",
	} {
		_, err := parseRequest(strings.Fields(args))
		if usage := (usageError{}); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want a usage error with %q", args, err, want)
		}
	}
}

// FuzzParseRequest: whatever is typed, the request says the same in JSON and in a URL, or it is a usage error.
func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{"user=u_42 route=/a", "cost=5 plan=x", "user", "=", "cost=x", "a=b=c", "ip=::1 method=GET tenant=\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, " ")
		r, err := parseRequest(args)
		if err != nil {
			if usage := (usageError{}); !errors.As(err, &usage) {
				t.Fatalf("%q: %v is no usage error", args, err)
			}
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		query := r.query()
		for _, arg := range args {
			name, value, _ := strings.Cut(arg, "=")
			if query.Get(name) != value && query.Get("attribute."+name) != value && name != "cost" {
				t.Fatalf("%q: %s is not in %v", args, arg, query)
			}
		}
	})
}

func TestPrintable_ShowsNothingThatSteersTheTerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"u_42 /api": "u_42 /api", "ü": "ü", "a\x1b[2Jb": `a\u001b[2Jb`, "a\nb": `a\u000ab`, "\u009b31m": `\u009b31m`, "x\u202ey": `x\u202ey`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
