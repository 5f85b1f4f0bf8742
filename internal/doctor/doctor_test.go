package doctor_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/doctor"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// sound is a configuration about which there is nothing to say.
func sound() *config.Config {
	return &config.Config{
		Enabled: true,
		HTTP:    config.HTTP{Listen: "127.0.0.1:8080"},
		Admin:   config.Admin{Listen: "127.0.0.1:9090", Token: "0123456789abcdef"},
		Redis:   config.Redis{URL: "redis://x", HashKey: "00112233445566778899aabbccddeeff"},
		Limiter: config.Limiter{Timeout: ruledoc.Duration(10 * time.Second)}, // nothing about a slow machine
	}
}

// examine returns what is not fine, by topic.
func examine(t *testing.T, cfg *config.Config, opts rueidisconn.Options) map[string]doctor.Finding {
	t.Helper()
	bad := map[string]doctor.Finding{}
	for _, f := range doctor.Examine(t.Context(), cfg, opts) {
		if f.Grade != doctor.Fine {
			bad[f.Topic] = f
			if f.Cure == "" {
				t.Errorf("%s: %q has no cure", f.Topic, f.Found)
			}
		}
	}
	return bad
}

func TestExamine_FindsNothingOnASoundRedis(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	if bad := examine(t, sound(), rueidisconn.Options{Addrs: []string{server.Addr()}}); len(bad) > 0 {
		t.Errorf("got %+v, want nothing", bad)
	}
}

func TestExamine_NamesWhatIsAmissWithRedis(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, topic string
		grade       doctor.Grade
		spoil       func(t *testing.T, s *testredis.Server, opts *rueidisconn.Options)
	}{
		{"eviction", "eviction", doctor.Fault, func(t *testing.T, s *testredis.Server, _ *rueidisconn.Options) {
			do(t, s, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
			do(t, s, "CONFIG", "SET", "maxmemory", "100mb")
		}},
		{"a key without expiry", "expiry", doctor.Warning, func(t *testing.T, s *testredis.Server, _ *rueidisconn.Options) {
			do(t, s, "SET", "foreign", "1")
		}},
		{"the wrong mode", "redis mode", doctor.Fault, func(_ *testing.T, _ *testredis.Server, opts *rueidisconn.Options) { opts.Cluster = true }},
		{"no Redis", "redis", doctor.Fault, func(_ *testing.T, s *testredis.Server, _ *rueidisconn.Options) { s.Kill() }},
		{"a user without scripts", "scripts", doctor.Fault, func(t *testing.T, s *testredis.Server, opts *rueidisconn.Options) {
			do(t, s, "ACL", "SETUSER", "weak", "on", ">secret", "~*", "+info", "+ping", "+time")
			opts.Username, opts.Password = "weak", "secret"
		}},
		{"a clock an hour ahead", "clock", doctor.Warning, func(_ *testing.T, s *testredis.Server, _ *rueidisconn.Options) {
			s.Clock().Advance(time.Hour)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := testredis.Single(t, testredis.Options{MovableClock: c.topic == "clock"})
			opts := rueidisconn.Options{Addrs: []string{server.Addr()}}
			c.spoil(t, server, &opts)
			if bad := examine(t, sound(), opts); bad[c.topic].Grade != c.grade {
				t.Errorf("got %+v, want a %s about %s", bad, c.grade, c.topic)
			}
		})
	}
}

func TestExamine_NamesWhatIsAmissWithTheSettings(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, topic string
		grade       doctor.Grade
		spoil       func(*config.Config)
	}{
		{"published hash key", "hash key", doctor.Warning, func(c *config.Config) { c.Redis.HashKey = "" }},
		{"no token", "admin", doctor.Warning, func(c *config.Config) { c.Admin.Token = "" }},
		{"plain text for everybody", "http", doctor.Warning, func(c *config.Config) { c.HTTP.Listen = ":8080" }},
		{"switched off", "enabled", doctor.Fault, func(c *config.Config) { c.Enabled = false }},
		{"everybody trusted", "proxy trust", doctor.Fault, func(c *config.Config) {
			c.Identity.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
		}},
		{"headers nobody may send", "proxy trust", doctor.Warning, func(c *config.Config) { c.Identity.Headers.User = "X-User" }},
		{"depth alone", "proxy trust", doctor.Warning, func(c *config.Config) { c.Identity.TrustedDepth = 1 }},
		{"memory", "redis", doctor.Warning, func(*config.Config) {}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := sound()
			cfg.Redis.URL = config.MemoryURL
			c.spoil(cfg)
			if bad := examine(t, cfg, rueidisconn.Options{}); bad[c.topic].Grade != c.grade {
				t.Errorf("got %+v, want a %s about %s", bad, c.grade, c.topic)
			}
		})
	}
}

func do(t *testing.T, s *testredis.Server, args ...string) {
	t.Helper()
	if _, err := s.Do(args...); err != nil {
		t.Fatal(err)
	}
}
