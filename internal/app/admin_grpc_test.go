package app_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

func TestAdmin_RefundsAndResetsOverGRPCForThoseWithTheToken(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	node := testnode.Start(t, testnode.Options{Config: fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n[limiter]\ntimeout = \"5s\"\n", redis.Addr()), Rules: `
[[rule]]
name   = "users"
key    = ["user"]
limits = [{ algorithm = "fixed_window", limit = 3, window = "365d" }]
`})
	conn, err := grpc.NewClient(node.Admin, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	admin := sluicev1.NewAdminServiceClient(conn)
	who := &sluicev1.Request{Subject: &sluicev1.Subject{User: "ann"}, Cost: 2}
	if _, err := admin.Refund(t.Context(), &sluicev1.RefundRequest{Request: who}); err == nil || status.Code(err) == codes.OK {
		t.Fatalf("without the token: got %v, want an error", err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+testnode.AdminToken)
	ann := question{user: "ann", method: "GET", route: "/"}
	for range 3 {
		askGRPC(t, node, ann)
	}
	if _, err := admin.Refund(ctx, &sluicev1.RefundRequest{Request: who}); err != nil {
		t.Fatal(err)
	}
	if v := askGRPC(t, node, ann); !v.allowed || v.remaining != 1 {
		t.Errorf("after a refund of 2: got %+v, want allowed with 1 left", v)
	}
	if _, err := admin.Reset(ctx, &sluicev1.ResetRequest{Request: who}); err != nil {
		t.Fatal(err)
	}
	if v := askGRPC(t, node, ann); v.remaining != 2 {
		t.Errorf("after a reset: got %+v, want 2 left", v)
	}
}
