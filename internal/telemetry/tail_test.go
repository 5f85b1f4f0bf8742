package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

func subscribe(t *testing.T, b *bed, f Filter) *Subscription {
	t.Helper()
	s, err := b.tail.Subscribe(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// waiting returns the events that wait for a reader.
func waiting(s *Subscription) []Event {
	var events []Event
	for {
		select {
		case e := <-s.Events():
			events = append(events, e)
		default:
			return events
		}
	}
}

func TestTail_ShowsRefusedShadowRefusedAndDegraded(t *testing.T) {
	t.Parallel()
	shadow := userRule("candidate", 1)
	shadow.Action = sluice.Shadow
	b := newBed(t, userRule("login", 2), shadow)
	s := subscribe(t, b, Filter{})
	for range 3 {
		b.check(t, byUser("u_1"))
	}
	b.store.fail(context.DeadlineExceeded)
	b.check(t, byUser("u_2"))

	var got []string
	for _, e := range waiting(s) {
		got = append(got, e.Outcome+" "+e.Rule+" "+e.Mode+" "+e.User)
	}
	want := []string{
		"shadow_refused candidate exact u_1", "refused login exact u_1", "shadow_refused candidate exact u_1", "degraded login local u_2",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestTail_EventsSayWhoAndWhyWithoutKeysOrWholeAddresses(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("login", 1))
	s, full := subscribe(t, b, Filter{}), subscribe(t, b, Filter{FullIP: true})
	req := sluice.Request{
		Subject: sluice.Subject{User: "u_1", Tenant: "acme", Tier: "gold", APIKey: "planted-secret", IP: netip.MustParseAddr("2001:db8:1:2:3::4")},
		Route:   "/login", Method: "POST",
	}
	b.check(t, req)
	d := b.check(t, req)
	e := (<-s.Events())
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"id":"` + d.ID.String() + `"`, `"outcome":"refused"`, `"namespace":"default"`, `"rule":"login"`, `"label":"login"`, `"user":"u_1"`,
		`"tenant":"acme"`, `"tier":"gold"`, `"ip":"2001:db8:1::/48"`, `"route":"/login"`, `"method":"POST"`, `"cost":1`, `"mode":"exact"`, `"reason":"refused: rule`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(string(text), "planted-secret") {
		t.Errorf("the API key is in %s", text)
	}
	if e.RetryAfter <= 0 || e.Time.IsZero() {
		t.Errorf("retry after %d ms at %v", e.RetryAfter, e.Time)
	}
	if got := (<-full.Events()).IP; got != "2001:db8:1:2:3::4" {
		t.Errorf("full address: %s", got)
	}
}

func TestTail_FiltersByEveryField(t *testing.T) {
	t.Parallel()
	e := Event{Namespace: "n", Rule: "r", User: "u", Tenant: "t", Outcome: "refused"}
	for _, f := range []Filter{{}, {Namespace: "n"}, {Rule: "r"}, {User: "u"}, {Tenant: "t"}, {Outcome: "refused"}, {Namespace: "n", Rule: "r", User: "u", Tenant: "t"}} {
		if !f.fits(&e) {
			t.Errorf("%+v does not fit %+v", f, e)
		}
	}
	for _, f := range []Filter{{Namespace: "x"}, {Rule: "x"}, {User: "x"}, {Tenant: "x"}, {Outcome: "x"}, {Namespace: "n", User: "x"}} {
		if f.fits(&e) {
			t.Errorf("%+v fits %+v", f, e)
		}
	}
}

func TestTail_DropsAndCountsWhatAReaderIsTooSlowFor(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("login", 1))
	slow, other := subscribe(t, b, Filter{}), subscribe(t, b, Filter{User: "u_2"})
	for range tailRoom + 11 { // the first one passes
		b.check(t, byUser("u_1"))
	}
	b.check(t, byUser("u_2"))
	b.check(t, byUser("u_2"))
	if got := len(waiting(slow)); got != tailRoom {
		t.Errorf("%d events waited, want %d", got, tailRoom)
	}
	if got := slow.Dropped(); got != 11 {
		t.Errorf("%d dropped, want 11", got)
	}
	if got := slow.Dropped(); got != 0 {
		t.Errorf("asked again: %d dropped, want 0", got)
	}
	if got := len(waiting(other)); got != 1 {
		t.Errorf("the other reader got %d events, want 1", got)
	}
	wantSeries(t, b.scrape(t), "sluice_tail_dropped_total 11")
}

func TestTail_ServesABoundedNumberOfReaders(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var all []*Subscription
	for range maxReaders {
		all = append(all, subscribe(t, b, Filter{}))
	}
	if _, err := b.tail.Subscribe(Filter{}); !errors.Is(err, ErrTooManyReaders) {
		t.Errorf("one reader more: %v, want ErrTooManyReaders", err)
	}
	all[3].Close()
	all[3].Close()
	subscribe(t, b, Filter{})
	for _, s := range all {
		s.Close()
	}
}

func TestTail_CostsNothingWithoutReaders(t *testing.T) {
	b := newBed(t, userRule("login", 1))
	req := byUser("u_1")
	b.check(t, req)
	refused := b.check(t, req)
	began := time.Now()
	b.observer.Decided(t.Context(), &req, &refused, began, someTime)
	if n := testing.AllocsPerRun(100, func() { b.observer.Decided(t.Context(), &req, &refused, began, someTime) }); n != 0 {
		t.Errorf("a refusal nobody reads allocates %v times, want 0", n)
	}
}

func TestEvent_NeverIsTold(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{sluice.Never: -1, 0: 0, time.Nanosecond: 1, time.Second: 1000, sluice.Never - 1: int64(sluice.Never/time.Millisecond) + 1} {
		if got := milliseconds(d); got != want {
			t.Errorf("%d: got %d, want %d", d, got, want)
		}
	}
}

func TestEvent_AddressesAreCutToNetworks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.77": "192.0.2.0/24", "::ffff:192.0.2.77": "192.0.2.0/24", "2001:db8:1:2::3": "2001:db8:1::/48", "fe80::1%eth0": "fe80::/48",
	} {
		if got := addressOf(netip.MustParseAddr(in), false); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if got := addressOf(netip.Addr{}, true); got != "" {
		t.Errorf("no address: got %q", got)
	}
}
