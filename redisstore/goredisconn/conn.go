// Package goredisconn connects redisstore through a go-redis client the program already has. For the highest rates use
// rueidisconn, which pipelines concurrent calls and has a breaker.
package goredisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/redisstore"
)

// Conn implements redisstore.Conn. It is safe for concurrent use.
type Conn struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil: not a Cluster
}

// New wraps a client: *redis.Client, also for Sentinel, or *redis.ClusterClient.
//
// The client must not retry: by default a *redis.Client sends a command up to three more times when a reply is lost,
// which would count it up to four times. New returns an error unless it was made with MaxRetries: -1. A ClusterClient's
// MaxRedirects may stay: MOVED and ASK are followed, but of our commands none is sent again after a network error.
//
// Make the client with ContextTimeoutEnabled: true. Without it go-redis ends a call at its ReadTimeout, five seconds by
// default, instead of at the deadline of the call.
func New(client redis.UniversalClient) (*Conn, error) {
	var retries int
	c := &Conn{client: client}
	switch client := client.(type) {
	case *redis.Client:
		retries = client.Options().MaxRetries
	case *redis.ClusterClient:
		retries, c.cluster = client.Options().MaxRetries, client
	default:
		return nil, fmt.Errorf("client is a %T: want *redis.Client or *redis.ClusterClient", client)
	}
	if retries > 0 {
		return nil, fmt.Errorf("client retries commands %d times, so a lost reply would count twice: create it with MaxRetries: -1", retries)
	}
	return c, nil
}

// Sharded implements redisstore.Conn.
func (c *Conn) Sharded() bool { return c.cluster != nil }

// Run implements redisstore.Conn.
func (c *Conn) Run(ctx context.Context, calls []*redisstore.Call) {
	if len(calls) == 1 {
		cmd := command(ctx, "evalsha", calls[0].Script.SHA, calls[0])
		_ = c.client.Process(ctx, cmd) // finish reads the error
		c.finish(ctx, calls[0], cmd)
		return
	}
	commands := make([]once, len(calls))
	pipe := c.client.Pipeline()
	for i, call := range calls {
		commands[i] = command(ctx, "evalsha", call.Script.SHA, call)
		_ = pipe.Process(ctx, commands[i]) // only queues it
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, call := range calls {
		c.finish(ctx, call, commands[i])
	}
}

// finish reads a reply; a script the server does not know is sent as text, once.
func (c *Conn) finish(ctx context.Context, call *redisstore.Call, cmd once) {
	if err := cmd.Err(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		cmd = command(ctx, "eval", call.Script.Text, call)
		_ = c.client.Process(ctx, cmd) // read below
	}
	value, err := cmd.Result()
	if err != nil {
		call.Err = err
		c.suspect(ctx, err)
		return
	}
	switch value := value.(type) {
	case int64:
		call.Out = append(call.Out, value)
	case []any:
		for _, v := range value {
			n, ok := v.(int64)
			if !ok {
				call.Err = fmt.Errorf("script %s replied a %T, want integers", call.Script.Name, v)
				return
			}
			call.Out = append(call.Out, n)
		}
	default:
		call.Err = fmt.Errorf("script %s replied a %T, want an integer or a list", call.Script.Name, value)
	}
}

// suspect has the client look for new masters after an error that no server sent. By itself it does so once a minute,
// and for that long every call would go to a dead master. go-redis asks at most every 200 ms, in the background.
func (c *Conn) suspect(ctx context.Context, err error) {
	var reply redis.Error
	if c.cluster != nil && !errors.As(err, &reply) {
		c.cluster.ReloadState(ctx)
	}
}

// once is a command that go-redis does not send again when a reply is lost. No option does that for a ClusterClient:
// MaxRedirects counts redirections, which prove that nothing was written, and resendings after network errors alike.
// TestRun_LostReplyIsNotReplayed holds go-redis to it.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// command runs a script by its name (evalsha) or its text (eval).
func command(ctx context.Context, verb, script string, call *redisstore.Call) once {
	args := make([]any, 0, 3+len(call.Keys)+len(call.Args))
	args = append(args, verb, script, len(call.Keys))
	for _, k := range call.Keys {
		args = append(args, k)
	}
	for _, a := range call.Args {
		args = append(args, a)
	}
	cmd := redis.NewCmd(ctx, args...)
	if len(call.Keys) > 0 {
		cmd.SetFirstKeyPos(3) // routes it
	}
	return once{cmd}
}
