package testredis

import (
	"fmt"
	"testing"
	"time"
)

func TestSentinel_KnowsTheMasterAndIsGoneAfterTheTest(t *testing.T) {
	t.Parallel()
	var pids []int
	t.Run("use", func(t *testing.T) {
		set := Sentinel(t, Options{MovableClock: true})
		for _, s := range append(set.Sentinels(), set.Master(), set.Replica()) {
			pids = append(pids, s.PID())
		}
		for _, s := range set.Sentinels() {
			want := []any{"127.0.0.1", fmt.Sprint(set.Master().Port())}
			wantReply(t, s, want, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", set.MasterName)
		}
		if got := len(set.Addrs()); got != 3 {
			t.Errorf("%d sentinels, want 3", got)
		}
		set.Clock().Freeze(epoch)
		for _, s := range []*Server{set.Master(), set.Replica()} {
			wantReply(t, s, timeReply(epoch), "TIME")
		}
		wantReply(t, set.Master(), "OK", "SET", "k", "v")
		waitFor(t, func() error {
			if v, err := set.Replica().Do("GET", "k"); v != "v" {
				return fmt.Errorf("the replica has k = %v (%v)", v, err)
			}
			return nil
		})
	})
	if len(pids) != 5 {
		t.Fatalf("%d processes, want 5", len(pids))
	}
	for _, pid := range pids {
		if err := gone(pid); err != nil {
			t.Error(err)
		}
	}
}

func TestSentinel_PromotesTheReplicaOfASilentMaster(t *testing.T) {
	t.Parallel()
	set := Sentinel(t, Options{DownAfter: 500 * time.Millisecond})
	master, replica := set.Master(), set.Replica()
	master.Pause()
	waitFor(t, func() error {
		if set.Master() != replica || set.Replica() != master {
			return fmt.Errorf("the sentinels still hold %s for the master", master.Addr())
		}
		_, err := replica.Do("SET", "k", "v")
		return err
	})
}
