package envoyrls_test

import (
	"math"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/envoyrls"
)

func TestShouldRateLimit_CountsHandWrittenRulesByTheNamesOfEntries(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{},
		sluice.Rule{Namespace: "shop", Name: "user", Key: []sluice.Dimension{sluice.User}, Limits: perYear(2)},
		sluice.Rule{Namespace: "shop", Name: "net", Key: []sluice.Dimension{sluice.IP}, Limits: perYear(1)},
		sluice.Rule{
			Namespace: "shop", Name: "plan", Key: []sluice.Dimension{"plan"}, Limits: perYear(3),
			Match: sluice.Match{Routes: []string{"/api/*"}, Methods: []string{"GET"}, Tiers: []string{"free"}},
		},
	)
	expect(t, b.ask(t, entries("user=ann"), entries("user=bob")), ok, 1, ok, 1)
	expect(t, b.ask(t, entries("user=ann"), entries("user=ann")), ok, 0, over, 0)
	expect(t, b.ask(t, entries("remote_address=2001:db8::1")), ok, 0)
	expect(t, b.ask(t, entries("ip=2001:db8::2")), over, 0) // the same /64
	expect(t, b.ask(t, entries("remote_address=nonsense")), ok, 0)
	plan := entries("path=/api/x?y=1", "method=GET", "tier=free", "plan=gold", "plan=tin")
	expect(t, b.ask(t, plan), ok, 2)
	expect(t, b.ask(t, entries("path=/other", "method=GET", "tier=free", "plan=gold")), ok, 0)
}

func TestShouldRateLimit_TellsOfTheTightestOfSeveralRules(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{},
		sluice.Rule{Namespace: "shop", Name: "user", Key: []sluice.Dimension{sluice.User}, Limits: perYear(10)},
		sluice.Rule{Namespace: "shop", Name: "all", Limits: perYear(3), Label: "everyone"},
	)
	response := b.ask(t, entries("user=ann"))
	expect(t, response, ok, 2)
	if got := response.GetStatuses()[0].GetCurrentLimit(); got.GetName() != "everyone" || got.GetRequestsPerUnit() != 3 {
		t.Errorf("the limit told is %v, want 3 of everyone", got)
	}
}

func TestShouldRateLimit_MatchesPatternsInOrderAndDepth(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{},
		byPattern("user", 5, "descriptor.1"),
		byPattern("user=root,method", 7, "descriptor.2"),
		byPattern("user=ro*", 9, "descriptor.1"),
		byPattern("path,user", 3, "descriptor.1", "descriptor.2"),
	)
	expect(t, b.ask(t, entries("user=ann"), entries("user="), entries("user=robot")), ok, 4, ok, 4, ok, 8)
	expect(t, b.ask(t, entries("user=root")), ok, 0) // its own branch has no limit at this depth
	expect(t, b.ask(t, entries("user=root", "method=GET"), entries("user=root", "method=PUT")), ok, 6, ok, 6)
	expect(t, b.ask(t, entries("user=ann", "method=GET")), ok, 0)
	expect(t, b.ask(t, entries("path=/", "user=ann"), entries("user=ann", "path=/")), ok, 2, ok, 0)
}

func TestShouldRateLimit_PassesADescriptorReplacedByAnother(t *testing.T) {
	t.Parallel()
	replaced := byPattern("user", 1)
	replaced.Name, replaced.Action, replaced.Limits, replaced.Key = "user beside plan", sluice.Allow, nil, nil
	replaced.Match.Attributes["descriptor.beside"] = "plan=gold"
	b := newBed(t, envoyrls.Options{}, byPattern("user", 5, "descriptor.1"), byPattern("plan=gold", 9), replaced)
	expect(t, b.ask(t, entries("user=ann"), entries("plan=gold")), ok, 0, ok, 8)
	expect(t, b.ask(t, entries("user=ann"), entries("plan=tin")), ok, 4, ok, 0)
}

func TestShouldRateLimit_TakesAddendsOfCallDescriptorAndRule(t *testing.T) {
	t.Parallel()
	costly := byPattern("search", 100)
	costly.Cost = 5
	b := newBed(t, envoyrls.Options{}, byPattern("user", 100), costly)
	expect(t, b.ask(t, entries("user=ann"), entries("search=x")), ok, 99, ok, 95)
	expect(t, b.call(t, &pb.RateLimitRequest{
		Domain: "shop", HitsAddend: 10, Descriptors: []*ratelimit.RateLimitDescriptor{entries("user=ann"), hits(20, entries("search=x"))},
	}), ok, 89, ok, 75)
	expect(t, b.ask(t, hits(90, entries("user=ann"))), over, 89) // and charges nothing
	expect(t, b.ask(t, hits(89, entries("user=ann"))), ok, 0)
}

func TestShouldRateLimit_LooksWithoutChargingAtAnAddendOfZero(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{}, byPattern("user", 1, "descriptor.1"), byPattern("plan", 4))
	for range 3 {
		expect(t, b.ask(t, hits(0, entries("user=ann")), hits(0, entries("plan=x"))), ok, 1, ok, 4)
	}
	// What is looked at is how things stand after what the same call charges.
	expect(t, b.ask(t, hits(0, entries("user=ann")), entries("user=ann")), over, 0, ok, 0)
}

func TestShouldRateLimit_GivesBackNegativeHits(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{}, byPattern("user", 10, "descriptor.1"))
	back := hits(4, entries("user=ann"))
	back.IsNegativeHits = true
	expect(t, b.ask(t, hits(9, entries("user=ann"))), ok, 1)
	expect(t, b.ask(t, back), ok, 5)
	one := entries("user=ann")
	one.IsNegativeHits = true
	expect(t, b.ask(t, one), ok, 6)
}

func TestShouldRateLimit_CountsByLimitsThatCallersBring(t *testing.T) {
	t.Parallel()
	limited := func(n uint32, unit envoytype.RateLimitUnit, d *ratelimit.RateLimitDescriptor) *ratelimit.RateLimitDescriptor {
		d.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: unit}
		return d
	}
	const year, month = envoytype.RateLimitUnit_YEAR, envoytype.RateLimitUnit_MONTH

	// Where a domain has a rule for them, they count by themselves, whatever else matches.
	callers := sluice.Rule{
		Namespace: "shop", Name: "callers", Layer: "callers", Key: []sluice.Dimension{"descriptor.entries"}, Limits: perYear(1),
		Match: sluice.Match{Attributes: map[string]string{"descriptor.limit": "caller"}},
	}
	b := newBed(t, envoyrls.Options{}, byPattern("user", 2, "descriptor.1"), callers)
	expect(t, b.ask(t, limited(7, year, entries("user=ann")), limited(7, year, entries("other=x"))), ok, 6, ok, 6)
	expect(t, b.ask(t, limited(3, year, entries("user=ann")), entries("user=ann")), ok, 1, ok, 1)
	response := b.ask(t, limited(0, month, entries("user=ann")))
	expect(t, response, over, 0)
	if got := response.GetStatuses()[0].GetCurrentLimit().GetUnit(); got != pb.RateLimitResponse_RateLimit_MONTH {
		t.Errorf("unit of a limit of 0 is %v", got)
	}

	// Elsewhere they take the place of the limits that match.
	b = newBed(t, envoyrls.Options{}, byPattern("user", 2, "descriptor.1"))
	expect(t, b.ask(t, limited(7, year, entries("user=ann")), limited(7, year, entries("other=x"))), ok, 6, ok, 0)
	expect(t, b.ask(t, entries("user=ann")), ok, 0) // the usage so far is kept
	unknown := b.call(t, &pb.RateLimitRequest{Domain: "none", Descriptors: []*ratelimit.RateLimitDescriptor{limited(7, year, entries("user=ann"))}})
	expect(t, unknown, ok, 0)
}

func TestShouldRateLimit_TellsUnitsOfAllAlgorithms(t *testing.T) {
	t.Parallel()
	type unit = pb.RateLimitResponse_RateLimit_Unit
	const day = 24 * time.Hour
	for _, c := range []struct {
		limit sluice.Limit
		per   uint32
		unit  unit
		times uint32
	}{
		{sluice.PerSecond(5), 5, pb.RateLimitResponse_RateLimit_SECOND, 0},
		{sluice.Per(5, 10*time.Second), 5, pb.RateLimitResponse_RateLimit_SECOND, 10},
		{sluice.Per(5, 90*time.Minute), 5, pb.RateLimitResponse_RateLimit_MINUTE, 90},
		{sluice.Per(5, 14*day), 5, pb.RateLimitResponse_RateLimit_WEEK, 2},
		{sluice.Per(5, 30*day), 5, pb.RateLimitResponse_RateLimit_MONTH, 0},
		{sluice.Per(5, 365*day), 5, pb.RateLimitResponse_RateLimit_YEAR, 0},
		{sluice.Per(5, 60*day), 5, pb.RateLimitResponse_RateLimit_DAY, 60},
		{sluice.Per(5, 500*time.Millisecond), 5, pb.RateLimitResponse_RateLimit_UNKNOWN, 0},
		{sluice.Bucket(10, time.Second, 10), 10, pb.RateLimitResponse_RateLimit_SECOND, 0},
		{sluice.Bucket(10, time.Second, 20), 20, pb.RateLimitResponse_RateLimit_SECOND, 2},
		{sluice.Bucket(10, time.Second, 15), 15, pb.RateLimitResponse_RateLimit_UNKNOWN, 0}, // fills in 1.5 s
		{sluice.Limit{Algorithm: sluice.SlidingLog, Limit: 5, Window: time.Hour}, 5, pb.RateLimitResponse_RateLimit_HOUR, 0},
	} {
		b := newBed(t, envoyrls.Options{}, sluice.Rule{Namespace: "shop", Name: "r", Limits: []sluice.Limit{c.limit}})
		s := b.ask(t, entries("user=ann")).GetStatuses()[0]
		l := s.GetCurrentLimit()
		if l.GetRequestsPerUnit() != c.per || l.GetUnit() != c.unit || l.GetUnitMultiplier().GetValue() != c.times || s.GetLimitRemaining() != c.per-1 {
			t.Errorf("%s is told as %v, want %d per %d × %v with %d left", c.limit, s, c.per, c.times, c.unit, c.per-1)
		}
		if s.GetDurationUntilReset().GetSeconds() < 1 || s.GetDurationUntilReset().GetNanos() != 0 {
			t.Errorf("%s resets in %v, want whole seconds", c.limit, s.GetDurationUntilReset())
		}
	}
}

func TestShouldRateLimit_TellsRefusedClientsWhenTheyCanPass(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{}, sluice.Rule{Namespace: "shop", Name: "r", Limits: []sluice.Limit{sluice.Bucket(1, time.Hour, 2)}})
	expect(t, b.ask(t, entries("user=ann"), entries("user=ann")), ok, 1, ok, 0)
	response := b.ask(t, entries("user=ann"))
	expect(t, response, over, 0)
	// A unit is back in an hour; all of them in two.
	if got := response.GetStatuses()[0].GetDurationUntilReset().AsDuration(); got > time.Hour || got < time.Hour-time.Minute {
		t.Errorf("reset in %s, want about an hour", got)
	}
}

func TestShouldRateLimit_NeverRefusesByShadowRules(t *testing.T) {
	t.Parallel()
	shadow := byPattern("user", 1)
	shadow.Action = sluice.Shadow
	b := newBed(t, envoyrls.Options{}, shadow)
	expect(t, b.ask(t, entries("user=ann")), ok, 0)
	response := b.ask(t, entries("user=ann"))
	expect(t, response, ok, 0)
	if response.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit() != 1 {
		t.Errorf("%v does not tell the limit", response)
	}
}

func TestShouldRateLimit_AnswersWithoutLimits(t *testing.T) {
	t.Parallel()
	unlimited := byPattern("unlimited", 1)
	unlimited.Action, unlimited.Limits, unlimited.Label = sluice.Allow, nil, "unlimited"
	zero := byPattern("zero", 1)
	zero.Action, zero.Limits, zero.Response.RetryAfter = sluice.Block, nil, time.Hour
	b := newBed(t, envoyrls.Options{}, unlimited, zero, byPattern("user", 5))
	expect(t, b.ask(t, entries("unlimited=x"), entries("nobody=x"), entries()), ok, math.MaxUint32, ok, 0, ok, 0)
	expect(t, b.ask(t, entries("user=exempt"), entries("user=blocked")), ok, 0, over, 0)
	expect(t, b.call(t, &pb.RateLimitRequest{Domain: "none", Descriptors: []*ratelimit.RateLimitDescriptor{entries("user=ann")}}), ok, 0)
	response := b.ask(t, entries("zero=x"))
	expect(t, response, over, 0)
	if got := response.GetStatuses()[0].GetCurrentLimit(); got.GetUnit() != pb.RateLimitResponse_RateLimit_HOUR || got.GetRequestsPerUnit() != 0 {
		t.Errorf("a limit of 0 is told as %v", got)
	}
}

func TestShouldRateLimit_SeesNewRulesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{}, byPattern("user", 5))
	expect(t, b.ask(t, entries("user=ann"), entries("plan=x")), ok, 4, ok, 0)
	b.limiter.SetRules(compile(t, byPattern("plan", 7)))
	expect(t, b.ask(t, entries("user=ann"), entries("plan=x")), ok, 0, ok, 6)
}

func TestShouldRateLimit_SendsHeadersOfTheTightestDescriptor(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{Headers: httplimit.IETF}, byPattern("user", 10), byPattern("plan", 2))
	headers := func(r *pb.RateLimitResponse) string {
		var all []string
		for _, h := range r.GetResponseHeadersToAdd() {
			all = append(all, h.GetKey()+": "+h.GetValue())
		}
		return strings.Join(all, "\n")
	}
	got := headers(b.ask(t, entries("user=ann"), entries("plan=x")))
	if !strings.Contains(got, `ratelimit: "descriptor";r=1;t=`) || !strings.Contains(got, `ratelimit-policy: "descriptor";q=2;w=31536000`) {
		t.Errorf("headers are\n%s", got)
	}
	if got := headers(b.ask(t, entries("nobody=x"))); got != "" {
		t.Errorf("headers without a limit are\n%s", got)
	}
	b.ask(t, hits(8, entries("user=ann")), entries("plan=x"))
	if got := headers(b.ask(t, entries("user=ann"), entries("plan=x"))); !strings.Contains(got, "retry-after: ") {
		t.Errorf("headers of a refusal are\n%s", got)
	}
}

func TestShouldRateLimit_LabelsDecisionsMadeWithoutTheStore(t *testing.T) {
	t.Parallel()
	closed := byPattern("closed", 5)
	closed.OnStoreError = sluice.FallClosed
	b := newBed(t, envoyrls.Options{}, byPattern("user", 5), closed)
	if m := b.ask(t, entries("user=ann")).GetDynamicMetadata(); m != nil {
		t.Errorf("an exact decision carries %v", m)
	}
	b.redis.Kill()
	response := b.ask(t, entries("user=ann"), entries("closed=x"))
	if got := response.GetDynamicMetadata().GetFields()["sluice_mode"].GetStringValue(); got != "closed" || response.GetOverallCode() != over {
		t.Errorf("%v, want it refused and labelled closed", response)
	}
}

func TestShouldRateLimit_RefusesCallsThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	b := newBed(t, envoyrls.Options{}, byPattern("user", 5))
	call := func(domain string, ds ...*ratelimit.RateLimitDescriptor) *pb.RateLimitRequest {
		return &pb.RateLimitRequest{Domain: domain, Descriptors: ds}
	}
	many := make([]*ratelimit.RateLimitDescriptor, 10_000)
	for i := range many {
		many[i] = entries("user=ann")
	}
	noUnit := entries("user=ann")
	noUnit.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5}
	for _, c := range []struct {
		want string
		req  *pb.RateLimitRequest
	}{
		{"domain must not be empty", call("", entries("user=ann"))},
		{"descriptor list must not be empty", call("shop")},
		{"domain has 129 bytes", call(strings.Repeat("d", 129), entries("user=ann"))},
		{"10000 descriptors: the most is 32", call("shop", many...)},
		{"33 entries", call("shop", entries(strings.Split(strings.Repeat("a=b ", 32)+"a=b", " ")...))},
		{"a key has 129 bytes", call("shop", entries(strings.Repeat("k", 129)+"=v"))},
		{"a value has 1025 bytes: the most is 1024 (descriptor 2)", call("shop", entries("a=b"), entries("k="+strings.Repeat("v", 1025)))},
		{"hits_addend is 1000000001", call("shop", hits(1_000_000_001, entries("user=ann")))},
		{"limit.unit is UNKNOWN", call("shop", noUnit)},
	} {
		_, err := b.client.ShouldRateLimit(t.Context(), c.req)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	expect(t, b.ask(t, entries("user=ann")), ok, 4) // nothing was charged
}
