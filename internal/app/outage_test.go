package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// backWithin is what is promised: exact again at most this long after Redis answers.
const backWithin = 2 * time.Second

func TestNode_StartsWithoutRedisAndIsExactOnceItComes(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	redis.Kill()
	node := testnode.Start(t, testnode.Options{Config: onRedis(redis.Addr()), Rules: usersRule})
	if !node.Ready(t.Context()) {
		t.Error("a node without Redis is not ready")
	}
	d, a := check(t, node, "ann")
	if !d.Allowed || d.Mode != "local" || a.header.Get("Sluice-Mode") != "local" {
		t.Errorf("without Redis: got %+v with Sluice-Mode %q, want allowed and labelled local", d, a.header.Get("Sluice-Mode"))
	}
	redis.Restart()
	eventually(t, backWithin, "exact again", func() error {
		d, a := check(t, node, "bob")
		if d.Mode != "exact" || a.header.Get("Sluice-Mode") != "" {
			return fmt.Errorf("%+v with Sluice-Mode %q", d, a.header.Get("Sluice-Mode"))
		}
		return nil
	})
	if got := admitted(t, node, "carol", 5); got != 3 {
		t.Errorf("%d of 5 requests pass, want 3", got)
	}
}

func TestNode_LosingRedisDegradesAndDoesNotMakeItUnready(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	node := testnode.Start(t, testnode.Options{Config: onRedis(redis.Addr()), Rules: usersRule})
	check(t, node, "ann")
	if s := statusOf(t, node); s.Store.Kind != "redis" || !s.Store.DegradedSince.IsZero() || !s.Ready {
		t.Errorf("with Redis: got %+v, ready %t", s.Store, s.Ready)
	}
	before := time.Now().Add(-time.Second) // the node's clock is read in another process
	redis.Kill()
	eventually(t, patience, "degraded", func() error {
		check(t, node, "ann")
		if statusOf(t, node).Store.DegradedSince.IsZero() {
			return fmt.Errorf("no since in the status")
		}
		return nil
	})
	s := statusOf(t, node)
	if since := s.Store.DegradedSince; since.Before(before) || since.After(time.Now().Add(time.Second)) || s.Store.LastError == "" {
		t.Errorf("got degraded since %s (%q), want after %s, with an error", since, s.Store.LastError, before)
	}
	a := mustRequest(t, http.MethodGet, "http://"+node.Admin+"/readyz?verbose", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, "[~] store: degraded") {
		t.Errorf("/readyz?verbose: got %d %s, want 200 and a degraded store", a.status, a.body)
	}
	if got := metric(t, node, "sluice_degraded"); got != "1" {
		t.Errorf("sluice_degraded is %q, want 1", got)
	}
	eventually(t, patience, "told in the log", func() error {
		if !strings.Contains(node.Log(), "the counter store does not answer") {
			return fmt.Errorf("log:\n%s", node.Log())
		}
		return nil
	})
}

func TestNodes_CountThemselves(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	opts := testnode.Options{Config: onRedis(redis.Addr()), Rules: usersRule}
	first, second := testnode.Start(t, opts), testnode.Start(t, opts)
	count := func(want int) func() error {
		return func() error {
			if got := statusOf(t, first).Nodes; got != want {
				return fmt.Errorf("%d nodes, want %d", got, want)
			}
			return nil
		}
	}
	eventually(t, patience, "two nodes", count(2))
	if _, err := second.Stop(patience); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Second, "one node, as soon as the other has left", count(1))
}

func TestNode_SwitchedOffPassesEverythingAndSaysSo(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: "enabled = false\n" + inMemory, Rules: usersRule})
	for range 5 {
		if d, _ := check(t, node, "ann"); !d.Allowed || d.Cause != "disabled" {
			t.Errorf("got %+v, want allowed, disabled", d)
		}
	}
	if statusOf(t, node).Enabled {
		t.Error("the status says that limits are on")
	}
}
