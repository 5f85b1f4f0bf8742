package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// A Cluster that has lost a third of its slots for good goes on with the rest.
func TestTake_DeadShardFailsOnlyItsOwnCharges(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{NoReplicas: true, Config: []string{"--cluster-require-full-coverage", "no"}})
	calls := &recorder{Conn: rueidisConn(t, rueidisconn.Options{Addrs: cluster.Addrs(), Cluster: true})}
	store := redisstore.New(calls, redisstore.Options{})
	users := usersByNode(t, cluster, calls, store)
	dead := cluster.NodeBySlot(0)
	var alive *testredis.Server
	for node := range users {
		if node != dead {
			alive = node
		}
	}
	dead.Kill()

	onDead, onAlive := func(i int) sluice.Charge { return hourly(users[dead][i], 10, 1) }, func(i int) sluice.Charge { return hourly(users[alive][i], 10, 1) }
	take := func(groups ...[]sluice.Charge) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		store.Take(ctx, groups)
	}

	t.Run("OtherGroupsOfTheCall", func(t *testing.T) {
		for i := range 12 { // past the opening of the shard's breaker
			groups := [][]sluice.Charge{{onDead(0)}, {onAlive(0)}}
			take(groups...)
			if err := groups[0][0].State.Err; !errors.Is(err, sluice.ErrUnavailable) {
				t.Fatalf("take %d on the dead shard: got %+v, want ErrUnavailable", i, groups[0][0].State)
			}
			if s := groups[1][0].State; s.Err != nil || s.Allowed != (i < 10) {
				t.Fatalf("take %d on the living shard: got %+v, want allowed=%v", i, s, i < 10)
			}
		}
	})
	t.Run("GroupOverBothStaysTakenAndCanBeGivenBack", func(t *testing.T) {
		group := []sluice.Charge{onDead(1), onAlive(1)}
		take(group)
		if !errors.Is(group[0].State.Err, sluice.ErrUnavailable) {
			t.Fatalf("got %+v on the dead shard, want ErrUnavailable", group[0].State)
		}
		if s := group[1].State; s.Err != nil || !s.Allowed || s.Receipt == (sluice.Receipt{}) {
			t.Fatalf("got %+v on the living shard, want allowed with a receipt", s)
		}
		if got := used(t, store, onAlive(1)); got != 1 {
			t.Errorf("got %d used, want 1: none refused, so the caller decides", got)
		}
		store.Give(t.Context(), group[1:])
		if got := used(t, store, onAlive(1)); got != 0 {
			t.Errorf("got %d used after the give-back, want 0", got)
		}
	})
	t.Run("RefusedGroupOverBothChargesNothing", func(t *testing.T) {
		full := hourly(users[alive][2], 10, 10)
		take([]sluice.Charge{full})
		full.Cost = 1
		third := hourly(otherThan(users, dead, alive), 10, 1)
		group := []sluice.Charge{onDead(2), full, third}
		take(group)
		if s := group[1].State; s.Err != nil || s.Allowed {
			t.Fatalf("got %+v, want refused", s)
		}
		if got := used(t, store, third); got != 0 {
			t.Errorf("got %d used on the third shard, want 0: the group was refused", got)
		}
	})
}

// usersByNode finds a few users whose counters lie on each master.
func usersByNode(t *testing.T, cluster *testredis.ClusterSet, calls *recorder, store *redisstore.Store) map[*testredis.Server][]string {
	t.Helper()
	users := map[*testredis.Server][]string{}
	for i := range 60 {
		user := fmt.Sprintf("user-%d", i)
		calls.forget()
		used(t, store, hourly(user, 10, 1))
		node := cluster.NodeBySlot(int(redisstore.Slot(calls.calls[0].Keys[0])))
		users[node] = append(users[node], user)
	}
	for node, list := range users {
		if len(list) < 4 {
			t.Fatalf("only %v of 60 users on %s", list, node.Addr())
		}
	}
	return users
}

// otherThan returns a user of the remaining node.
func otherThan(users map[*testredis.Server][]string, nodes ...*testredis.Server) string {
	for node, list := range users {
		if node != nodes[0] && node != nodes[1] {
			return list[3]
		}
	}
	return ""
}
