package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

const (
	aclUser     = "sluice"
	aclPassword = "correct horse"
)

// minimalACL are the commands that a store needs, on keys rl1:* and no channels. TestACL_EveryCommandIsNeeded shows that
// none can go but ping.
//
//   - evalsha, eval: scripts by their name, and by their text where the server does not know them;
//   - what scripts/*.lua call: time get set incrby decrby del pexpire zadd zrem zcard zrange zremrangebyscore. The
//     breaker's probe is a del, too;
//   - ping: rueidis sends it on idle connections. A refusal is answer enough, but would fill the server's ACL log.
//
// HELLO and AUTH are free to everybody.
func minimalACL() []string {
	return []string{
		"evalsha", "eval", "ping",
		"time", "get", "set", "incrby", "decrby", "del", "pexpire",
		"zadd", "zrem", "zcard", "zrange", "zremrangebyscore",
	}
}

// clusterACL is needed besides in a Cluster: who has which slots, and following a slot that moves.
func clusterACL() []string { return []string{"cluster|slots", "asking"} }

// sentinelACL is needed besides on servers behind Sentinel: rueidis asks a master whether it is one.
func sentinelACL() []string { return []string{"role"} }

// setUser gives the server an ACL user who may run these commands only, on the store's keys only.
func setUser(t *testing.T, server *testredis.Server, commands ...string) {
	t.Helper()
	rules := []string{"ACL", "SETUSER", aclUser, "reset", "on", ">" + aclPassword, "~rl1:*", "-@all"}
	for _, c := range commands {
		rules = append(rules, "+"+c)
	}
	do(t, server, rules...)
}

// wantNothingRefused checks that the server has never refused the ACL user anything that matters.
func wantNothingRefused(t *testing.T, server *testredis.Server) {
	t.Helper()
	for _, entry := range do(t, server, "ACL", "LOG").([]any) {
		// Since Redis 7.2 rueidis tells its name and does without when it may not.
		if text := fmt.Sprint(entry); !strings.Contains(text, "client|setinfo") {
			t.Errorf("refused by ACL: %s", text)
		}
	}
}

// everyOperation runs each operation of a store on each algorithm, so that every command of every script is called.
func everyOperation(ctx context.Context, store sluice.Store, user string) error {
	var errs []error
	for name, limit := range map[string]sluice.Limit{
		"fixed window":   {Algorithm: sluice.FixedWindow, Limit: 3, Window: 24 * time.Hour},
		"sliding window": {Algorithm: sluice.SlidingWindow, Limit: 3, Window: 24 * time.Hour},
		"sliding log":    {Algorithm: sluice.SlidingLog, Limit: 3, Window: 24 * time.Hour},
		"token bucket":   {Algorithm: sluice.TokenBucket, Limit: 3, Window: time.Hour},
		"long bucket":    {Algorithm: sluice.TokenBucket, Limit: 3, Window: 300 * 24 * time.Hour},
	} {
		charge, second := daily(user, 0), daily(user, 0)
		charge.Limit, second.Limit = limit, limit
		charge.Key.Rule, second.Key.Rule = name, name+" of two"
		second.Receipted = true
		step := func(what string, groups ...[]sluice.Charge) {
			for _, g := range groups {
				for _, c := range g {
					if c.State.Err != nil {
						errs = append(errs, fmt.Errorf("%s, %s: %w", name, what, c.State.Err))
					}
				}
			}
		}
		for range 4 { // the last one refused
			alone, pair := []sluice.Charge{charge}, []sluice.Charge{charge, second}
			pair[0].Key.Rule += " of two, too"
			store.Take(ctx, [][]sluice.Charge{alone})
			step("take", alone)
			store.Take(ctx, [][]sluice.Charge{pair})
			step("take two", pair)
			store.Give(ctx, pair)
			step("give", pair)
		}
		peek := []sluice.Charge{charge}
		store.Peek(ctx, [][]sluice.Charge{peek})
		step("peek", peek)
		if peek[0].State.Err == nil && (peek[0].State.Remaining != 0 || peek[0].State.Allowed) {
			errs = append(errs, fmt.Errorf("%s: %+v after four takes of three units, want none left", name, peek[0].State))
		}
		store.Reset(ctx, peek)
		step("reset", peek)
	}
	return errors.Join(errs...)
}

// refusal is how Redis words it, to a client and to a script.
var refusal = regexp.MustCompile(`^NOPERM|no permissions|executing the script can't (access|run)`)

func TestACL_EveryOperationWorksAndNothingElse(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	setUser(t, server, minimalACL()...)
	conn := open(t, Options{Addrs: []string{server.Addr()}, Username: aclUser, Password: aclPassword})
	if err := everyOperation(t.Context(), redisstore.New(conn, redisstore.Options{}), "a"); err != nil {
		t.Errorf("with the minimal ACL: %v", err)
	}
	shard := conn.shards.Load().shards[0]
	if err := conn.probe(t.Context(), shard); err != nil {
		t.Errorf("probe with the minimal ACL: %v", err)
	}
	wantNothingRefused(t, server)

	client := *conn.client.Load()
	ours := redisstore.ProbeKey(nil)
	for _, command := range [][]string{
		{"FLUSHALL"},
		{"CONFIG", "GET", "*"},
		{"KEYS", "*"},
		{"SCRIPT", "FLUSH"},
		{"ACL", "LIST"},
		{"PUBLISH", "channel", "x"},
		{"GET", "foreign"},
		{"SET", "foreign", "1"},
		{"DEL", "foreign"},
		{"EVAL", "return 1", "1", "foreign"},
		{"EVAL", "return redis.call('GET','foreign')", "1", ours},
		{"EVAL", "return redis.call('FLUSHALL')", "1", ours},
	} {
		err := client.Do(t.Context(), client.B().Arbitrary(command...).Build()).Error()
		if err == nil || !refusal.MatchString(err.Error()) {
			t.Errorf("%q: got error %v, want refused by ACL", command, err)
		}
	}
}

func TestACL_EveryCommandIsNeeded(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	for i, without := range minimalACL() {
		if without == "ping" { // only sent after a second of silence
			continue
		}
		do(t, server, "SCRIPT", "FLUSH")
		setUser(t, server, slices.Delete(minimalACL(), i, i+1)...)
		conn := open(t, Options{Addrs: []string{server.Addr()}, Username: aclUser, Password: aclPassword})
		if err := everyOperation(t.Context(), redisstore.New(conn, redisstore.Options{}), without); err == nil {
			t.Errorf("every operation works without %s: it is not needed", without)
		}
	}
}
