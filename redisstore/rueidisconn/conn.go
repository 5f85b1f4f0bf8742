// Package rueidisconn connects redisstore to Redis by the rueidis client: a single server, Sentinel or Cluster, with TLS
// and ACL credentials. rueidis pipelines concurrent calls by itself, which makes it the fastest choice.
//
// A deadline bounds every call, and a breaker for each shard stops asking one that does not answer, so that a paused
// Redis costs a few calls their deadline and nobody anything after that. Nothing is retried but redirections and
// scripts the server does not know, both of which prove that nothing was written.
package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/redisstore"
)

// Conn implements redisstore.Conn. It is safe for concurrent use.
type Conn struct {
	opts   Options
	client atomic.Pointer[rueidis.Client] // nil until first connected
	shards atomic.Pointer[shardMap]

	pipelines sync.Pool // of *pipeline

	stop context.CancelFunc
	life context.Context //nolint:containedctx // ends with Close; only for work that outlives the call that started it
	wait sync.WaitGroup

	mu      sync.Mutex    // also held where wait is added to
	dialing chan struct{} // closed when the attempt under way ends; nil: none
	dialErr error         // of the last attempt
	retryAt time.Time
}

// ErrBreakerOpen is the cause of calls refused because their shard did not answer before.
var ErrBreakerOpen = errors.New("shard does not answer, not asked again until a probe succeeds")

// New returns a connection. It does not dial: the first call does, so a program starts while Redis is down.
func New(opts Options) (*Conn, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Conn{opts: opts}
	c.life, c.stop = context.WithCancel(context.Background())
	c.shards.Store(c.newShardMap(nil))
	return c, nil
}

// Close ends the connection and waits for its probes.
func (c *Conn) Close() {
	c.mu.Lock() // so that whoever starts something either is waited for or sees that it is too late
	c.stop()
	c.mu.Unlock()
	c.wait.Wait()
	if client := c.client.Swap(nil); client != nil {
		(*client).Close()
	}
}

// Sharded implements redisstore.Conn.
func (c *Conn) Sharded() bool { return c.opts.Cluster }

// Run implements redisstore.Conn.
func (c *Conn) Run(ctx context.Context, calls []*redisstore.Call) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.Timeout)
		defer cancel()
	}
	client, err := c.connected(ctx)
	if err != nil {
		for _, call := range calls {
			call.Err = err
		}
		return
	}
	if len(calls) == 1 {
		c.runOne(ctx, client, calls[0])
		return
	}
	c.runAll(ctx, client, calls)
}

func (c *Conn) runOne(ctx context.Context, client rueidis.Client, call *redisstore.Call) {
	b := c.shards.Load().breakerOf(call.Keys[0])
	if !b.closed() {
		call.Err = ErrBreakerOpen
		return
	}
	read(client.Do(ctx, evalSHA(client, call)), call)
	b.record(c.finish(ctx, client, call))
}

// pipeline is what runAll sends.
type pipeline struct {
	commands []rueidis.Completed
	sent     []sentCall // the call of each command
}

type sentCall struct {
	*redisstore.Call
	breaker *breaker
}

func (c *Conn) runAll(ctx context.Context, client rueidis.Client, calls []*redisstore.Call) {
	shards := c.shards.Load()
	p, _ := c.pipelines.Get().(*pipeline)
	if p == nil {
		p = new(pipeline)
	}
	for _, call := range calls {
		b := shards.breakerOf(call.Keys[0])
		if !b.closed() {
			call.Err = ErrBreakerOpen
			continue
		}
		p.commands = append(p.commands, evalSHA(client, call))
		p.sent = append(p.sent, sentCall{call, b})
	}
	if len(p.sent) == 0 {
		return
	}
	for i, reply := range client.DoMulti(ctx, p.commands...) {
		read(reply, p.sent[i].Call)
	}
	failed := false
	for _, s := range p.sent {
		s.breaker.record(c.finish(ctx, client, s.Call))
		failed = failed || s.Err != nil
	}
	if !failed { // else the client may still hold the commands
		clear(p.commands)
		clear(p.sent)
		p.commands, p.sent = p.commands[:0], p.sent[:0]
		c.pipelines.Put(p)
	}
}

func evalSHA(client rueidis.Client, call *redisstore.Call) rueidis.Completed {
	return client.B().Evalsha().Sha1(call.Script.SHA).Numkeys(int64(len(call.Keys))).Key(call.Keys...).Arg(call.Args...).Build()
}

// finish sends the script's text where the server did not know it, and returns what the breaker should know.
func (c *Conn) finish(ctx context.Context, client rueidis.Client, call *redisstore.Call) error {
	if call.Err == nil {
		return nil
	}
	var reply *rueidis.RedisError
	if errors.As(call.Err, &reply) && reply.IsNoScript() {
		call.Out, call.Err = call.Out[:0], nil
		eval := client.B().Eval().Script(call.Script.Text).Numkeys(int64(len(call.Keys))).Key(call.Keys...).Arg(call.Args...).Build()
		read(client.Do(ctx, eval), call)
	}
	if call.Err == nil {
		return nil
	}
	if errors.Is(call.Err, context.Canceled) {
		return errNoVerdict
	}
	if errors.As(call.Err, &reply) && !unfit(reply) {
		return errNoVerdict // a fault of this call, not of the shard
	}
	return call.Err
}

// unfit tells that a server answers but cannot serve.
func unfit(reply *rueidis.RedisError) bool {
	code, _, _ := strings.Cut(reply.Error(), " ")
	switch code {
	case "LOADING", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "MASTERDOWN", "OOM", "BUSY", "MISCONF", "NOREPLICAS":
		return true
	}
	return false
}

// read appends a reply's integers to the call.
func read(reply rueidis.RedisResult, call *redisstore.Call) {
	message, err := reply.ToMessage()
	if err != nil {
		call.Err = err
		return
	}
	// Asking AsInt64 of an array would allocate an error.
	if message.IsInt64() {
		n, err := message.AsInt64()
		call.Out, call.Err = append(call.Out, n), err
		return
	}
	values, err := message.ToArray()
	if err != nil {
		call.Err = err
		return
	}
	for i := range values {
		n, err := values[i].AsInt64()
		if err != nil {
			call.Err = fmt.Errorf("script %s: reply %d: %w", call.Script.Name, i, err)
			return
		}
		call.Out = append(call.Out, n)
	}
}

// connected returns the client, dialling where there is none yet. One attempt runs at a time, at most every 50–150 ms.
func (c *Conn) connected(ctx context.Context) (rueidis.Client, error) {
	if client := c.client.Load(); client != nil {
		return *client, nil
	}
	c.mu.Lock()
	if c.dialing == nil {
		if c.life.Err() != nil {
			c.mu.Unlock()
			return nil, errors.New("connection is closed")
		}
		if time.Now().Before(c.retryAt) {
			defer c.mu.Unlock()
			return nil, c.dialErr
		}
		c.dialing = make(chan struct{})
		c.wait.Go(c.dial)
	}
	done := c.dialing
	c.mu.Unlock()

	select {
	case <-done:
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to %v: %w", c.opts.Addrs, context.Cause(ctx))
	}
	if client := c.client.Load(); client != nil {
		return *client, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return nil, c.dialErr
}

func (c *Conn) dial() {
	client, err := rueidis.NewClient(c.opts.client())
	if err != nil {
		err = fmt.Errorf("connect to %v: %w", c.opts.Addrs, err)
	} else {
		c.refreshShards(c.life, client)
		c.client.Store(&client)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialErr, c.retryAt = err, time.Now().Add(jitter(100*time.Millisecond))
	close(c.dialing)
	c.dialing = nil
}

// jitter spreads a duration over half to one and a half of itself, so that nodes do not act together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) } //nolint:gosec // nothing secret
