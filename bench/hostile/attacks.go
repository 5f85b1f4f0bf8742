package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/gateway/smuggle"
	"github.com/sluicehq/sluice/internal/testnode"
)

// attacks are clients that do not behave.
type attacks struct {
	prepared

	node    *testnode.Node
	sent    atomic.Int64
	slowest atomic.Int64 // slow connections that were open together

	mu    sync.Mutex
	wrong []string
}

// prepared is what attackers made ahead, so that their own work is not what the good wait for.
type prepared struct {
	huge        []byte // a request with a header of 1 MB
	descriptors []byte // a call with 10,000 descriptors
	cases       []smuggle.Case
	conn, raw   *grpc.ClientConn
}

// attackEvery is the pace of each kind of attack: enough to be noticed by a node that cannot defend itself, and little
// enough that attacker and node, on the same two cores, do not simply starve each other.
const attackEvery = 100 * time.Millisecond

func newAttacks(node *testnode.Node) (*attacks, error) {
	a := &attacks{node: node}
	a.huge = fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: x\r\nX-Huge: %s\r\n\r\n", strings.Repeat("x", 1<<20))
	req := &pb.RateLimitRequest{Domain: "default"}
	for i := range 10_000 {
		req.Descriptors = append(req.Descriptors, &common.RateLimitDescriptor{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: fmt.Sprint(i)}},
		})
	}
	var err error
	if a.descriptors, err = proto.Marshal(req); err != nil {
		return nil, err
	}
	a.cases = smuggle.Corpus()
	if a.conn, err = a.dial(); err != nil {
		return nil, err
	}
	a.raw, err = a.dial(grpc.WithDefaultCallOptions(grpc.ForceCodecV2(noise{})))
	return a, err
}

// start begins all attacks at once, when the slow connections are open; the function it returns ends them.
func (a *attacks) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	conns := a.openSlow(ctx)
	wait.Go(func() { a.drip(ctx, conns) })
	for _, attack := range []func(context.Context) error{
		a.hugeHeader, a.badJSON, a.hugeBody, a.manyDescriptors, a.badProtobuf, a.smuggleOne, a.badRules,
	} {
		wait.Go(func() {
			tick := time.NewTicker(attackEvery)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				a.sent.Add(1)
				if err := attack(ctx); err != nil && ctx.Err() == nil {
					a.note(err)
				}
			}
		})
	}
	return func() {
		cancel()
		wait.Wait()
		a.node.WriteRules(rules)
	}
}

func (a *attacks) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.wrong) < 20 {
		a.wrong = append(a.wrong, err.Error())
	}
}

// unexpected tells of attacks that were answered as if they were fine.
func (a *attacks) unexpected() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrong
}

// openSlow opens connections that begin a header and do not end it.
func (a *attacks) openSlow(ctx context.Context) (conns []net.Conn) {
	for i := range slow {
		addr := a.node.HTTP
		if i%2 == 1 {
			addr = a.node.Gateway
		}
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		if err != nil {
			break
		}
		conns = append(conns, c)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	}
	a.slowest.Store(max(a.slowest.Load(), int64(len(conns))))
	return conns
}

// drip sends a byte on each of them now and then.
func (a *attacks) drip(ctx context.Context, conns []net.Conn) {
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if len(conns) > 0 {
				_, _ = io.WriteString(conns[i%len(conns)], "x") // closed ones are what we hope for
			}
		}
	}
}

// hugeHeader sends a megabyte of header.
func (a *attacks) hugeHeader(ctx context.Context) error {
	addr := []string{a.node.HTTP, a.node.Gateway, a.node.Admin}[rand.IntN(3)]
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil // turned away at the door
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = c.Write(a.huge)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil // closed on us, which is an answer
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 400 {
		return fmt.Errorf("a header of 1 MB: %s", resp.Status)
	}
	return nil
}

// post expects a refusal by the client's fault.
func (a *attacks) post(ctx context.Context, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.node.HTTP+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil //nolint:nilerr // closed on us, which is an answer
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode < 400 || resp.StatusCode >= 500 {
		return fmt.Errorf("%s with %.60q: %s", path, body, resp.Status)
	}
	return nil
}

var badBodies = []string{
	"", "{", "[]", "null", `"x"`, `{"subject":{"user":1}}`, `{"route":"/a"}{"route":"/b"}`, `{"cost":-1}`, `{"cost":1e99}`, `{"unknown":true}`,
	`{"subject":{"ip":"not an address"}}`, "{\"route\":\"\x00\"}", "{\"route\":\"\xff\"}", strings.Repeat("[", 10_000), `{"attributes":{"":""}}`,
}

func (a *attacks) badJSON(ctx context.Context) error {
	body := []byte(badBodies[rand.IntN(len(badBodies))])
	for _, path := range []string{"/v1/check", "/v1/check/batch", "/json"} {
		if path == "/json" && string(body) == "" {
			continue
		}
		if err := a.post(ctx, path, body); err != nil {
			return err
		}
	}
	return nil
}

func (a *attacks) hugeBody(ctx context.Context) error {
	return a.post(ctx, "/v1/check", []byte(`{"route":"`+strings.Repeat("x", 1<<20)+`"}`))
}

// manyDescriptors asks about ten thousand at once.
func (a *attacks) manyDescriptors(ctx context.Context) error {
	if a.conn.Invoke(ctx, pb.RateLimitService_ShouldRateLimit_FullMethodName, a.descriptors, nil, grpc.ForceCodecV2(noise{})) == nil {
		return errors.New("10,000 descriptors were answered")
	}
	return nil
}

func (a *attacks) dial(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(a.node.GRPC, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// noise is a codec that sends bytes as they are, and random ones for nil.
type noise struct{}

func (noise) Name() string { return "proto" }

func (noise) Marshal(v any) (mem.BufferSlice, error) {
	if text, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(text)}, nil
	}
	text := make([]byte, rand.IntN(2000))
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	return mem.BufferSlice{mem.SliceBuffer(text)}, nil
}

func (noise) Unmarshal(mem.BufferSlice, any) error { return nil }

// badProtobuf sends noise to every method. Some noise is a message by chance, so that any answer will do.
func (a *attacks) badProtobuf(ctx context.Context) error {
	for _, method := range []string{
		pb.RateLimitService_ShouldRateLimit_FullMethodName, sluicev1.LimiterService_Check_FullMethodName,
		sluicev1.LimiterService_CheckBatch_FullMethodName, sluicev1.LimiterService_Peek_FullMethodName, sluicev1.LimiterService_Explain_FullMethodName,
	} {
		_ = a.raw.Invoke(ctx, method, nil, nil)
	}
	stream, err := a.raw.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, sluicev1.LimiterService_CheckStream_FullMethodName)
	if err == nil {
		_ = stream.SendMsg(nil)
		_ = stream.CloseSend()
		_ = stream.RecvMsg(nil)
	}
	return nil
}

func (a *attacks) smuggleOne(ctx context.Context) error {
	_, err := a.cases[rand.IntN(len(a.cases))].Send(ctx, a.node.Gateway)
	return err
}

// badRules breaks the rules file, which changes nothing: the last good rules stay in force.
func (a *attacks) badRules(context.Context) error {
	a.node.WriteRules([]string{"[[rule", "rule = 7", "[[rule]]\nname = \"x\"\nlimits = [{ limit = -1 }]", strings.Repeat("[[rule]]\n", 1000), "\x00\xff"}[rand.IntN(5)])
	return nil
}
