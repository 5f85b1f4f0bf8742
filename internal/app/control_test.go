package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

var everywhere = registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}

// operator is the database as an administrator sees it.
func operator(t *testing.T, url string) *postgres.Scoped {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db.As(everywhere)
}

// usersOf is a rule that lets each user pass so many times within the test.
func usersOf(limit int64) ruledoc.Rule {
	return ruledoc.Rule{Name: "users", Key: []string{"user"}, Limits: []ruledoc.Limit{
		{Algorithm: "fixed_window", Limit: limit, Window: ruledoc.Duration(365 * 24 * time.Hour)},
	}}
}

func put(t *testing.T, db *postgres.Scoped, r ruledoc.Rule) {
	t.Helper()
	if _, err := db.PutRule(t.Context(), "default", r, registry.Edit{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
}

// notReady is nil when a node is.
func notReady(t *testing.T, n *testnode.Node) error {
	t.Helper()
	if !n.Ready(t.Context()) {
		return errors.New("not ready")
	}
	return nil
}

func TestDatabase_ItsRulesActOnEveryNodeWhileTheyRun(t *testing.T) {
	t.Parallel()
	redis, pg := testredis.Single(t, testredis.Options{}), testpg.New(t)
	db := operator(t, pg.URL())
	put(t, db, usersOf(2))
	var nodes []*testnode.Node
	for i := range 2 {
		nodes = append(nodes, testnode.Start(t, testnode.Options{
			Config: onRedis(redis.Addr()), Rules: usersRule + "namespace = \"files\"\n", Database: pg.URL(), Name: fmt.Sprint("n", i),
		}))
	}
	for i, n := range nodes {
		if got := admitted(t, n, fmt.Sprint("first-", i), 4); got != 2 {
			t.Errorf("node %d admits %d, want the database's 2", i, got)
		}
	}
	put(t, db, usersOf(5))
	for i, n := range nodes {
		eventually(t, patience, "the change acts", func() error {
			if got := admitted(t, n, fmt.Sprint("later-", i, time.Now().UnixNano()), 6); got != 5 {
				return fmt.Errorf("%d admitted, want 5", got)
			}
			return nil
		})
	}
	if _, err := db.PutTier(t.Context(), registry.Tier{Name: "free", Default: true, Groups: []registry.RouteGroup{{Name: "all", Limits: usersOf(1).Limits}}}, registry.Edit{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the tier's limit acts on everyone on none", func() error {
		if got := admitted(t, nodes[0], fmt.Sprint("tier-", time.Now().UnixNano()), 3); got != 1 {
			return fmt.Errorf("%d admitted, want 1", got)
		}
		return nil
	})
}

func TestDatabase_ANodeStartsFromItsSnapshotWithoutIt(t *testing.T) {
	t.Parallel()
	pg := testpg.Start(t, testpg.Options{})
	url := pg.Database(t).URL()
	put(t, operator(t, url), usersOf(2))
	opts := testnode.Options{Config: inMemory, Database: url, Snapshot: true}
	n := testnode.Start(t, opts)
	if _, err := n.Stop(patience); err != nil {
		t.Fatal(err)
	}
	pg.Kill()
	opts.Dir = n.Dir
	n = testnode.Start(t, opts)
	if got := admitted(t, n, "u", 4); got != 2 {
		t.Errorf("%d admitted, want 2 by the snapshot", got)
	}
	if err := notReady(t, n); err != nil {
		t.Error(err)
	}
	if log := n.Log(); !strings.Contains(log, "starting with the last rules known") {
		t.Errorf("the log does not say that the rules are old:\n%s", log)
	}
}

func TestDatabase_WithoutAnyRulesANodeLivesAndTurnsEverythingAway(t *testing.T) {
	t.Parallel()
	pg := testpg.Start(t, testpg.Options{})
	url := pg.Database(t).URL()
	put(t, operator(t, url), usersOf(2))
	pg.Kill()
	n := testnode.Start(t, testnode.Options{Config: inMemory, Database: url})
	if n.Ready(t.Context()) {
		t.Error("ready without rules")
	}
	if a := mustRequest(t, http.MethodGet, "http://"+n.Admin+"/livez", ""); a.status != http.StatusOK {
		t.Errorf("not alive: %d", a.status)
	}
	if a := mustRequest(t, http.MethodPost, "http://"+n.HTTP+"/v1/check", `{"subject":{"user":"u"},"route":"/"}`); a.status != http.StatusServiceUnavailable {
		t.Errorf("check answers %d %s, want 503", a.status, a.body)
	}
	pg.Restart()
	eventually(t, patience, "ready once the database is back", func() error { return notReady(t, n) })
	if got := admitted(t, n, "u", 4); got != 2 {
		t.Errorf("%d admitted, want 2", got)
	}
}

func TestDatabase_ARowOfDirectSQLIsLeftOutAloneAndItsLastGoodFormGoesOn(t *testing.T) {
	t.Parallel()
	pg := testpg.New(t)
	db := operator(t, pg.URL())
	put(t, db, usersOf(2))
	n := testnode.Start(t, testnode.Options{Config: inMemory, Database: pg.URL()})
	pg.Exec(t, testpg.Superuser, `UPDATE sluice.rules SET body = '{"limits": "none"}' WHERE name = 'users'`)
	other := usersOf(1)
	other.Name, other.Match.Routes = "other", []string{"/other"}
	put(t, db, other)
	eventually(t, patience, "the fault is told", func() error {
		text, err := json.Marshal(statusOf(t, n).Rules)
		if err == nil && !strings.Contains(string(text), "users") {
			return fmt.Errorf("status %s", text)
		}
		return err
	})
	if got := admitted(t, n, "u", 4); got != 2 {
		t.Errorf("%d admitted, want 2 by the last good form", got)
	}
}
