package witness

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/redisstore"
)

// Conn passes calls on and writes down the give-backs among them.
//
// The scripts for a single limit and for give-backs read the time but do not tell it; without it, what they did could
// only be placed somewhere between call and return, among all that others did meanwhile. So they are run with their
// last line changed: it replies the time as well. Nothing else about them changes.
type Conn struct {
	redisstore.Conn
	log   *oracle.Writer
	index map[string]int32
	timed map[string]*redisstore.Script // by name
}

const (
	giveName  = "give"
	onePrefix = "one_"
)

// NewConn returns a connection that logs give-backs to the counters, which are those the log was started with.
func NewConn(conn redisstore.Conn, log *oracle.Writer, counters []oracle.Counter) (*Conn, error) {
	c := &Conn{Conn: conn, log: log, index: map[string]int32{}, timed: map[string]*redisstore.Script{}}
	for i := range counters {
		c.index[counters[i].Key] = int32(i)
	}
	for _, s := range redisstore.Scripts() {
		var err error
		switch {
		case s.Name == giveName:
			c.timed[s.Name], err = changed(s, "\nreturn reply\n", "\nreply[#KEYS+1]=us\nreturn reply\n")
		case strings.HasPrefix(s.Name, onePrefix):
			c.timed[s.Name], err = changed(s, "\nreturn s\n", "\nreturn {s,us}\n")
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// changed replaces the one place of a script where old stands.
func changed(s *redisstore.Script, old, replacement string) (*redisstore.Script, error) {
	if strings.Count(s.Text, old) != 1 {
		return nil, fmt.Errorf("script %s has not exactly one %q to have it tell its time", s.Name, old)
	}
	return redisstore.NewScript(s.Name, strings.Replace(s.Text, old, replacement, 1)), nil
}

// Run implements redisstore.Conn. The store never mixes scripts in one run.
func (c *Conn) Run(ctx context.Context, calls []*redisstore.Call) {
	script := c.timed[calls[0].Script.Name]
	if script == nil {
		c.Conn.Run(ctx, calls)
		return
	}
	timed := make([]*redisstore.Call, len(calls))
	for i, call := range calls {
		timed[i] = &redisstore.Call{Script: script, Keys: call.Keys, Args: call.Args}
	}
	called := time.Now().UnixMicro()
	c.Conn.Run(ctx, timed)
	returned := time.Now().UnixMicro()
	for i, call := range calls {
		us, err := split(timed[i])
		call.Out, call.Err = append(call.Out, timed[i].Out...), err
		if script.Name == giveName {
			c.record(timed[i], err != nil, us, called, returned)
		} else if clock := clockOf(ctx); clock != nil {
			clock.us = us
		}
	}
}

// split takes the time off the end of a reply.
func split(call *redisstore.Call) (us int64, err error) {
	n := len(call.Keys)
	switch {
	case call.Err != nil:
		return 0, call.Err
	case len(call.Out) != n+1:
		return 0, errors.New("script " + call.Script.Name + " did not tell its time")
	}
	us, call.Out = call.Out[n], call.Out[:n]
	return us, nil
}

// record writes one line for each key given back to. The arguments are five per key: algorithm, cost, window, time of
// the take, id.
func (c *Conn) record(call *redisstore.Call, lost bool, us, called, returned int64) {
	for i, key := range call.Keys {
		g := oracle.Giveback{Counter: c.index[key], Lost: lost, Time: us, Called: called, Returned: returned}
		g.Cost, _ = strconv.ParseInt(call.Args[5*i+1], 10, 64)
		g.Taken, _ = strconv.ParseInt(call.Args[5*i+3], 10, 64)
		if !lost {
			g.Back = call.Out[i]
		}
		c.log.Giveback(g)
	}
}
