package checkgrpc_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/checkgrpc"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// perUser has two limits: one that every user has, and one for everyone together.
var perUser = []sluice.Rule{
	{Name: "per-user", Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: 2, Window: 24 * time.Hour}}},
	{Name: "all", Layer: "all", Label: "everyone", Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: 1000, Window: 24 * time.Hour}}},
	{Name: "staff", Priority: 200, Match: sluice.Match{Tiers: []string{"staff"}}, Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{sluice.PerDay(9)}},
}

func engineOf(tb testing.TB, store sluice.Store, rules []sluice.Rule, opts engine.Options) *engine.Engine {
	tb.Helper()
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		if !f.Warning {
			tb.Fatal(f)
		}
	}
	return engine.New(sluice.New(store, set.WithRevision(7), sluice.Options{Timeout: 5 * time.Second}), opts)
}

// serve serves an engine on a port of its own and returns a connection to it.
func serve(tb testing.TB, e checkgrpc.Engine) (*grpc.ClientConn, *checkgrpc.Server, *grpc.Server) {
	tb.Helper()
	door, server := checkgrpc.New(e, checkgrpc.Options{}), grpc.NewServer(grpc.MaxRecvMsgSize(checkgrpc.MaxMessageSize))
	door.Register(server)
	if admin, ok := e.(checkgrpc.AdminEngine); ok {
		checkgrpc.NewAdmin(admin).Register(server)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return conn, door, server
}

func redisStore(tb testing.TB) sluice.Store {
	tb.Helper()
	conn, err := rueidisconn.OpenStore("redis://" + testredis.Single(tb, testredis.Options{}).Addr())
	if err != nil {
		tb.Fatal(err)
	}
	return conn
}

func asUser(name string) *sluicev1.Request {
	return &sluicev1.Request{Subject: &sluicev1.Subject{User: name}}
}

func TestService_DecidesTheSameInAllFormsOverRedis(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, redisStore(t), perUser, engine.Options{}))
	client := sluicev1.NewLimiterServiceClient(conn)

	check := func(user string) *sluicev1.Decision {
		r, err := client.Check(t.Context(), &sluicev1.CheckRequest{Request: asUser(user)})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetDecision()
	}
	batch := func(user string) *sluicev1.Decision {
		r, err := client.CheckBatch(t.Context(), &sluicev1.CheckBatchRequest{Requests: []*sluicev1.Request{asUser("other-" + user), asUser(user)}})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetAnswers()[1].GetDecision()
	}
	stream, err := client.CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	streamed := func(user string) *sluicev1.Decision {
		if err := stream.Send(&sluicev1.CheckStreamRequest{Id: 9, Requests: []*sluicev1.Request{asUser(user)}}); err != nil {
			t.Fatal(err)
		}
		r, err := stream.Recv()
		if err != nil || r.GetReplies()[0].GetId() != 9 {
			t.Fatalf("%v, %v", r, err)
		}
		return r.GetReplies()[0].GetAnswers()[0].GetDecision()
	}
	for name, ask := range map[string]func(string) *sluicev1.Decision{"check": check, "batch": batch, "stream": streamed} {
		for i, want := range []bool{true, true, false, false} {
			d := ask(name)
			left := int64(max(1-i, 0))
			r := d.GetResults()[1]
			if d.GetAllowed() != want || r.GetRemaining() != left || r.GetRule() != "per-user" || d.GetMode() != sluicev1.Mode_MODE_EXACT || d.GetRevision() != 7 {
				t.Errorf("%s %d: %v, want allowed %t with %d left", name, i+1, d, want, left)
			}
			if (d.GetRetryAfter() != nil) == want {
				t.Errorf("%s %d: allowed %t with retry_after %v", name, i+1, want, d.GetRetryAfter())
			}
		}
	}
}

func TestCheck_NamesEveryFaultyField(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, memstore.New(memstore.Options{}), perUser, engine.Options{}))
	client := sluicev1.NewLimiterServiceClient(conn)
	req := &sluicev1.Request{
		Cost:       -1,
		Subject:    &sluicev1.Subject{Ip: "192.0.2.1:80", User: strings.Repeat("u", 256)},
		Attributes: map[string]string{"long": strings.Repeat("x", 1025)},
	}
	_, err := client.Check(t.Context(), &sluicev1.CheckRequest{Request: req})
	st := status.Convert(err)
	if st.Code() != codes.InvalidArgument || len(st.Details()) != 1 {
		t.Fatalf("got %v, want INVALID_ARGUMENT with details", err)
	}
	var fields []string
	for _, v := range st.Details()[0].(*errdetails.BadRequest).GetFieldViolations() {
		fields = append(fields, v.GetField())
	}
	if got, want := fmt.Sprint(fields), "[attributes.long cost subject.user subject.ip]"; got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
}

func TestCheckBatch_AnswersInvalidRequestsByThemselves(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, memstore.New(memstore.Options{}), perUser, engine.Options{}))
	client := sluicev1.NewLimiterServiceClient(conn)
	bad := &sluicev1.Request{Subject: &sluicev1.Subject{Ip: "nowhere"}}
	r, err := client.CheckBatch(t.Context(), &sluicev1.CheckBatchRequest{Requests: []*sluicev1.Request{bad, asUser("a"), bad, asUser("a"), asUser("a"), bad}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range r.GetAnswers() {
		if len(a.GetFaults()) > 0 {
			got = append(got, a.GetFaults()[0].GetField())
		} else {
			got = append(got, fmt.Sprint(a.GetDecision().GetAllowed()))
		}
	}
	if want := "[subject.ip true subject.ip true false subject.ip]"; fmt.Sprint(got) != want {
		t.Errorf("answers %v, want %s", got, want)
	}
}

func TestCheckBatch_RefusesMoreThanAThousand(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, memstore.New(memstore.Options{}), perUser, engine.Options{}))
	client := sluicev1.NewLimiterServiceClient(conn)
	reqs := make([]*sluicev1.Request, 1001)
	for i := range reqs {
		reqs[i] = asUser(fmt.Sprint(i))
	}
	if _, err := client.CheckBatch(t.Context(), &sluicev1.CheckBatchRequest{Requests: reqs}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("1,001 requests: %v, want INVALID_ARGUMENT", err)
	}
	r, err := client.CheckBatch(t.Context(), &sluicev1.CheckBatchRequest{Requests: reqs[:1000]})
	if err != nil || len(r.GetAnswers()) != 1000 {
		t.Errorf("1,000 requests: %d answers, %v", len(r.GetAnswers()), err)
	}
}

func TestPeekAndExplain_ChargeNothing(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, memstore.New(memstore.Options{}), perUser, engine.Options{}))
	client := sluicev1.NewLimiterServiceClient(conn)
	for range 3 {
		p, err := client.Peek(t.Context(), &sluicev1.PeekRequest{Request: asUser("a")})
		if err != nil || !p.GetDecision().GetAllowed() || p.GetDecision().GetResults()[1].GetRemaining() != 2 {
			t.Fatalf("peek: %v, %v", p, err)
		}
		e, err := client.Explain(t.Context(), &sluicev1.ExplainRequest{Request: asUser("a")})
		if err != nil || !e.GetDecision().GetAllowed() || !strings.HasPrefix(e.GetReason(), "allowed: ") {
			t.Fatalf("explain: %v, %v", e, err)
		}
		var got []string
		for _, r := range e.GetRules() {
			got = append(got, fmt.Sprintf("%s in %s: %t", r.GetRule(), r.GetLayer(), r.GetApplies()))
			if !r.GetApplies() && r.GetWhy() == "" {
				t.Errorf("rule %s does not apply, and no word why", r.GetRule())
			}
		}
		if want := "[all in all: true per-user in user: true staff in user: false]"; fmt.Sprint(got) != want {
			t.Fatalf("rules %s, want %s", got, want)
		}
	}
}

func TestAdmin_RefundsAndResets(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, engineOf(t, redisStore(t), perUser, engine.Options{}))
	client, admin := sluicev1.NewLimiterServiceClient(conn), sluicev1.NewAdminServiceClient(conn)
	allowed := func() (n int) {
		for range 4 {
			r, err := client.Check(t.Context(), &sluicev1.CheckRequest{Request: asUser("a")})
			if err != nil {
				t.Fatal(err)
			}
			if r.GetDecision().GetAllowed() {
				n++
			}
		}
		return n
	}
	if n := allowed(); n != 2 {
		t.Fatalf("%d allowed, want 2", n)
	}
	if _, err := admin.Refund(t.Context(), &sluicev1.RefundRequest{Request: asUser("a")}); err != nil {
		t.Fatal(err)
	}
	if n := allowed(); n != 1 {
		t.Errorf("%d allowed after a refund, want 1", n)
	}
	if _, err := admin.Reset(t.Context(), &sluicev1.ResetRequest{Request: asUser("a")}); err != nil {
		t.Fatal(err)
	}
	if n := allowed(); n != 2 {
		t.Errorf("%d allowed after a reset, want 2", n)
	}
	_, err := admin.Reset(t.Context(), &sluicev1.ResetRequest{Request: &sluicev1.Request{Subject: &sluicev1.Subject{Ip: "x"}}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("reset of an invalid request: %v", err)
	}
}

// overloaded turns everything away.
type overloaded struct{ checkgrpc.Engine }

func (overloaded) Check(context.Context, sluice.Request) (sluice.Decision, error) {
	return sluice.Decision{}, engine.ErrOverloaded
}

func (overloaded) CheckAll(context.Context, []sluice.Request, []sluice.Decision) error {
	return engine.ErrOverloaded
}

func TestService_IsUnavailableWhenOverloaded(t *testing.T) {
	t.Parallel()
	conn, _, _ := serve(t, overloaded{})
	client := sluicev1.NewLimiterServiceClient(conn)
	if _, err := client.Check(t.Context(), &sluicev1.CheckRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("check: %v, want UNAVAILABLE", err)
	}
	if _, err := client.CheckBatch(t.Context(), &sluicev1.CheckBatchRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("batch: %v, want UNAVAILABLE", err)
	}
	stream, err := client.CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint64(3) { // the stream outlives it
		if err := stream.Send(&sluicev1.CheckStreamRequest{Id: id, Requests: []*sluicev1.Request{asUser("a")}}); err != nil {
			t.Fatal(err)
		}
		r, err := stream.Recv()
		if err != nil || r.GetReplies()[0].GetCode() != int32(codes.Unavailable) || r.GetReplies()[0].GetId() != id || r.GetReplies()[0].GetError() == "" {
			t.Fatalf("call %d: %v, %v, want the code of UNAVAILABLE", id, r, err)
		}
	}
}

func TestService_WorksWithInterceptors(t *testing.T) {
	t.Parallel()
	methods := make(chan string, 1)
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		methods <- info.FullMethod
		return next(ctx, in)
	}))
	checkgrpc.New(engineOf(t, memstore.New(memstore.Options{}), perUser, engine.Options{}), checkgrpc.Options{}).Register(server)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := sluicev1.NewLimiterServiceClient(conn).Check(t.Context(), &sluicev1.CheckRequest{Request: asUser("a")})
	if method := <-methods; err != nil || !r.GetDecision().GetAllowed() || method != "/sluice.v1.LimiterService/Check" {
		t.Errorf("%v, %v by %v", r, err, method)
	}
}
