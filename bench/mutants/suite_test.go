package main

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
	"github.com/sluicehq/sluice/storetest"
)

// TestStore holds a store to its promises with one script replaced by a mutant, as the bar's environment tells. By
// itself it replaces nothing and passes.
func TestStore(t *testing.T) {
	script := &redisstore.Script{}
	if name := os.Getenv(envName); name != "" {
		text, err := os.ReadFile(os.Getenv(envFile))
		if err != nil {
			t.Fatal(err)
		}
		script = redisstore.NewScript(name, string(text))
	}
	server := testredis.Single(t, testredis.Options{MovableClock: true})
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{server.Addr()}, Timeout: callTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	put := &substitute{Conn: conn, script: script}
	storetest.Run(t, func(*testing.T) storetest.Fixture {
		return storetest.Fixture{Store: redisstore.New(put, redisstore.Options{}), SetTime: func(at time.Time) { server.Clock().Freeze(at) }}
	})
	if script.Name != "" && put.runs.Load() == 0 {
		t.Errorf("script %s was never run", script.Name)
	}
}

// substitute is a connection that runs one script with another text.
type substitute struct {
	redisstore.Conn
	script *redisstore.Script // its name says in whose place
	runs   atomic.Int64
}

func (s *substitute) Run(ctx context.Context, calls []*redisstore.Call) {
	copies := make([]*redisstore.Call, len(calls))
	for i, c := range calls {
		copied := *c
		if c.Script.Name == s.script.Name {
			copied.Script = s.script
			s.runs.Add(1)
		}
		copies[i] = &copied
	}
	s.Conn.Run(ctx, copies)
	for i, c := range calls {
		c.Out, c.Err = copies[i].Out, copies[i].Err
	}
}
