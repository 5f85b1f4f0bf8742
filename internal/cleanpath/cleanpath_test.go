package cleanpath_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/cleanpath"
)

func TestClean_GivesEverySpellingOfAPathTheSameRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, escaped, route string }{
		{"/", "/", "/"},
		{"/api/search", "/api/search", "/api/search"},
		{"/api/%73earch", "/api/search", "/api/search"},
		{"/api/%73%65%61%72%63%68", "/api/search", "/api/search"},
		{"//api///search", "/api/search", "/api/search"},
		{"/api/./search", "/api/search", "/api/search"},
		{"/api/%2e/search", "/api/search", "/api/search"},
		{"/x/../api/search", "/api/search", "/api/search"},
		{"/x/%2E%2e/api/search", "/api/search", "/api/search"},
		{"/../../api/search", "/api/search", "/api/search"},
		{"/api/search/", "/api/search/", "/api/search/"},
		{"/api/search/x/..", "/api/search/", "/api/search/"},
		{"/api/search/.", "/api/search/", "/api/search/"},
		{"/..", "/", "/"},
		{"/a/...", "/a/...", "/a/..."},
		{"/.well-known/x", "/.well-known/x", "/.well-known/x"},
		{"/caf%c3%a9", "/caf%C3%A9", "/café"},
		{"/café", "/caf%C3%A9", "/café"},
		{"/a%3fb/raw", "/a%3Fb/raw", "/a%3Fb/raw"},
		{"/a%20b", "/a%20b", "/a b"},
		{"/a%25b", "/a%25b", "/a%b"},
		{"/a:b;c=d", "/a:b;c=d", "/a:b;c=d"},
		{"/a%3Bb", "/a%3Bb", "/a;b"},
	} {
		got, err := cleanpath.Clean(c.in)
		if err != nil || got.Escaped != c.escaped || got.Route != c.route {
			t.Errorf("Clean(%q) = %+v, %v; want %q and %q", c.in, got, err, c.escaped, c.route)
		}
	}
}

func TestClean_RefusesWhatServersReadInDifferentWays(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]error{
		"":                       cleanpath.ErrRelative,
		"*":                      cleanpath.ErrRelative,
		"api":                    cleanpath.ErrRelative,
		"/api%2fsearch":          cleanpath.ErrSlash,
		"/api%2Fsearch":          cleanpath.ErrSlash,
		`/api\search`:            cleanpath.ErrSlash,
		"/api%5csearch":          cleanpath.ErrSlash,
		"/api/%00search":         cleanpath.ErrControl,
		"/api/search%0d%0aX: y":  cleanpath.ErrControl,
		"/api/\x7f":              cleanpath.ErrControl,
		"/api/%7":                cleanpath.ErrEncoding,
		"/api/%":                 cleanpath.ErrEncoding,
		"/api/%zz":               cleanpath.ErrEncoding,
		"/x/..;/api/search":      cleanpath.ErrDots,
		"/x/%2e%2e;a=b/api":      cleanpath.ErrDots,
		"/x/.;/api/search":       cleanpath.ErrDots,
		"/%2e%2e%2fapi":          cleanpath.ErrSlash,
		"/api/..%2f..%2fetc":     cleanpath.ErrSlash,
		"/api/search/..;x/admin": cleanpath.ErrDots,
	} {
		if got, err := cleanpath.Clean(in); !errors.Is(err, want) {
			t.Errorf("Clean(%q) = %+v, %v; want %v", in, got, err, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"/", "/api/%73earch", "//a/./b/../c", "/a%3Fb", "/caf%C3%A9/", "/..;/x", "/a b\"<>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		p, err := cleanpath.Clean(in)
		if err != nil {
			return
		}
		again, err := cleanpath.Clean(p.Escaped)
		if err != nil || again != p {
			t.Fatalf("Clean(%q) = %+v, cleaned again %+v, %v", in, p, again, err)
		}
		decoded, err := url.PathUnescape(p.Escaped)
		if err != nil || decoded != p.Decoded {
			t.Fatalf("Clean(%q): decoded %q, net/url says %q, %v", in, p.Decoded, decoded, err)
		}
		if wire := (&url.URL{Path: p.Decoded, RawPath: p.Escaped}).EscapedPath(); wire != p.Escaped {
			t.Fatalf("Clean(%q): %q is sent as %q", in, p.Escaped, wire)
		}
		for _, bad := range []string{"//", "/./", "/../", "?"} {
			if strings.Contains(p.Route+"/", bad) && !strings.HasSuffix(p.Route, "/") {
				t.Fatalf("Clean(%q): route %q contains %q", in, p.Route, bad)
			}
		}
	})
}

func BenchmarkClean(b *testing.B) {
	for b.Loop() {
		if _, err := cleanpath.Clean("/api/v1/items/42"); err != nil {
			b.Fatal(err)
		}
	}
}
