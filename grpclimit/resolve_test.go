package grpclimit_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// dialEither connects to the first of the addresses that takes connections, as behind one DNS name.
func dialEither(tb testing.TB, addrs ...string) *grpc.ClientConn {
	tb.Helper()
	r := manual.NewBuilderWithScheme("nodes")
	var state resolver.State
	for _, addr := range addrs {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: addr})
	}
	r.InitialState(state)
	conn, err := grpc.NewClient("nodes:///sluice", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return conn
}
