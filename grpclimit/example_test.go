package grpclimit_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/grpclimit"
	"github.com/sluicehq/sluice/memstore"
)

func ExampleUnaryServerInterceptor() {
	limiter := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerMinute(100)), sluice.Options{})
	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(limiter, grpclimit.ByPeer, grpclimit.Options{})),
		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(limiter, grpclimit.ByPeer, grpclimit.Options{})),
	)
	defer server.Stop()
	// register services and serve
}

func ExampleNewClient() {
	// Nothing listens there, so that the example shows what then happens.
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	client := grpclimit.NewClient(conn, grpclimit.ClientOptions{Timeout: 20 * time.Millisecond, Stream: true})
	defer client.Close()

	d, err := client.Check(context.Background(), sluice.Request{
		Subject: sluice.Subject{User: "u_42"}, Route: "/v1/search", Method: "GET",
	})
	fmt.Println(d.Allowed, d.Mode, err)
	// Output: true open <nil>
}
