package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// bed is a real Redis whose clock is moved, and a connection to it.
type bed struct {
	suite  *suite
	server *testredis.Server
	client rueidis.Client
}

// callTime bounds a batch of commands. A script that loops is given up after it; much shorter, and a busy machine would
// be taken for a loop, which kills a mutant without a reason.
const callTime = 3 * time.Second

var errHangs = errors.New("does not answer")

func newBed(tb testredis.TB, s *suite) (*bed, error) {
	b := &bed{suite: s, server: testredis.Single(tb, testredis.Options{MovableClock: true, Config: []string{"--enable-debug-command", "yes"}})}
	return b, b.connect()
}

func (b *bed) connect() (err error) {
	if b.client != nil {
		b.client.Close()
	}
	b.client, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{b.server.Addr()}, DisableCache: true, DisableRetry: true, ForceSingleClient: true, ConnWriteTimeout: 2 * callTime,
	})
	if err != nil {
		return err
	}
	// Redis also drops expired keys by a timer of real time, which would make chance of a clock that jumps.
	return b.client.Do(context.Background(), b.client.B().Arbitrary("DEBUG", "SET-ACTIVE-EXPIRE", "0").Build()).Error()
}

// restart gets rid of a script that loops: one that has written cannot be killed by itself.
func (b *bed) restart() error {
	b.server.Kill()
	b.server.Restart()
	return b.connect()
}

// do sends commands together.
func (b *bed) do(commands [][]string) ([]rueidis.RedisResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	built := make([]rueidis.Completed, len(commands))
	for i, c := range commands {
		built[i] = b.client.B().Arbitrary(c...).Build()
	}
	replies := b.client.DoMulti(ctx, built...)
	if errors.Is(replies[0].NonRedisError(), context.DeadlineExceeded) {
		return nil, errHangs
	}
	return replies, replies[0].NonRedisError()
}

// batch is how many cases are sent together. More would do needless work on a mutant that fails the first.
const batch = 8

// fault runs the cases with a script's text and returns how it differs from the twin first, "" if it does not.
func (b *bed) fault(script *redisstore.Script, cases []testCase) (string, error) {
	if _, err := b.do([][]string{{"FLUSHALL"}}); err != nil {
		return "", err
	}
	loaded, err := b.do([][]string{{"SCRIPT", "LOAD", script.Text}})
	if err != nil {
		return "", err
	}
	if err := loaded[0].Error(); err != nil {
		return "", fmt.Errorf("%w: %w", errNoLua, err)
	}
	for len(cases) > 0 {
		n := 1
		for n < min(batch, len(cases)) && cases[n].us == cases[0].us {
			n++
		}
		b.server.Clock().Freeze(time.UnixMicro(cases[0].us))
		if wrong, err := b.runBatch(script, cases[:n]); err != nil || wrong != "" {
			return wrong, err
		}
		cases = cases[n:]
	}
	return "", nil
}

// errNoLua: a mutation made a text that is no Lua. The mutator should not.
var errNoLua = errors.New("does not compile")

func (b *bed) runBatch(script *redisstore.Script, cases []testCase) (string, error) {
	var commands [][]string
	for i := range cases {
		c := &cases[i]
		commands = append(commands, c.setup...)
		commands = append(commands, slices.Concat([]string{"EVALSHA", script.SHA, strconv.Itoa(len(c.keys))}, c.keys, c.args))
		for j, key := range c.keys {
			commands = append(commands, []string{"PTTL", key}, look(key, c.isLog[j]))
		}
	}
	replies, err := b.do(commands)
	if err != nil {
		return "", err
	}
	for i := range cases {
		c := &cases[i]
		replies = replies[len(c.setup):]
		got, err := integers(replies[0])
		if err != nil || !slices.Equal(got, c.want) {
			return fmt.Sprintf("at %d after %q\n%s %q %q\nreplied %d %v, want %d", c.us, c.setup, c.script, c.keys, c.args, got, err, c.want), nil
		}
		for j := range c.keys {
			if got := found(replies[1+2*j], replies[2+2*j]); got != c.after[j] {
				return fmt.Sprintf("at %d after %q\n%s %q %q\nleft under %s\n%s, want\n%s", c.us, c.setup, c.script, c.keys, c.args, c.keys[j], got, c.after[j]), nil
			}
		}
		replies = replies[1+2*len(c.keys):]
	}
	return "", nil
}

func look(key string, isLog bool) []string {
	if isLog {
		return []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	}
	return []string{"GET", key}
}

// integers reads a script's reply.
func integers(r rueidis.RedisResult) ([]int64, error) {
	if n, err := r.AsInt64(); err == nil {
		return []int64{n}, nil
	}
	return r.AsIntSlice()
}

// found tells what a key holds, in the words of twin.holds.
func found(ttl, value rueidis.RedisResult) string {
	left, err := ttl.AsInt64()
	if err != nil {
		return err.Error()
	}
	if left == -2 {
		return "nothing"
	}
	if text, err := value.ToString(); err == nil {
		return fmt.Sprintf("%s for %d ms", text, left)
	}
	scores, err := value.AsZScores()
	if err != nil {
		return err.Error()
	}
	list := make([]string, len(scores))
	for i, s := range scores {
		list[i] = fmt.Sprintf("%s@%.0f", s.Member, s.Score)
	}
	slices.Sort(list)
	return fmt.Sprintf("%s for %d ms", strings.Join(list, " "), left)
}
