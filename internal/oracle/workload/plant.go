package workload

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/redisstore"
)

// Plant is a fault put between the store and Redis, which the oracle must find. An oracle that finds none of them
// proves nothing about a store in which it finds none.
type Plant struct {
	// Name says what is broken.
	Name string
	// Sign is the kind of finding that must come of it.
	Sign oracle.Kind
	// Cluster: the fault shows only there, or best.
	Cluster bool
	// Rare: the fault shows once in a thousand decisions, so a short run may miss it.
	Rare bool

	script   string // which script is broken
	old, new string // by replacing every old in its text
	race     bool   // instead: reading and writing are two calls
}

// Plants returns every fault there is.
func Plants() []*Plant {
	return []*Plant{
		{Name: "fixed window compares without the cost", script: "take", old: "s=y-n-x\n", new: "s=y-n\n"},
		{Name: "sliding window compares without the cost", script: "take", old: "room=(y-cur-x)*z", new: "room=(y-cur)*z"},
		{Name: "sliding log compares without the cost", script: "take", old: "s=room-x\n", new: "s=room\n"},
		{Name: "token bucket compares without the cost", script: "take", old: "s=y-x-d\n", new: "s=y-d\n"},
		{
			Name: "a lone fixed window compares without the cost", Cluster: true,
			script: "one_fixed_window", old: "s=y-n-x\n", new: "s=y-n\n",
		},
		{Name: "fixed window admits one more than the limit", Rare: true, script: "take", old: "s=y-n-x\n", new: "s=y-n-x+1\n"},
		{Name: "reading and writing are two calls", race: true},
		{
			Name: "one limit's refusal does not refuse its group", Sign: oracle.ChargedThoughRefused,
			script: "take", old: "if s<0 and j<=hard then passed=false end\n", new: "\n",
		},
		{
			Name: "a token bucket gets back the whole cost", Sign: oracle.WrongGiveback, Cluster: true,
			script: "give", old: "back=math.min(x-(us-us0)*ticks,d)", new: "back=math.min(x,d)",
		},
		{
			Name: "nothing is given back", Sign: oracle.WrongGiveback, Cluster: true,
			script: "give", old: "for i=1,#KEYS do", new: "for i=1,#KEYS do reply[i]=0 end\nfor i=1,0 do",
		},
	}
}

// PlantNamed returns the fault of that name.
func PlantNamed(name string) (*Plant, error) {
	for _, p := range Plants() {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no fault is named %q", name)
}

// into puts the fault in front of a connection. It fails when the scripts no longer have the line that it breaks.
func (p *Plant) into(conn redisstore.Conn) (redisstore.Conn, error) {
	if p.race {
		return newRacyConn(conn)
	}
	for _, s := range redisstore.Scripts() {
		if s.Name == p.script && strings.Contains(s.Text, p.old) {
			return &brokenConn{Conn: conn, plant: p}, nil
		}
	}
	return nil, fmt.Errorf("plant %q: script %s has no %q", p.Name, p.script, p.old)
}

// brokenConn runs a broken text instead of one script.
type brokenConn struct {
	redisstore.Conn
	plant *Plant
	texts sync.Map // by the SHA of the right one: *redisstore.Script
}

// Run implements redisstore.Conn. The calls passed on are copies: the store reads replies by its own script.
func (c *brokenConn) Run(ctx context.Context, calls []*redisstore.Call) {
	copies := make([]*redisstore.Call, len(calls))
	for i, call := range calls {
		broken := *call
		if call.Script.Name == c.plant.script {
			broken.Script = c.breakScript(call.Script)
		}
		copies[i] = &broken
	}
	c.Conn.Run(ctx, copies)
	for i, call := range calls {
		call.Out, call.Err = copies[i].Out, copies[i].Err
	}
}

func (c *brokenConn) breakScript(s *redisstore.Script) *redisstore.Script {
	if known, ok := c.texts.Load(s.SHA); ok {
		return known.(*redisstore.Script)
	}
	broken := redisstore.NewScript(s.Name, strings.ReplaceAll(s.Text, c.plant.old, c.plant.new))
	c.texts.Store(s.SHA, broken)
	return broken
}

// racyConn does what a store without scripts would: it reads, decides by itself, and then writes. Between the two
// others do the same.
type racyConn struct {
	redisstore.Conn
	peek *redisstore.Script
}

func newRacyConn(conn redisstore.Conn) (*racyConn, error) {
	for _, s := range redisstore.Scripts() {
		if s.Name == "peek" {
			return &racyConn{conn, s}, nil
		}
	}
	return nil, fmt.Errorf("redisstore has no script named peek")
}

// Run implements redisstore.Conn.
func (c *racyConn) Run(ctx context.Context, calls []*redisstore.Call) {
	for _, call := range calls {
		if call.Script.Name != "take" {
			c.Conn.Run(ctx, []*redisstore.Call{call})
			continue
		}
		c.take(ctx, call)
	}
}

// noLimit lets every write pass. By algorithm, because each has its own largest number.
var noLimit = map[string]string{"f": "33554431", "s": "33554431", "l": "1000000000", "b": "4503599627370496", "B": "4503599627370496"}

func (c *racyConn) take(ctx context.Context, call *redisstore.Call) {
	// Of the groups, which are two sizes and one character per charge, peek wants only those characters.
	sets := ""
	var sizes []int
	for spec := call.Args[0]; spec != ""; {
		n := int(spec[0] - '0')
		sets += spec[2 : 2+n]
		sizes = append(sizes, n)
		spec = spec[2+n:]
	}
	read := redisstore.Call{Script: c.peek, Keys: call.Keys, Args: append([]string{sets}, call.Args[1:]...)}
	c.Conn.Run(ctx, []*redisstore.Call{&read})
	call.Out, call.Err = append(call.Out, read.Out...), read.Err
	if read.Err != nil {
		return
	}
	write := redisstore.Call{Script: call.Script, Args: []string{""}}
	first := 0
	for _, n := range sizes {
		if passes(read.Out[1+first : 1+first+n]) {
			write.Args[0] += string([]byte{byte('0' + n), '0'})
			for i := first; i < first+n; i++ {
				args := call.Args[1+5*int(sets[i]-'0'):]
				write.Args[0] += string(rune('0' + len(write.Keys))) // a set for each
				write.Keys = append(write.Keys, call.Keys[i])
				write.Args = append(write.Args, args[0], args[1], noLimit[args[0]], args[3], args[4])
				cost, _ := strconv.ParseInt(args[1], 10, 64)
				call.Out[1+i] -= cost * weight(args[0])
			}
		}
		first += n
	}
	if len(write.Keys) > 0 {
		c.Conn.Run(ctx, []*redisstore.Call{&write})
		if call.Err = write.Err; call.Err == nil {
			call.Out[0] = write.Out[0]
		}
	}
}

func passes(replies []int64) bool {
	for _, r := range replies {
		if r < 0 {
			return false
		}
	}
	return true
}

// weight is what a unit weighs in a reply: windows have a time below it.
func weight(kind string) int64 {
	if kind == "f" || kind == "s" {
		return 1 << 28
	}
	return 1
}
