// Command memory fills a real Redis with counters as Limiter.Check makes them and tells what one takes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

var users = flag.Int("users", 500_000, "users; each makes two counters")

func main() {
	b := bar.New("bar-memory")
	program := testredis.Program()
	defer program.Close()
	server := testredis.Single(program, testredis.Options{})
	conn, err := rueidisconn.Open("redis://" + server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()

	before, err := info(server, "memory", "used_memory")
	if err != nil {
		b.Fatal(err)
	}
	if err := fill(b, conn); err != nil {
		b.Fatal(err)
	}
	after, err := info(server, "memory", "used_memory")
	if err != nil {
		b.Fatal(err)
	}
	keys, expiring, err := keyspace(server)
	if err != nil {
		b.Fatal(err)
	}
	b.Exactly("keys", keys, int64(2**users))
	b.Exactly("keys without a TTL", keys-expiring, 0)
	b.AtMost("bytes per counter", float64(after-before)/float64(keys), 130, 130)
	b.End()
}

// fill lets every user make one request, which meets a rule by user and a rule by user and route.
func fill(b *bar.Bar, conn redisstore.Conn) error {
	rules, faults := sluice.Compile([]sluice.Rule{
		{Name: "user", Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{sluice.PerDay(10_000)}},
		{
			Name: "user-route", Key: []sluice.Dimension{sluice.User, sluice.Route}, Limits: []sluice.Limit{sluice.Bucket(1000, 24*time.Hour, 100)},
			Match: sluice.Match{Routes: []string{"/api/v1/search", "/api/v1/items/{id}"}},
		},
	})
	if len(faults) > 0 {
		return faults[0]
	}
	limiter := sluice.New(redisstore.New(conn, redisstore.Options{}), rules, sluice.Options{Timeout: 10 * time.Second})
	const callers = 64
	var wg sync.WaitGroup
	var done atomic.Int64
	var failure atomic.Pointer[error]
	for caller := range callers {
		wg.Go(func() {
			for i := caller; i < *users && failure.Load() == nil; i += callers {
				d, err := limiter.Check(context.Background(), sluice.Request{Subject: sluice.Subject{User: fmt.Sprintf("user-%d", i)}, Route: "/api/v1/search"})
				if err == nil && (!d.Allowed || d.Mode != sluice.Exact || len(d.Results()) != 2) {
					err = errors.New("got " + d.Reason() + ", want an exact admission by two limits")
				}
				if err != nil {
					failure.CompareAndSwap(nil, &err)
					return
				}
				if n := done.Add(1); n%100_000 == 0 {
					b.Say("%d of %d users", n, *users)
				}
			}
		})
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// info reads one number of a section of INFO.
func info(server *testredis.Server, section, field string) (int64, error) {
	reply, err := server.Do("INFO", section)
	if err != nil {
		return 0, err
	}
	text, _ := reply.(string)
	_, rest, found := strings.Cut(text, field+":")
	if !found {
		return 0, fmt.Errorf("INFO %s has no %s", section, field)
	}
	value, _, _ := strings.Cut(rest, "\r")
	return strconv.ParseInt(value, 10, 64)
}

// keyspace returns the number of keys and how many of them expire.
func keyspace(server *testredis.Server) (keys, expiring int64, err error) {
	reply, err := server.Do("INFO", "keyspace")
	if err != nil {
		return 0, 0, err
	}
	text, _ := reply.(string)
	_, rest, found := strings.Cut(text, "db0:")
	if !found {
		return 0, 0, errors.New("INFO keyspace has no db0")
	}
	if _, err := fmt.Sscanf(rest, "keys=%d,expires=%d", &keys, &expiring); err != nil {
		return 0, 0, err
	}
	return keys, expiring, nil
}
