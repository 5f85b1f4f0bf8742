package redisstore_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// TestCheckAll_TakesManyRequestsInTheirOrder has more requests than one script call carries.
func TestCheckAll_TakesManyRequestsInTheirOrder(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	store := redisstore.New(rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}}), redisstore.Options{})
	l := sluice.New(store, sluice.PerKey(sluice.Limit{Algorithm: sluice.FixedWindow, Limit: 40, Window: 366 * 24 * time.Hour}), sluice.Options{Timeout: 5 * time.Second})
	reqs := make([]sluice.Request, 100)
	for i := range reqs {
		reqs[i].Subject.User = "ann"
	}
	decisions := make([]sluice.Decision, len(reqs))
	if err := l.CheckAll(t.Context(), reqs, decisions); err != nil {
		t.Fatal(err)
	}
	for i, d := range decisions {
		if d.Mode != sluice.Exact || d.Allowed != (i < 40) || d.Results()[0].Remaining != max(39-int64(i), 0) {
			t.Fatalf("request %d: got %s, want allowed %t with %d left", i, d.Reason(), i < 40, max(39-i, 0))
		}
	}
}
