package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/grpclimit"
	"github.com/sluicehq/sluice/memstore"
)

// behind serves gRPC's health service, as a service like any other, behind interceptors.
func behind(tb testing.TB, checker sluice.Checker, key grpclimit.KeyFunc, opts grpclimit.Options) grpc_health_v1.HealthClient {
	tb.Helper()
	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(checker, key, opts)),
		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(checker, key, opts)),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	return grpc_health_v1.NewHealthClient(dial(tb, listen(tb, server)))
}

func listen(tb testing.TB, server *grpc.Server) string {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Stop)
	return listener.Addr().String()
}

func dial(tb testing.TB, addr string) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return conn
}

func perKey(limits ...sluice.Limit) *sluice.Limiter {
	return sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(limits...), sluice.Options{Timeout: time.Second})
}

func twoADay() sluice.Limit {
	return sluice.Limit{Algorithm: sluice.FixedWindow, Limit: 2, Window: 24 * time.Hour}
}

func TestUnary_RefusesWithDetailsAndMetadata(t *testing.T) {
	t.Parallel()
	client := behind(t, perKey(twoADay()), grpclimit.ByPeer, grpclimit.Options{Domain: "shop.example"})
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		var header, trailer metadata.MD
		_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
		if status.Code(err) != want {
			t.Fatalf("call %d: %v, want %s", i+1, err, want)
		}
		md := header
		if want != codes.OK {
			md = trailer
		}
		if got := fmt.Sprint(md.Get("ratelimit-policy")); got != `["default";q=2;w=86400]` {
			t.Errorf("call %d: ratelimit-policy %s in %v", i+1, got, md)
		}
		if got, want := fmt.Sprint(md.Get("ratelimit")), fmt.Sprintf(`["default";r=%d;t=`, max(1-i, 0)); !strings.HasPrefix(got, want) {
			t.Errorf("call %d: ratelimit %s, want %s…", i+1, got, want)
		}
		if refused := want != codes.OK; refused != (len(md.Get("retry-after")) == 1) || refused != (len(md.Get("grpc-retry-pushback-ms")) == 1) {
			t.Errorf("call %d: %v", i+1, md)
		}
		if want != codes.OK {
			wantRefusal(t, err, md)
		}
	}
}

func wantRefusal(t *testing.T, err error, md metadata.MD) {
	t.Helper()
	var info *errdetails.ErrorInfo
	var retry *errdetails.RetryInfo
	var quota *errdetails.QuotaFailure
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			info = detail
		case *errdetails.RetryInfo:
			retry = detail
		case *errdetails.QuotaFailure:
			quota = detail
		}
	}
	if info.GetReason() != "RATE_LIMITED" || info.GetDomain() != "shop.example" || len(info.GetMetadata()["decision"]) != 32 {
		t.Errorf("error info %v", info)
	}
	wait := retry.GetRetryDelay().AsDuration()
	if wait <= 0 || wait > 24*time.Hour {
		t.Errorf("retry info %v", retry)
	}
	if pushback, err := time.ParseDuration(md.Get("grpc-retry-pushback-ms")[0] + "ms"); err != nil || pushback < wait || pushback > wait+time.Millisecond {
		t.Errorf("pushback %s, retry delay %s", pushback, wait)
	}
	if len(quota.GetViolations()) != 1 || quota.GetViolations()[0].GetQuotaId() != "default" {
		t.Errorf("quota failure %v", quota)
	}
	if strings.Contains(fmt.Sprint(status.Convert(err).Proto(), md), "per-key") {
		t.Errorf("the rule's name is told: %v %v", err, md)
	}
}

func TestStream_IsCountedWhenItOpens(t *testing.T) {
	t.Parallel()
	client := behind(t, perKey(twoADay()), grpclimit.ByMethod, grpclimit.Options{})
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		stream, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("stream %d: %v, want %s", i+1, err, want)
		}
	}
	// The unary method is counted by itself.
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
}

func TestRefusal_SaysWhatKindItIs(t *testing.T) {
	t.Parallel()
	// down never answers.
	down := downStore{}
	set := func(r sluice.Rule) *sluice.RuleSet {
		rules, faults := sluice.Compile([]sluice.Rule{r})
		for _, f := range faults {
			if !f.Warning {
				t.Fatal(f)
			}
		}
		return rules
	}
	limit := []sluice.Limit{twoADay()}
	for _, c := range []struct {
		name    string
		limiter *sluice.Limiter
		req     sluice.Request
		want    codes.Code
		retry   string // pushback
	}{
		{"closed", sluice.New(down, set(sluice.Rule{Name: "r", Limits: limit, OnStoreError: sluice.FallClosed}), sluice.Options{}), sluice.Request{}, codes.Unavailable, "1000"},
		{"blocked by list", perKey(limit...), sluice.Request{Subject: sluice.Subject{Blocked: &sluice.BlockedSubject{Reason: "abuse"}}}, codes.PermissionDenied, "-1"},
		{"blocked by rule", sluice.New(down, set(sluice.Rule{Name: "r", Action: sluice.Block}), sluice.Options{}), sluice.Request{}, codes.ResourceExhausted, "-1"},
		{"too dear", perKey(limit...), sluice.Request{Subject: sluice.Subject{User: "u"}, Cost: 3}, codes.ResourceExhausted, "-1"},
	} {
		client := behind(t, c.limiter, func(context.Context, string) (sluice.Request, error) { return c.req, nil }, grpclimit.Options{})
		var trailer metadata.MD
		_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&trailer))
		if status.Code(err) != c.want || fmt.Sprint(trailer.Get("grpc-retry-pushback-ms")) != "["+c.retry+"]" {
			t.Errorf("%s: %v, pushback %v, want %s, %s", c.name, err, trailer.Get("grpc-retry-pushback-ms"), c.want, c.retry)
		}
		for _, secret := range []string{"abuse", `"r"`} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the client reads %q", c.name, err)
			}
		}
	}
}

// downStore is a store that does not answer.
type downStore struct{}

func (downStore) Take(_ context.Context, groups [][]sluice.Charge) {
	for _, g := range groups {
		for i := range g {
			g[i].State = sluice.State{Err: sluice.ErrUnavailable}
		}
	}
}
func (s downStore) Peek(ctx context.Context, groups [][]sluice.Charge) { s.Take(ctx, groups) }
func (downStore) Give(context.Context, []sluice.Charge)                {}
func (downStore) Reset(context.Context, []sluice.Charge)               {}

func TestUnary_TellsTheModeWhenTheStoreIsDown(t *testing.T) {
	t.Parallel()
	limiter := sluice.New(downStore{}, sluice.PerKey(twoADay()), sluice.Options{})
	client := behind(t, limiter, grpclimit.ByPeer, grpclimit.Options{})
	var header metadata.MD
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header)); err != nil || fmt.Sprint(header.Get("sluice-mode")) != "[open]" {
		t.Errorf("%v, %v, want sluice-mode open", err, header)
	}
}

type checkerFunc func(context.Context, sluice.Request) (sluice.Decision, error)

func (f checkerFunc) Check(ctx context.Context, req sluice.Request) (sluice.Decision, error) {
	return f(ctx, req)
}

func TestUnary_HoldsThrottledCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := checkerFunc(func(context.Context, sluice.Request) (sluice.Decision, error) {
			return sluice.Decision{Allowed: true, Delay: 30 * time.Second}, nil
		})
		intercept := grpclimit.UnaryServerInterceptor(slow, grpclimit.ByMethod, grpclimit.Options{})
		call := func(ctx context.Context) (took time.Duration, err error) {
			began := time.Now()
			_, err = intercept(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/s/m"}, func(context.Context, any) (any, error) { return nil, nil })
			return time.Since(began), err
		}
		if took, err := call(t.Context()); err != nil || took != 30*time.Second {
			t.Errorf("after %s: %v, want 30s", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if took, err := call(ctx); status.Code(err) != codes.DeadlineExceeded || took != 0 {
			t.Errorf("deadline too early: after %s: %v, want DEADLINE_EXCEEDED at once", took, err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if took, err := call(ctx); status.Code(err) != codes.Canceled || took != time.Second {
			t.Errorf("cancelled: after %s: %v", took, err)
		}
	})
}

func TestUnary_TellsErrorsWithoutTheirCause(t *testing.T) {
	t.Parallel()
	secret := errors.New("secret")
	for _, c := range []struct {
		key, check error
		want       codes.Code
	}{
		{secret, nil, codes.InvalidArgument},
		{nil, fmt.Errorf("%w: %w", sluice.ErrInvalidRequest, secret), codes.InvalidArgument},
		{nil, secret, codes.Internal},
	} {
		checker := checkerFunc(func(context.Context, sluice.Request) (sluice.Decision, error) { return sluice.Decision{}, c.check })
		key := func(context.Context, string) (sluice.Request, error) { return sluice.Request{}, c.key }
		_, err := behind(t, checker, key, grpclimit.Options{}).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if status.Code(err) != c.want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %s", c, err, c.want)
		}
	}
}
