package testredis

import (
	"fmt"
	"reflect"
	"strconv"
	"testing"
	"time"
)

// epoch is where frozen clocks start: some day in the past, with microseconds.
var epoch = time.Date(2021, 2, 3, 4, 5, 6, 789_012_000, time.UTC)

// scriptTime is TIME as a script sees it.
var scriptTime = []string{"EVAL", "return redis.call('TIME')", "0"}

// timeReply is what TIME answers at t.
func timeReply(t time.Time) []any {
	us := t.UnixMicro()
	return []any{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)}
}

// micros reads a reply of TIME.
func micros(t *testing.T, reply any) int64 {
	t.Helper()
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		t.Fatalf("TIME = %#v", reply)
	}
	sec, err := strconv.ParseInt(pair[0].(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	us, err := strconv.ParseInt(pair[1].(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sec*1e6 + us
}

// One open connection, so that no accept or reconnect gives Redis an occasion to look at the
// clock; expiry by the background cycle is off, so that only the command itself can notice.
func TestClock_IsSeenByTheVeryNextCommand(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{MovableClock: true, Config: []string{"--enable-debug-command", "yes"}})
	c := newSession(t, s)
	c.do("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	s.Clock().Freeze(epoch)
	want := func(want any, args ...string) {
		t.Helper()
		if got := c.do(args...); !reflect.DeepEqual(got, want) {
			t.Fatalf("at %v: %q = %#v, want %#v", s.Clock().Now(), args, got, want)
		}
	}
	for range 100 {
		start := s.Clock().Now()
		want("OK", "SET", "k", "v", "PX", "1000")
		want(int64(1000), "PTTL", "k")
		s.Clock().Advance(400 * time.Millisecond)
		want(int64(600), "PTTL", "k")
		s.Clock().Advance(time.Microsecond)
		want(timeReply(start.Add(400_001*time.Microsecond)), scriptTime...)
		want(timeReply(start.Add(400_001*time.Microsecond)), "TIME")
		s.Clock().Set(start.Add(time.Second)) // Redis expires a key after its last millisecond
		want("v", "GET", "k")
		s.Clock().Advance(time.Millisecond)
		want(nil, "GET", "k")

		want("OK", "SET", "k", "v", "PX", "1000")
		s.Clock().Advance(time.Hour)
		want(int64(0), "EVAL", "return redis.call('EXISTS', KEYS[1])", "1", "k")
		s.Clock().Advance(-30 * time.Minute)
		want(timeReply(start.Add(30*time.Minute+1001*time.Millisecond)), scriptTime...)
	}
}

func TestClock_RunsOnFromWhereItIsSet(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{MovableClock: true})
	clock := s.Clock()
	read := func() int64 {
		t.Helper()
		before := clock.Now().UnixMicro()
		v, err := s.Do(scriptTime...)
		if err != nil {
			t.Fatal(err)
		}
		got, after := micros(t, v), clock.Now().UnixMicro()
		if got < before || got > after {
			t.Fatalf("server shows %d, want between %d and %d", got, before, after)
		}
		return got
	}
	if got, wall := read(), time.Now().UnixMicro(); got > wall {
		t.Errorf("before it is moved: server shows %d, machine %d", got, wall)
	}
	clock.Set(epoch)
	first := read()
	waitFor(t, func() error { // it runs
		if now := read(); now <= first {
			return fmt.Errorf("server still shows %d", now)
		}
		return nil
	})
	clock.Advance(48 * time.Hour)
	if got := read() - first; got < 48*3600e6 || got > 49*3600e6 {
		t.Errorf("advanced by 48 h: server moved by %d µs", got)
	}
	clock.Freeze(epoch)
	wantReply(t, s, timeReply(epoch), "TIME")
	clock.SetMicros(epoch.UnixMicro() + 7)
	wantReply(t, s, timeReply(epoch.Add(7*time.Microsecond)), "TIME")
	clock.Thaw()
	if got := read() - epoch.UnixMicro(); got < 7 || got > 60e6 {
		t.Errorf("thawed: server is %d µs after where it stood", got)
	}
}

func TestClock_DrivesExpiryInTheBackground(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{MovableClock: true})
	for name, move := range map[string]func(){
		"running": func() { s.Clock().Advance(time.Hour) },
		"frozen":  func() { s.Clock().Freeze(s.Clock().Now().Add(time.Hour)) },
	} {
		wantReply(t, s, "OK", "SET", "k", "v", "EX", "60")
		move()
		waitFor(t, func() error { // DBSIZE counts expired keys until something deletes them
			if n, err := s.Do("DBSIZE"); err != nil || n != int64(0) {
				return fmt.Errorf("%s: DBSIZE = %v (%w)", name, n, err)
			}
			return nil
		})
	}
}

func TestClock_SurvivesRestart(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{MovableClock: true})
	s.Clock().Freeze(epoch)
	s.Restart()
	wantReply(t, s, timeReply(epoch), "TIME")
}

func TestClock_RefusesTimesBefore1970(t *testing.T) {
	t.Parallel()
	if got := fatalOf(t, func(tb TB) { Single(tb, Options{MovableClock: true}).Clock().SetMicros(0) }); got == "" {
		t.Error("SetMicros(0): no complaint")
	}
	if s := Single(t, Options{}); s.Clock() != nil {
		t.Error("Clock without MovableClock: not nil")
	}
}
