package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/registry"
)

// The keys share a slot, so that a script can touch them together. They carry the format's version like every key.
const (
	leaseKey    = "rl1:{control}relay"
	revisionKey = "rl1:{control}revision"
	snapshotKey = "rl1:{control}snapshot"
	nodesKey    = "rl1:{control}nodes"
	noticesName = "rl1:notices"
)

const (
	// keepFor is how long Redis keeps the last snapshot when no relay renews it: nodes that start during an outage of the database that
	// lasts a day still find it.
	keepFor = 24 * time.Hour
	// callTimeout bounds a call; a healthy Redis answers in a thousandth of it.
	callTimeout = time.Second
	// dialTimeout bounds a new connection. A node that starts while Redis is unreachable waits for it once.
	dialTimeout = 400 * time.Millisecond
	// bulkTimeout bounds calls that carry a snapshot.
	bulkTimeout = 3 * time.Second
)

// redisBus is a bus on a client of its own: the one that counts has deadlines and breakers made for that.
type redisBus struct {
	options rueidis.ClientOption
	// turn holds the client, nil before the first connection, for one goroutine at a time.
	turn chan rueidis.Client
}

func newRedisBus(options rueidis.ClientOption) *redisBus {
	options.Dialer.Timeout, options.Sentinel.Dialer.Timeout = dialTimeout, dialTimeout
	b := &redisBus{options: options, turn: make(chan rueidis.Client, 1)}
	b.turn <- nil
	return b
}

// connected dials on first use, so that a node starts while Redis is down. Afterwards the client connects again by itself.
func (b *redisBus) connected(ctx context.Context) (rueidis.Client, error) {
	for {
		select {
		case client := <-b.turn:
			if client != nil || ctx.Err() != nil {
				b.turn <- client
				return client, ctx.Err()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// The client does not go by a context, and takes its time for each of several addresses. Each has an end, for which close waits.
		dialled := make(chan error, 1)
		go func() { dialled <- b.dial() }()
		select {
		case err := <-dialled:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// dial makes the client. It is for whoever has the turn, and gives it back.
func (b *redisBus) dial() error {
	client, err := rueidis.NewClient(b.options)
	if err != nil {
		client = nil
	}
	b.turn <- client
	return err
}

func (b *redisBus) close() {
	if client := <-b.turn; client != nil {
		client.Close()
	}
	b.turn <- nil
}

// with runs fn on the client, within a time.
func (b *redisBus) with(ctx context.Context, timeout time.Duration, fn func(context.Context, rueidis.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := b.connected(ctx)
	if err != nil {
		return err
	}
	return fn(ctx, client)
}

func (b *redisBus) state(ctx context.Context) (s state, err error) {
	err = b.with(ctx, callTimeout, func(ctx context.Context, c rueidis.Client) error {
		values, err := c.Do(ctx, c.B().Mget().Key(revisionKey, leaseKey).Build()).ToArray()
		if err != nil {
			return err
		}
		if len(values) != 2 {
			return fmt.Errorf("redis answered %d values, want 2", len(values))
		}
		s.relayed = !values[1].IsNil()
		if text, err := values[0].ToString(); err == nil {
			if n, _ := fmt.Sscanf(text, "%d %s", &s.revision, &s.digest); n != 2 {
				s.revision, s.digest = 0, ""
			}
		}
		return nil
	})
	return s, err
}

func (b *redisBus) fetch(ctx context.Context) (text []byte, err error) {
	err = b.with(ctx, bulkTimeout, func(ctx context.Context, c rueidis.Client) error {
		text, err = c.Do(ctx, c.B().Get().Key(snapshotKey).Build()).AsBytes()
		if rueidis.IsRedisNil(err) {
			return nil
		}
		return err
	})
	return text, err
}

// What scripts answer. Zero: another has the lease.
const (
	done     = 1
	textLost = 2
)

// KEYS: the lease. ARGV: who asks, for how many milliseconds; 0 gives it back.
var leaseScript = rueidis.NewLuaScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

func (b *redisBus) campaign(ctx context.Context, id string, lease time.Duration) (bool, error) {
	answer, err := b.script(ctx, callTimeout, leaseScript, []string{leaseKey}, id, strconv.FormatInt(lease.Milliseconds(), 10))
	return answer == done, err
}

func (b *redisBus) resign(ctx context.Context, id string) error {
	_, err := b.script(ctx, callTimeout, leaseScript, []string{leaseKey}, id, "0")
	return err
}

// KEYS: lease, revision, snapshot. ARGV: who puts, revision, digest, the snapshot or nothing, how many milliseconds both are kept. The lease
// is looked at in the same step, so that a relay that was paused and succeeded puts nothing old over what is new. Nothing in place of the
// snapshot says that it is there: a Redis that lost it, or has an older one, answers 2 and changes nothing.
var putScript = rueidis.NewLuaScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[4] == '' then
  local there = redis.call('GET', KEYS[2])
  if not there or string.match(there, '%S+$') ~= ARGV[3] then return 2 end
  if redis.call('PEXPIRE', KEYS[3], ARGV[5]) == 0 then return 2 end
else
  redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[5])
end
redis.call('SET', KEYS[2], ARGV[2] .. ' ' .. ARGV[3], 'PX', ARGV[5])
return 1`)

func (b *redisBus) put(ctx context.Context, id string, s sealed, again bool) (bool, error) {
	send := func(text []byte) (int64, error) {
		return b.script(ctx, bulkTimeout, putScript, []string{leaseKey, revisionKey, snapshotKey},
			id, strconv.FormatInt(int64(s.revision), 10), s.digest, rueidis.BinaryString(text), strconv.FormatInt(keepFor.Milliseconds(), 10))
	}
	answer, err := int64(textLost), error(nil)
	if again {
		answer, err = send(nil)
	}
	if err == nil && answer == textLost {
		answer, err = send(s.text)
	}
	return answer == done, err
}

func (b *redisBus) script(ctx context.Context, timeout time.Duration, script *rueidis.Lua, keys []string, args ...string) (answer int64, err error) {
	err = b.with(ctx, timeout, func(ctx context.Context, c rueidis.Client) error {
		answer, err = script.Exec(ctx, c, keys, args).AsInt64()
		return err
	})
	return answer, err
}

// KEYS: the lease. ARGV: the channel, the notice. In a Cluster all nodes hear what is published on one. A plain command would go to any of
// them, dead ones included; as a script with a key it goes where the lease is.
var publishScript = rueidis.NewLuaScript(`return redis.call('PUBLISH', ARGV[1], ARGV[2])`)

func (b *redisBus) publish(ctx context.Context, n registry.Notice) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = b.script(ctx, callTimeout, publishScript, []string{leaseKey}, noticesName, string(text))
	return err
}

func (b *redisBus) subscribe(ctx context.Context, fn func(registry.Notice)) error {
	client, err := b.connected(ctx)
	if err != nil {
		return err
	}
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			fn(registry.Notice{})
		}
	})
	return client.Receive(ctx, client.B().Subscribe().Channel(noticesName).Build(), func(m rueidis.PubSubMessage) {
		var n registry.Notice
		if json.Unmarshal([]byte(m.Message), &n) != nil {
			n = registry.Notice{} // something changed, and nobody knows what
		}
		fn(n)
	})
}
