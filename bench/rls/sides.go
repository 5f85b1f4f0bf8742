package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/internal/reference"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/envoyimport"
	"github.com/sluicehq/sluice/internal/envoyrls"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// sides are the two services, each on a Redis of its own.
type sides struct {
	redis   [2]*testredis.Server
	theirs  pb.RateLimitServiceClient
	ours    pb.RateLimitServiceClient
	limiter *sluice.Limiter
	notes   int
}

// newSides starts both with the same configurations, ours by way of the importer and a rules file.
func newSides(tb *testredis.Main, program string, configs []config) (*sides, error) {
	s := &sides{}
	for i := range s.redis {
		s.redis[i] = testredis.Single(tb, testredis.Options{})
	}
	files := map[string][]byte{}
	var imported []envoyimport.File
	for _, c := range configs {
		files[c.file] = c.text
		imported = append(imported, envoyimport.File{Name: c.file, Data: c.text})
	}
	service, err := reference.Start(tb, program, s.redis[0].Addr(), files)
	if err != nil {
		return nil, err
	}
	if s.theirs, err = dial(tb, service.GRPC); err != nil {
		return nil, err
	}
	doc, notes, err := envoyimport.Import(imported, envoyimport.Options{})
	if err != nil {
		return nil, err
	}
	s.notes = len(notes)
	rules, err := load(doc)
	if err != nil {
		return nil, err
	}
	return s, s.serve(tb, rules)
}

// load writes a document to a file's text and reads it again, as users do.
func load(doc ruledoc.Document) (*sluice.RuleSet, error) {
	var text bytes.Buffer
	if err := doc.WriteTOML(&text); err != nil {
		return nil, err
	}
	parsed, faults := ruledoc.Decode("imported.toml", ruledoc.TOML, text.Bytes())
	if len(faults) > 0 {
		return nil, fmt.Errorf("imported rules: %w", faults[0])
	}
	var rules []sluice.Rule
	for _, r := range parsed.Document.Rules {
		rule, err := r.ToRule()
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	set, reports := sluice.Compile(rules)
	for _, r := range reports {
		if !r.Warning {
			return nil, r
		}
	}
	return set, nil
}

// serve runs our side.
func (s *sides) serve(tb *testredis.Main, rules *sluice.RuleSet) error {
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{s.redis[1].Addr()}})
	if err != nil {
		return err
	}
	tb.Cleanup(conn.Close)
	// A decision that the store did not make would be a difference that says nothing about rules, so the deadline is long.
	s.limiter = sluice.New(redisstore.New(conn, redisstore.Options{}), rules, sluice.Options{Timeout: 5 * time.Second})
	server := grpc.NewServer()
	envoyrls.New(engine.New(s.limiter, engine.Options{}), s.limiter.Rules, envoyrls.Options{}).Register(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Stop)
	s.ours, err = dial(tb, listener.Addr().String())
	return err
}

func dial(tb *testredis.Main, address string) (pb.RateLimitServiceClient, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return pb.NewRateLimitServiceClient(conn), nil
}

// pair is what both sides answered to one call.
type pair struct {
	theirs, ours *pb.RateLimitResponse
	at           time.Time
}

// edge is how far from the end of a second calls keep.
const edge = 20 * time.Millisecond

// ask sends one call to both within one second, so that both count it in the same window. It returns false when the second
// ended meanwhile: then nothing is known, both are emptied, and the call is to be repeated.
func (s *sides) ask(ctx context.Context, req *pb.RateLimitRequest) (p pair, ok bool, err error) {
	p.at = time.Now()
	if rest := time.Second - time.Duration(p.at.Nanosecond()); rest < edge {
		<-time.After(rest + time.Millisecond)
		p.at = time.Now()
	}
	var theirErr, ourErr error
	p.theirs, theirErr = s.theirs.ShouldRateLimit(ctx, req)
	p.ours, ourErr = s.ours.ShouldRateLimit(ctx, req)
	if theirErr != nil {
		return p, false, fmt.Errorf("call %v: the reference: %w", req, theirErr)
	}
	if ourErr != nil {
		return p, false, fmt.Errorf("call %v: ours: %w", req, ourErr)
	}
	if time.Now().Unix() != p.at.Unix() {
		return p, false, s.empty()
	}
	return p, true, nil
}

// empty forgets all counters on both sides.
func (s *sides) empty() error {
	var errs []error
	for _, r := range s.redis {
		_, err := r.Do("FLUSHALL")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// plant replaces our rules by mutated ones, and returns what puts them back.
func (s *sides) plant(mutate func(rules []sluice.Rule) []sluice.Rule) (restore func()) {
	before := s.limiter.Rules()
	var rules []sluice.Rule
	for r := range before.Rules() {
		c := *r
		c.Limits = slices.Clone(r.Limits)
		rules = append(rules, c)
	}
	set, _ := sluice.Compile(mutate(rules))
	s.limiter.SetRules(set)
	return func() { s.limiter.SetRules(before) }
}
