package rueidisconn

import (
	"strings"
	"testing"
	"time"
)

func TestOptions_FaultsAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	one := []string{"h:1"}
	for _, c := range []struct {
		name string
		opts Options
		want []string // in the error; none: no error
	}{
		{"nothing", Options{}, []string{"Addrs"}},
		{"single", Options{Addrs: one, DB: 5}, nil},
		{"sentinel", Options{Addrs: []string{"h:1", "i:1"}, SentinelMaster: "m", DB: 5}, nil},
		{"cluster", Options{Addrs: []string{"h:1", "i:1"}, Cluster: true}, nil},
		{"cluster and sentinels", Options{Addrs: one, Cluster: true, SentinelMaster: "m"}, []string{"Cluster"}},
		{"cluster and a database", Options{Addrs: one, Cluster: true, DB: 1}, []string{"Cluster"}},
		{"several single servers", Options{Addrs: []string{"h:1", "i:1"}}, []string{"several addresses"}},
		{"negative database", Options{Addrs: one, DB: -1}, []string{"DB is -1"}},
		{"several faults", Options{Cluster: true, DB: -1}, []string{"Addrs", "Cluster", "DB is -1"}},
	} {
		_, err := c.opts.withDefaults()
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%s: got error %v, want %q", c.name, err, c.want)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %v, want %q in it", c.name, err, want)
			}
		}
		if _, newErr := New(c.opts); (newErr != nil) != (err != nil) {
			t.Errorf("%s: New: got error %v, want %v", c.name, newErr, err)
		}
	}
}

func TestOptions_DefaultsAndWhatRueidisIsTold(t *testing.T) {
	t.Parallel()
	opts, err := Options{Addrs: []string{"h:1"}}.withDefaults()
	if err != nil || opts.Timeout != time.Second || opts.DialTimeout != time.Second {
		t.Errorf("got %+v, error %v, want timeouts of 1 s", opts, err)
	}
	set := Options{Addrs: []string{"h:1"}, Timeout: time.Minute, DialTimeout: time.Hour, SentinelMaster: "m", SentinelPassword: "p"}
	kept, err := set.withDefaults()
	if err != nil || kept.Timeout != time.Minute || kept.DialTimeout != time.Hour {
		t.Errorf("got %+v, error %v, want timeouts kept", kept, err)
	}
	for _, o := range []Options{opts, kept} {
		if client := o.client(); !client.DisableRetry || !client.DisableCache {
			t.Errorf("%+v: rueidis may retry or cache", o)
		}
	}
	if s := kept.client().Sentinel; s.MasterSet != "m" || s.Password != "p" {
		t.Errorf("got %+v, want the sentinel's name and password", s)
	}
}
