package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// doorRules never forget within a test: windows last for years and buckets refill once a day.
const doorRules = `
[[rule]]
name   = "users"
key    = ["user"]
limits = [{ algorithm = "fixed_window", limit = 9, window = "365d" }]

[[rule]]
name   = "search"
match  = { routes = ["/search/*"], methods = ["GET"] }
key    = ["user", "route"]
limits = [{ algorithm = "token_bucket", limit = 12, window = "12d" }]
cost   = 5

[[rule]]
name   = "all-uploads"
match  = { routes = ["/upload"] }
limits = [{ algorithm = "sliding_log", limit = 6, window = "30d" }]

[[rule]]
name   = "candidate"
layer  = "shadow"
match  = { routes = ["/upload"] }
key    = ["user"]
limits = [{ limit = 1, window = "30d" }]
action = "shadow"

[[block]]
user   = "mallory"
reason = "abuse"

[[exemption]]
user   = "monitoring"
`

// question is one request as a client would make it.
type question struct{ user, method, route string }

// fifty is the same conversation for every door: several users, costs, a shared limit, blocked and exempt ones, and
// requests that no rule concerns.
func fifty() []question {
	var all []question
	users := []string{"ann", "bob", "mallory", "monitoring", ""}
	routes := []string{"/home", "/search/cats", "/upload", "/search/dogs", "/home"}
	for i := range 50 {
		q := question{user: users[i*7%11%len(users)], method: http.MethodGet, route: routes[i*3%len(routes)]}
		if i%4 == 3 {
			q.method = http.MethodPost
		}
		all = append(all, q)
	}
	return all
}

// verdict is what all doors must agree on; remaining is -1 where no limit is told.
type verdict struct {
	allowed   bool
	remaining int64
}

// door asks one question by one way in.
type door func(t *testing.T, n *testnode.Node, q question) verdict

func TestDoors_GiveTheSameVerdictsAndRemainingCounts(t *testing.T) {
	t.Parallel()
	doors := []struct {
		name string
		ask  door
	}{
		{"http", askHTTP},
		{"grpc", askGRPC},
		{"stream", askStream},
		{"rls", askRLS},
		{"rls json", askJSON},
		{"forward-auth", askForwardAuth},
		{"gateway", askGateway},
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	seen := map[string][]verdict{}
	for _, d := range doors {
		redis := testredis.Single(t, testredis.Options{})
		node := testnode.Start(t, testnode.Options{Rules: doorRules, Gateway: true, Config: fmt.Sprintf(`
[redis]
url = "redis://%s"
[limiter]
timeout = "5s"
[identity]
trusted_proxies = ["127.0.0.1/32"]
headers = { user = "X-User" }
[[gateway.upstream]]
name = "u"
url = "%s"
[[gateway.route]]
upstream = "u"
`, redis.Addr(), upstream.URL)})
		for _, q := range fifty() {
			seen[d.name] = append(seen[d.name], d.ask(t, node, q))
		}
	}
	want := seen["http"]
	allowed := 0
	for i, q := range fifty() {
		if want[i].allowed {
			allowed++
		}
		for _, d := range doors {
			if got := seen[d.name][i]; got != want[i] {
				t.Errorf("request %d %+v: %s says %+v, http says %+v", i, q, d.name, got, want[i])
			}
		}
	}
	if allowed < 10 || allowed > 40 || !slices.ContainsFunc(want, func(v verdict) bool { return v.remaining > 0 }) {
		t.Errorf("%d of 50 are allowed: the conversation shows nothing", allowed)
	}
}

func askHTTP(t *testing.T, n *testnode.Node, q question) verdict {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"subject": map[string]string{"user": q.user}, "route": q.route, "method": q.method})
	return fromHeaders(t, mustRequest(t, http.MethodPost, "http://"+n.HTTP+"/v1/check", string(body), "Content-Type", "application/json"))
}

func askForwardAuth(t *testing.T, n *testnode.Node, q question) verdict {
	t.Helper()
	return fromHeaders(t, mustRequest(t, http.MethodGet, "http://"+n.HTTP+"/v1/forward-auth", "",
		"X-User", q.user, "X-Forwarded-Method", q.method, "X-Forwarded-Uri", q.route+"?page=2"))
}

func askGateway(t *testing.T, n *testnode.Node, q question) verdict {
	t.Helper()
	return fromHeaders(t, mustRequest(t, q.method, "http://"+n.Gateway+q.route+"?page=2", "", "X-User", q.user))
}

func fromHeaders(t *testing.T, a answer) verdict {
	t.Helper()
	v := verdict{allowed: a.status == http.StatusOK, remaining: -1}
	if !v.allowed && a.status != http.StatusTooManyRequests && a.status != http.StatusForbidden {
		t.Fatalf("got status %d: %s", a.status, a.body)
	}
	if text := a.header.Get("X-Ratelimit-Remaining"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		v.remaining = n
	}
	return v
}

func dial(t *testing.T, n *testnode.Node) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(n.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (q question) proto() *sluicev1.Request {
	return &sluicev1.Request{Subject: &sluicev1.Subject{User: q.user}, Route: q.route, Method: q.method}
}

func askGRPC(t *testing.T, n *testnode.Node, q question) verdict {
	t.Helper()
	resp, err := sluicev1.NewLimiterServiceClient(dial(t, n)).Check(t.Context(), &sluicev1.CheckRequest{Request: q.proto()})
	if err != nil {
		t.Fatal(err)
	}
	return fromDecision(resp.GetDecision())
}

func askStream(t *testing.T, n *testnode.Node, q question) verdict {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := sluicev1.NewLimiterServiceClient(dial(t, n)).CheckStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&sluicev1.CheckStreamRequest{Id: 7, Requests: []*sluicev1.Request{q.proto()}}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return fromDecision(resp.GetReplies()[0].GetAnswers()[0].GetDecision())
}

// fromDecision finds the tightest limit as headers do: of those that can refuse, the one that did, or has the smallest share left.
func fromDecision(d *sluicev1.Decision) verdict {
	v := verdict{allowed: d.GetAllowed(), remaining: -1}
	share := 2.0
	for _, r := range d.GetResults() {
		if r.GetAction() == sluicev1.Action_ACTION_SHADOW || r.GetLimit() == 0 || r.GetAllowed() && !d.GetAllowed() {
			continue
		}
		if s := float64(r.GetRemaining()) / float64(r.GetLimit()); s < share {
			share, v.remaining = s, r.GetRemaining()
		}
	}
	return v
}

func (q question) descriptors() *rls.RateLimitRequest {
	d := &common.RateLimitDescriptor{}
	for _, e := range [][2]string{{"user", q.user}, {"route", q.route}, {"method", q.method}} {
		if e[1] != "" {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: e[0], Value: e[1]})
		}
	}
	return &rls.RateLimitRequest{Domain: "default", Descriptors: []*common.RateLimitDescriptor{d}}
}

func askRLS(t *testing.T, n *testnode.Node, q question) verdict {
	t.Helper()
	resp, err := rls.NewRateLimitServiceClient(dial(t, n)).ShouldRateLimit(t.Context(), q.descriptors())
	if err != nil {
		t.Fatal(err)
	}
	return fromStatus(resp.GetOverallCode(), resp.GetStatuses()[0])
}

func fromStatus(code rls.RateLimitResponse_Code, s *rls.RateLimitResponse_DescriptorStatus) verdict {
	v := verdict{allowed: code == rls.RateLimitResponse_OK, remaining: -1}
	if s.GetCurrentLimit() != nil {
		v.remaining = int64(s.GetLimitRemaining())
	}
	return v
}

func askJSON(t *testing.T, n *testnode.Node, q question) verdict {
	t.Helper()
	body, err := protojson.Marshal(q.descriptors())
	if err != nil {
		t.Fatal(err)
	}
	a := mustRequest(t, http.MethodPost, "http://"+n.HTTP+"/json", string(body))
	var resp rls.RateLimitResponse
	if err := protojson.Unmarshal([]byte(a.body), &resp); err != nil {
		t.Fatalf("status %d: %v in %s", a.status, err, a.body)
	}
	return fromStatus(resp.GetOverallCode(), resp.GetStatuses()[0])
}
