package directory

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/registry"
)

// Redis is where nodes tell each other what the database has on record, so that it is asked once and not by every node. What is there is
// signed: who can write to Redis cannot make a subject exempt by it. Names are hashed. A nil Redis knows nothing.
//
// Whoever hears of a change puts a stone in the place of what was known. It lies there for longer than any question takes, and
// nobody writes over it, so what was asked before the change cannot come back after it.
type Redis struct {
	option rueidis.ClientOption
	secret []byte
	client atomic.Pointer[rueidis.Client]
	// until is the time, in Unix milliseconds, before which Redis is left alone because it did not answer.
	until  atomic.Int64
	stones chan registry.Who
}

const (
	// sharedFor is how long Redis keeps what it was told. With LiveOptions.Fresh and half of it again, a change of which every notice was lost
	// and every gap in the revisions overlooked acts after three minutes.
	sharedFor = 20 * time.Second
	// stoneFor is longer than askTimeout, and shorter than distrustFor.
	stoneFor = 2 * time.Second
	// redisTimeout is how long Redis may take; the database would have answered by then.
	redisTimeout = 50 * time.Millisecond
	redisPause   = time.Second
	stone        = "-"
	maxStones    = 10_000
)

// NewRedis returns a part of a Redis. Secret, which all nodes share, hashes names and signs what is kept. It connects when Run of a Live
// begins, and again while that fails.
func NewRedis(option rueidis.ClientOption, secret string) *Redis {
	// One question at a time is asked here, so the client's buffers can be small: each of several would take a megabyte.
	option.PipelineMultiplex, option.ReadBufferEachConn, option.WriteBufferEachConn = -1, 64<<10, 64<<10
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("directory in redis"))
	return &Redis{option: option, secret: mac.Sum(nil), stones: make(chan registry.Who, maxStones)}
}

// run connects and puts stones until ctx ends.
func (r *Redis) run(ctx context.Context) {
	if r == nil {
		return
	}
	defer func() {
		if c := r.client.Swap(nil); c != nil {
			(*c).Close()
		}
	}()
	for r.client.Load() == nil {
		if c, err := rueidis.NewClient(r.option); err == nil {
			r.client.Store(&c)
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(redisPause):
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case who := <-r.stones:
			r.putStones(ctx, who)
		}
	}
}

// use returns the client, nil while Redis is not there.
func (r *Redis) use() rueidis.Client {
	if r == nil || time.Now().UnixMilli() < r.until.Load() {
		return nil
	}
	if c := r.client.Load(); c != nil {
		return *c
	}
	return nil
}

// failed leaves Redis alone for a while.
func (r *Redis) failed() { r.until.Store(time.Now().Add(redisPause).UnixMilli()) }

// get returns what Redis knows, nil where it does not.
func (r *Redis) get(ctx context.Context, flights []*flight) []*registry.Record {
	client := r.use()
	if client == nil || len(flights) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	commands := make(rueidis.Commands, len(flights))
	for i, f := range flights {
		f.key = r.key(f.who)
		commands[i] = client.B().Get().Key(f.key).Build()
	}
	found := make([]*registry.Record, len(flights))
	for i, reply := range client.DoMulti(ctx, commands...) {
		text, err := reply.AsBytes()
		switch {
		case rueidis.IsRedisNil(err):
		case err != nil: // in a Cluster, other shards may have answered
			r.failed()
		default:
			found[i] = r.open(flights[i].key, text)
		}
	}
	return found
}

// put tells Redis what flights were answered, without anybody waiting longer than redisTimeout for it.
func (r *Redis) put(ctx context.Context, flights []*flight) {
	client := r.use()
	if client == nil || len(flights) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	commands := make(rueidis.Commands, len(flights))
	for i, f := range flights {
		key := f.key
		if key == "" { // it was distrusted when the question began
			key = r.key(f.who)
		}
		value := rueidis.BinaryString(r.seal(key, *f.answer))
		commands[i] = client.B().Set().Key(key).Value(value).Nx().PxMilliseconds(sharedFor.Milliseconds()).Build()
	}
	for _, reply := range client.DoMulti(ctx, commands...) {
		if err := reply.Error(); err != nil && !rueidis.IsRedisNil(err) {
			r.failed()
			return
		}
	}
}

// bury forgets what is known about a subject. When more wait than there is room for, it is forgotten by its time.
func (r *Redis) bury(who registry.Who) {
	if r == nil {
		return
	}
	select {
	case r.stones <- who:
	default:
	}
}

// putStones puts those that wait.
func (r *Redis) putStones(ctx context.Context, first registry.Who) {
	client := r.use()
	if client == nil {
		return
	}
	var commands rueidis.Commands
	for who, more := first, true; more && len(commands) < batch; {
		commands = append(commands, client.B().Set().Key(r.key(who)).Value(stone).PxMilliseconds(stoneFor.Milliseconds()).Build())
		select {
		case who = <-r.stones:
		default:
			more = false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, reply := range client.DoMulti(ctx, commands...) {
		if reply.Error() != nil {
			r.failed()
			return
		}
	}
}

// key names a subject. The braces make the whole of it the hash tag, as in every key of ours.
func (r *Redis) key(who registry.Who) string {
	mac := hmac.New(sha256.New, r.secret)
	mac.Write([]byte(who.Dimension + "\x00" + who.ID))
	return "rl1:{d:" + hex.EncodeToString(mac.Sum(nil)[:16]) + "}"
}
