package rueidisconn

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		want Options // TLS only told from nil
	}{
		{"redis://host", Options{Addrs: []string{"host:6379"}}},
		{"redis://host/", Options{Addrs: []string{"host:6379"}}},
		{"redis://host:", Options{Addrs: []string{"host:6379"}}},
		{"redis://host:7000/3", Options{Addrs: []string{"host:7000"}, DB: 3}},
		{"redis://127.0.0.1:7000", Options{Addrs: []string{"127.0.0.1:7000"}}},
		{"redis://[::1]", Options{Addrs: []string{"[::1]:6379"}}},
		{"redis://[::1]:7000/1", Options{Addrs: []string{"[::1]:7000"}, DB: 1}},
		{"redis://user:pass@host", Options{Addrs: []string{"host:6379"}, Username: "user", Password: "pass"}},
		{"redis://:pass@host", Options{Addrs: []string{"host:6379"}, Password: "pass"}},
		{"redis://user@host", Options{Addrs: []string{"host:6379"}, Username: "user"}},
		{"redis://u%40x:p%2F%3A%40%23@host", Options{Addrs: []string{"host:6379"}, Username: "u@x", Password: "p/:@#"}},
		{"REDIS://host", Options{Addrs: []string{"host:6379"}}},
		{"rediss://user:pass@host/2", Options{Addrs: []string{"host:6379"}, Username: "user", Password: "pass", DB: 2, TLS: &tls.Config{}}},
		{"redis+sentinel://h1,h2:7000,h3/mymaster", Options{Addrs: []string{"h1:26379", "h2:7000", "h3:26379"}, SentinelMaster: "mymaster"}},
		{"redis+sentinel://u:p@h1:1,h2/m", Options{Addrs: []string{"h1:1", "h2:26379"}, SentinelMaster: "m", Username: "u", Password: "p"}},
		{"redis+sentinel://[::1],[::2]:7/m", Options{Addrs: []string{"[::1]:26379", "[::2]:7"}, SentinelMaster: "m"}},
		{"rediss+sentinel://h/m", Options{Addrs: []string{"h:26379"}, SentinelMaster: "m", TLS: &tls.Config{}}},
		{"redis+cluster://h1:7000,h2", Options{Addrs: []string{"h1:7000", "h2:6379"}, Cluster: true}},
		{"redis+cluster://h1,h2,/", Options{Addrs: []string{"h1:6379", "h2:6379"}, Cluster: true}},
		{"redis+cluster://u:p@[2001:db8::1]:7000,[2001:db8::2]:7001", Options{Addrs: []string{"[2001:db8::1]:7000", "[2001:db8::2]:7001"}, Cluster: true, Username: "u", Password: "p"}},
		{"rediss+cluster://h", Options{Addrs: []string{"h:6379"}, Cluster: true, TLS: &tls.Config{}}},
	} {
		got, err := ParseURL(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if !slices.Equal(got.Addrs, c.want.Addrs) || got.Cluster != c.want.Cluster || got.SentinelMaster != c.want.SentinelMaster ||
			got.Username != c.want.Username || got.Password != c.want.Password || got.DB != c.want.DB {
			t.Errorf("%s: got %+v, want %+v", c.url, got, c.want)
		}
		if (got.TLS == nil) != (c.want.TLS == nil) {
			t.Errorf("%s: got TLS %v, want %v", c.url, got.TLS != nil, c.want.TLS != nil)
		}
		if got.TLS != nil && got.TLS.MinVersion < tls.VersionTLS12 {
			t.Errorf("%s: got TLS version %x, want 1.2 or newer", c.url, got.TLS.MinVersion)
		}
		if _, err := New(got); err != nil {
			t.Errorf("%s: New does not take the options: %v", c.url, err)
		}
	}
}

// badURLs have "secret" as their password, or a part of it where a special character was not encoded.
var badURLs = []string{
	"", "host:6379", "secret", "user:secret@host:6379", "//user:secret@host", ":secret@host",
	"http://user:secret@host", "redis+x://user:secret@host", "redis+://user:secret@host:x",
	"redis://", "redis:///0", "redis://user:secret@", "redis://user:secret@:6379",
	"redis://user:secret@host:port", "redis://user:secret@host:65536", "redis://user:secret@host:-1",
	"redis://user:secret@::1", "redis://user:secret@[::1", "redis://user:secret@[host]:1", "redis://user:secret@[1.2.3.4]:1",
	"redis://user:secret@host/db", "redis://user:secret@host/-1", "redis://user:secret@host/0/1",
	"redis://user:secret@host?db=1", "redis://user:secret@host#0",
	"redis+sentinel://user:secret@host", "redis+sentinel://user:secret@host/",
	"redis+cluster://user:secret@host/0",
	"redis://user:12/secret@host", "redis://user:12?secret@host", "redis://user:12#secret@host",
	"redis://user:/secret@host", "redis://user:%zzsecret@host", "redis://user:secret%@host", "redis://user:se cret@host\x7f",
	"redis://secret/@host:6379", "redis+cluster://user:12/secret@host",
}

func TestParseURL_ErrorsNeverShowThePassword(t *testing.T) {
	t.Parallel()
	for _, raw := range badURLs {
		opts, err := ParseURL(raw)
		if err == nil {
			t.Errorf("%q: got %+v, want an error", raw, opts)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows the password: %v", raw, err)
		}
		if _, err := Open(raw); err == nil {
			t.Errorf("Open(%q): got none, want an error", raw)
		}
		if _, err := OpenStore(raw); err == nil {
			t.Errorf("OpenStore(%q): got none, want an error", raw)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, raw := range badURLs {
		f.Add(raw)
	}
	f.Add("redis+sentinel://u:p@h1:1,[::1]:2/m")
	f.Fuzz(func(t *testing.T, raw string) {
		opts, err := ParseURL(raw)
		if err != nil {
			return
		}
		if len(opts.Addrs) == 0 {
			t.Errorf("%q: no address and no error", raw)
		}
		for _, addr := range opts.Addrs {
			if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
				t.Errorf("%q: got address %q, want host:port", raw, addr)
			}
		}
	})
}
