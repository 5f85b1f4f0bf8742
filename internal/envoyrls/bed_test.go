package envoyrls_test

import (
	"net"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/envoyrls"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// bed is a door on a real Redis, reached as Envoy reaches it.
type bed struct {
	redis   *testredis.Server
	limiter *sluice.Limiter
	server  *envoyrls.Server
	client  pb.RateLimitServiceClient
}

func newBed(t *testing.T, opts envoyrls.Options, rules ...sluice.Rule) *bed {
	t.Helper()
	b := &bed{redis: testredis.Single(t, testredis.Options{})}
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{b.redis.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	b.limiter = sluice.New(redisstore.New(conn, redisstore.Options{}), compile(t, rules...), sluice.Options{Timeout: 5 * time.Second})
	b.server = envoyrls.New(engine.New(b.limiter, engine.Options{Directory: records{}}), b.limiter.Rules, opts)
	b.client = dial(t, b.server)
	return b
}

// records are what is known about subjects.
type records struct{}

func (records) Fill(_ string, s *sluice.Subject) {
	switch s.User {
	case "blocked":
		s.Blocked = &sluice.BlockedSubject{Reason: "abuse"}
	case "exempt":
		s.Exempt = true
	}
}

func compile(t *testing.T, rules ...sluice.Rule) *sluice.RuleSet {
	t.Helper()
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		t.Fatalf("rule: %v", f)
	}
	return set
}

func dial(t *testing.T, s *envoyrls.Server) pb.RateLimitServiceClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	s.Register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewRateLimitServiceClient(conn)
}

// ask sends a call in the domain "shop" and fails the test when there is no answer.
func (b *bed) ask(t *testing.T, descriptors ...*ratelimit.RateLimitDescriptor) *pb.RateLimitResponse {
	t.Helper()
	return b.call(t, &pb.RateLimitRequest{Domain: "shop", Descriptors: descriptors})
}

func (b *bed) call(t *testing.T, req *pb.RateLimitRequest) *pb.RateLimitResponse {
	t.Helper()
	response, err := b.client.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatalf("%v: %v", req, err)
	}
	if got, want := len(response.GetStatuses()), len(req.GetDescriptors()); got != want {
		t.Fatalf("%v: %d statuses, want %d", req, got, want)
	}
	return response
}

// entries makes a descriptor of "key=value" texts.
func entries(texts ...string) *ratelimit.RateLimitDescriptor {
	d := &ratelimit.RateLimitDescriptor{}
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func hits(n uint64, d *ratelimit.RateLimitDescriptor) *ratelimit.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

// perYear is a limit whose window does not end during a test, but in one second of a year.
func perYear(n int64) []sluice.Limit {
	return []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: n, Window: 365 * 24 * time.Hour}}
}

// byPattern is a rule for descriptors of a pattern.
func byPattern(text string, n int64, key ...sluice.Dimension) sluice.Rule {
	return sluice.Rule{
		Namespace: "shop", Name: text, Layer: "descriptor", Key: key, Limits: perYear(n),
		Match: sluice.Match{Attributes: map[string]string{"descriptor": text}},
	}
}

const (
	ok   = pb.RateLimitResponse_OK
	over = pb.RateLimitResponse_OVER_LIMIT
)

// expect compares codes and what remains, status by status, and the overall code.
func expect(t *testing.T, response *pb.RateLimitResponse, want ...any) {
	t.Helper()
	overall := ok
	for i, s := range response.GetStatuses() {
		code, left := want[2*i].(pb.RateLimitResponse_Code), want[2*i+1].(int)
		if s.GetCode() != code || s.GetLimitRemaining() != uint32(left) {
			t.Errorf("status %d is %v, want %v with %d left", i+1, s, code, left)
		}
		if code == over {
			overall = over
		}
	}
	if response.GetOverallCode() != overall {
		t.Errorf("overall code is %v, want %v", response.GetOverallCode(), overall)
	}
}
