package redisstore

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/counter"
	"github.com/sluicehq/sluice/internal/testredis"
)

var keyForm = regexp.MustCompile(`^rl1:\{[A-Za-z0-9_-]{16}\}[A-Za-z0-9_-]{7}$`)

// FuzzKey holds keys to S1 of the threat model. That the encoding is injective is shown by reading it back: what can be
// recovered from two encodings cannot have been lost in either.
func FuzzKey(f *testing.F) {
	f.Add("default", "search", []byte{1, 4}, "alice", "/api/search", "", uint8(0), int64(time.Minute), int64(10))
	f.Add("", "", []byte{}, "", "", "", uint8(3), int64(0), int64(0))
	f.Add("n", "r", []byte{6, 6, 1}, "a:b", "{user}", "x\x00_|", uint8(1), int64(time.Hour), int64(1))
	f.Add("n", "r", []byte{3, 0, 5}, "2001:db8::1", "GET", "tenant", uint8(2), int64(time.Second), int64(7))
	f.Add("rl1:{", "}", []byte{2, 2, 2}, strings.Repeat("k", 300), "\xff\xfe", "rl1:{AAAAAAAAAAAAAAAA}", uint8(3), int64(time.Second), int64(1))
	f.Fuzz(func(t *testing.T, namespace, rule string, shape []byte, v1, v2, v3 string, algorithm uint8, window, limit int64) {
		values := []string{v1, v2, v3}
		c := fuzzedCharge(namespace, rule, shape, values, algorithm, window, limit)

		anchor, rest := counter.AppendAnchor(nil, &c.Key), counter.AppendRest(nil, &c)
		gotAnchor, gotRest := recoverAnchor(anchor), recoverRest(rest)
		wantAnchor, wantRest := describe(&c)
		if gotAnchor != wantAnchor || gotRest != wantRest {
			t.Fatalf("%+v encodes to %x, %x, which reads\n%s / %s, want\n%s / %s", c, anchor, rest, gotAnchor, gotRest, wantAnchor, wantRest)
		}

		key := keyOf(&c)
		if !keyForm.MatchString(key) || len(key) > 30 {
			t.Fatalf("%+v has the key %q, want %s and at most 30 characters", c, key, keyForm)
		}
		for _, raw := range append(values, namespace, rule) {
			// Shorter texts occur by chance.
			if len(raw) >= 5 && strings.Contains(key[len(keyPrefix):], raw) {
				t.Fatalf("key %q contains %q, which is the client's", key, raw)
			}
		}
		changed := c
		changed.Limit.Limit++
		changed.Limit.Burst, changed.Cost, changed.MaxDelay, changed.Shadow, changed.Receipted = 17, 5, time.Second, true, true
		if got := keyOf(&changed); got != key {
			t.Fatalf("with other numbers %+v has the key %q, want %q still", c, got, key)
		}
	})
}

// fuzzedCharge makes a charge of raw material: each byte of shape is a dimension, values are taken in turn.
func fuzzedCharge(namespace, rule string, shape []byte, values []string, algorithm uint8, window, limit int64) sluice.Charge {
	c := sluice.Charge{
		Key:   sluice.Key{Namespace: namespace, Rule: rule},
		Limit: sluice.Limit{Algorithm: sluice.Algorithm(algorithm), Window: time.Duration(window), Limit: limit},
		Cost:  1,
	}
	dimensions := []sluice.Dimension{sluice.Tenant, sluice.User, sluice.APIKey, sluice.IP, sluice.Route, sluice.Method}
	for i, b := range shape[:min(len(shape), 6)] {
		part := sluice.Part{Value: values[i%3]}
		if n := int(b) % 7; n < 6 {
			part.Dimension = dimensions[n]
		} else {
			part.Dimension = sluice.Dimension("attribute-" + values[(i+1)%3])
		}
		if part.Dimension == sluice.IP {
			var raw [16]byte
			copy(raw[:], part.Value)
			part.Value, part.IP = "", netip.AddrFrom16(raw)
			if b >= 128 {
				part.IP = netip.AddrFrom4([4]byte(raw[:4]))
			}
		}
		c.Key.Parts = append(c.Key.Parts, part)
	}
	return c
}

func keyOf(c *sluice.Charge) string {
	key, _ := appendKey(nil, nil, DefaultHashKey, c)
	return string(key)
}

// describe tells in words what the two pieces of a key must carry. The place of the anchor among the parts is not told:
// a key is a set of dimensions with their values.
func describe(c *sluice.Charge) (anchor, rest string) {
	rule := fmt.Sprintf("%q %q ", c.Key.Namespace, c.Key.Rule)
	at := c.Key.Anchor()
	anchor = rule
	rest = rule + fmt.Sprintf("%d %d ", c.Limit.Algorithm, int64(c.Limit.Window))
	for i := range c.Key.Parts {
		if i == at {
			anchor = describePart(&c.Key.Parts[i])
		} else {
			rest += describePart(&c.Key.Parts[i])
		}
	}
	return anchor, rest
}

func describePart(p *sluice.Part) string {
	if p.Dimension != sluice.IP {
		return fmt.Sprintf("%q=%q ", p.Dimension, p.Value)
	}
	bits := 64
	if p.IP.Unmap().Is4() {
		bits = 32
	}
	return fmt.Sprintf("ip=%s ", netip.PrefixFrom(p.IP.Unmap(), bits).Masked())
}

// encoded reads an encoding piece by piece.
type encoded struct{ left []byte }

func (e *encoded) take(n int) []byte {
	b := e.left[:n]
	e.left = e.left[n:]
	return b
}

func (e *encoded) text() string {
	n, width := binary.Uvarint(e.left)
	e.take(width)
	return string(e.take(int(n)))
}

// field reads one typed field or a pair of them.
func (e *encoded) field() string {
	names := map[byte]sluice.Dimension{2: sluice.Tenant, 3: sluice.User, 4: sluice.APIKey, 7: sluice.Route, 8: sluice.Method}
	switch kind := e.take(1)[0]; kind {
	case 1: // namespace and rule
		namespace := e.text()
		e.take(1)
		return fmt.Sprintf("%q %q ", namespace, e.text())
	case 5:
		return fmt.Sprintf("ip=%s/32 ", netip.AddrFrom4([4]byte(e.take(4))))
	case 6:
		var raw [16]byte
		copy(raw[:], e.take(8))
		return fmt.Sprintf("ip=%s ", netip.PrefixFrom(netip.AddrFrom16(raw), 64))
	case 9:
		name := e.text()
		e.take(1)
		return fmt.Sprintf("%q=%q ", name, e.text())
	default:
		return fmt.Sprintf("%q=%q ", names[kind], e.text())
	}
}

func recoverAnchor(b []byte) string {
	e := encoded{b}
	return e.field() + strings.Repeat("?", len(e.left)) // nothing may follow
}

func recoverRest(b []byte) string {
	e := encoded{b}
	text := e.field()
	text += fmt.Sprintf("%d ", e.take(1)[0])
	text += fmt.Sprintf("%d ", int64(binary.BigEndian.Uint64(e.take(8))))
	for len(e.left) > 0 {
		text += e.field()
	}
	return text
}

func TestKey_CountersOfOneSubjectShareATag(t *testing.T) {
	t.Parallel()
	part := func(d sluice.Dimension, v string) sluice.Part { return sluice.Part{Dimension: d, Value: v} }
	charge := func(rule string, window time.Duration, parts ...sluice.Part) *sluice.Charge {
		return &sluice.Charge{Key: sluice.Key{Namespace: "n", Rule: rule, Parts: parts}, Limit: sluice.Per(1, window)}
	}
	tag := func(c *sluice.Charge) string { return keyOf(c)[:len(keyPrefix)+tagLength] }

	first := charge("a", time.Second, part(sluice.User, "u"))
	same := charge("b", time.Hour, part(sluice.Route, "/x"), part(sluice.User, "u"))
	if tag(first) != tag(same) || keyOf(first) == keyOf(same) {
		t.Errorf("two rules of one user: got %s and %s, want one tag and two keys", keyOf(first), keyOf(same))
	}
	for _, other := range []*sluice.Charge{
		charge("a", time.Second, part(sluice.User, "v")),
		charge("a", time.Second, part(sluice.Tenant, "u")),
		charge("a", time.Second, part("user_id", "u")),
		charge("a", time.Second, part(sluice.Route, "u")),
		charge("a", time.Second),
	} {
		if tag(first) == tag(other) {
			t.Errorf("%v and %v: got the same tag %s", first.Key, other.Key, tag(first))
		}
	}
	hidden := [16]byte([]byte("another hash key"))
	if key, _ := appendKey(nil, nil, hidden, first); string(key) == keyOf(first) {
		t.Error("another hash key: got the same Redis key")
	}
}

// The vectors are those published with SipHash: the key 00 01 … 0f, the message 00 01 … of each length.
func TestSipHash_MatchesThePublishedVectors(t *testing.T) {
	t.Parallel()
	var key [16]byte
	msg := make([]byte, 64)
	for i := range msg {
		msg[i] = byte(i)
	}
	copy(key[:], msg)
	for length, want := range map[int]string{
		0:  "a3817f04ba25a8e66df67214c7550293",
		1:  "da87c1d86b99af44347659119b22fc45",
		2:  "8177228da4a45dc7fca38bdef60affe4",
		7:  "a1f1ebbed8dbc153c0b84aa61ff08239",
		8:  "3b62a9ba6258f5610f83e264f31497b4",
		9:  "264499060ad9baabc47f8b02bb6d71ed",
		15: "5493e99933b0a8117e08ec0f97cfc3d9",
		16: "6ee2a4ca67b054bbfd3315bf85230577",
		63: "5150d1772f50834a503e069a973fbd7c",
	} {
		hi, lo := sipHash(key, msg[:length])
		var out [16]byte
		binary.LittleEndian.PutUint64(out[:8], lo)
		binary.LittleEndian.PutUint64(out[8:], hi)
		if got := hex.EncodeToString(out[:]); got != want {
			t.Errorf("length %d: got %s, want %s", length, got, want)
		}
	}
}

func TestSlot_IsTheServers(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{Config: []string{"--cluster-enabled", "yes"}})
	keys := []string{ProbeKey(nil), ProbeKey(func(slot uint16) bool { return slot == 16383 })}
	for i := range 200 {
		keys = append(keys, userCounter(i))
	}
	for _, key := range keys {
		want, err := server.Do("CLUSTER", "KEYSLOT", key)
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(Slot(key)); got != want {
			t.Errorf("%s: got slot %d, want %d", key, got, want)
		}
	}
}

func TestProbeKey_FitsTheSlotAndIsNoCounters(t *testing.T) {
	t.Parallel()
	for _, want := range []uint16{0, 5461, 16383} {
		key := ProbeKey(func(slot uint16) bool { return slot == want })
		if Slot(key) != want || keyForm.MatchString(key) {
			t.Errorf("got %s in slot %d, want slot %d and no counter's form", key, Slot(key), want)
		}
	}
}

// Sequential users must fall on slots as if by chance: neither crowded nor suspiciously even.
func TestSlot_SpreadsUsersEvenly(t *testing.T) {
	t.Parallel()
	const users, slots = 500_000, 16384
	var counts [slots]float64
	for i := range users {
		counts[Slot(userCounter(i))]++
	}
	const expected = float64(users) / slots
	chi2 := 0.0
	for _, n := range counts {
		chi2 += (n - expected) * (n - expected) / expected
	}
	// χ² has the mean slots-1 and this deviation. The keys are always the same, so this cannot fail by chance later.
	deviations := (chi2 - (slots - 1)) / math.Sqrt(2*(slots-1))
	if math.Abs(deviations) > 4 {
		t.Errorf("χ² of %d users over %d slots: got %.0f, %.1f deviations off, want at most 4", users, slots, chi2, deviations)
	}
}

func userCounter(i int) string {
	return keyOf(&sluice.Charge{
		Key:   sluice.Key{Namespace: "n", Rule: "r", Parts: []sluice.Part{{Dimension: sluice.User, Value: strconv.Itoa(i)}}},
		Limit: sluice.PerMinute(1),
	})
}
