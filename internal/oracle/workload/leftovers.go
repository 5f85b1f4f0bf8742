package workload

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/internal/testredis"
)

// One step, so that the time is that of the value.
const (
	readCounter = "local t=redis.call('TIME') return {t[1],t[2],redis.call('PTTL',KEYS[1]),redis.call('GET',KEYS[1])}"
	readLog     = "local t=redis.call('TIME') return {t[1],t[2],redis.call('PTTL',KEYS[1]),redis.call('ZRANGE',KEYS[1],0,-1,'WITHSCORES')}"
)

// Leftovers reads what Redis holds of the counters. serverOf returns who holds a slot; on a single server the slot is 0.
func Leftovers(counters []oracle.Counter, serverOf func(slot int) *testredis.Server) ([]oracle.Leftover, error) {
	servers := map[uint16]*testredis.Server{}
	left := make([]oracle.Leftover, 0, len(counters))
	for i := range counters {
		c := &counters[i]
		if servers[c.Shard] == nil {
			servers[c.Shard] = serverOf(int(c.Shard))
		}
		script := readCounter
		if c.Limit.Algorithm == sluice.SlidingLog {
			script = readLog
		}
		reply, err := servers[c.Shard].Do("EVAL", script, "1", c.Key)
		if err != nil {
			return nil, fmt.Errorf("read what is left of %s: %w", c.Key, err)
		}
		l, err := parseLeftover(c.Key, reply)
		if err != nil {
			return nil, fmt.Errorf("read what is left of %s: %w", c.Key, err)
		}
		left = append(left, l)
	}
	return left, nil
}

// parseLeftover reads seconds, microseconds, milliseconds to live, and then a number, nothing, or members and scores.
func parseLeftover(key string, reply any) (oracle.Leftover, error) {
	l := oracle.Leftover{Key: key}
	fields, ok := reply.([]any)
	if !ok || len(fields) < 3 {
		return l, fmt.Errorf("reply %v has not the time and a TTL", reply)
	}
	seconds, err1 := number(fields[0])
	micros, err2 := number(fields[1])
	ttl, err3 := number(fields[2])
	if err1 != nil || err2 != nil || err3 != nil {
		return l, fmt.Errorf("reply %v has not the time and a TTL", fields[:3])
	}
	l.ReadAt, l.TTL = seconds*1_000_000+micros, time.Duration(ttl)*time.Millisecond
	if l.Present = ttl != -2; !l.Present || len(fields) < 4 { // -2: no such key
		return l, nil
	}
	members, isLog := fields[3].([]any)
	if !isLog {
		var err error
		l.Value, err = number(fields[3])
		return l, err
	}
	for i := 1; i < len(members); i += 2 {
		score, err := number(members[i])
		if err != nil {
			return l, err
		}
		l.Entries = append(l.Entries, score)
	}
	return l, nil
}

// number reads an integer reply or an integer in a string, for which scores above 10^15 come as 1.7e+15.
func number(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(v, 64)
		return int64(f), err
	}
	return 0, fmt.Errorf("%v is no number", v)
}
