package oracle_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/oracle"
)

// sample writes a log of two groups and a give-back.
func sample(t testing.TB) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := oracle.NewWriter(&file, 7, about(fixed, bucket).acrossShards().Counters)
	if err != nil {
		t.Fatal(err)
	}
	yes := sluice.State{Allowed: true, Remaining: 9, Time: start}
	no := sluice.State{Remaining: 3, Time: start - 5}
	w.Group(start-10, start+20, []sluice.Charge{{Cost: 1, State: yes}}, []int{1})
	w.Group(start-30, start+40, []sluice.Charge{{Cost: 2, State: yes}, {Cost: 4, State: no}, {Shadow: true, State: sluice.State{Err: errors.New("lost")}}}, []int{0, 1, 0})
	w.Giveback(oracle.Giveback{Counter: 1, Taken: start, Time: start + 50, Called: start + 45, Returned: start + 60, Cost: 4 * perUnit, Back: 3 * perUnit})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestLog_ReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	got, err := oracle.Read(bytes.NewReader(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	first, second := oracle.NewGroupID(7, 0), oracle.NewGroupID(7, 1)
	want := &oracle.Log{
		Counters: about(fixed, bucket).acrossShards().Counters,
		Charges: []oracle.Charge{
			{Group: first, Counter: 1, Passed: true, Allowed: true, OneShard: true, Time: start, Called: start - 10, Returned: start + 20, Cost: 1, Remaining: 9},
			{Group: second, Counter: 0, Passed: true, Time: start, Called: start - 30, Returned: start + 40, Cost: 2, Remaining: 9},
			{Group: second, Counter: 1, Time: start - 5, Called: start - 30, Returned: start + 40, Cost: 4, Remaining: 3},
			{Group: second, Counter: 0, Shadow: true, Lost: true, Called: start - 30, Returned: start + 40},
		},
		Givebacks: []oracle.Giveback{{Counter: 1, Taken: start, Time: start + 50, Called: start + 45, Returned: start + 60, Cost: 4 * perUnit, Back: 3 * perUnit}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLog_RefusesWhatBreaksOff(t *testing.T) {
	t.Parallel()
	whole := sample(t)
	first := bytes.IndexByte(whole, '\n') + 1
	complete := 0
	for n := range whole {
		if _, err := oracle.Read(bytes.NewReader(whole[:n])); err == nil {
			complete++
		}
	}
	// No frame yet, one, two: only between frames a part is a log.
	if complete != 3 {
		t.Errorf("of the %d beginnings of a log with 3 frames after byte %d, %d were read as logs, want 3", len(whole), first, complete)
	}
}

func TestLog_AddRefusesOtherCounters(t *testing.T) {
	t.Parallel()
	a, b, c := about(fixed), about(bucket), about(fixed, fixed)
	for _, other := range []*story{b, c} {
		if err := a.Add(&other.Log); err == nil {
			t.Errorf("a log about %v was added to one about %v", other.Counters, a.Counters)
		}
	}
	var sum oracle.Log
	for range 2 {
		if err := sum.Add(&about(fixed).each(pass(0, 1, 9)).Log); err != nil {
			t.Fatal(err)
		}
	}
	if len(sum.Charges) != 2 || len(sum.Counters) != 1 {
		t.Errorf("two logs of one charge have %d charges of %d counters", len(sum.Charges), len(sum.Counters))
	}
}

func TestRead_SaysWhatIsNoLog(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "no first line",
		"{}\n":                              "not of format",
		string(sample(t)) + "X":             `frame 3: unknown kind 'X'`,
		string(sample(t)) + "T\x00\x00\x00": "frame 3: unexpected EOF",
		string(sample(t)) + "T\x00\x00\x00\x01\x05": "frame 3: counter 5 of 2",
	} {
		if _, err := oracle.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reading %.40q: got %v, want an error that says %q", text, err, want)
		}
	}
}

// FuzzRead also checks whatever can be read: a log from anywhere must not stop the oracle.
func FuzzRead(f *testing.F) {
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		log, err := oracle.Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		for i := range log.Counters {
			if log.Counters[i].Limit.Validate() != nil {
				return // a limit no store would accept
			}
		}
		_ = oracle.Check(log, nil).String()
	})
}
