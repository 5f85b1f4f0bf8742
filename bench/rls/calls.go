package main

import (
	"math/rand/v2"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// caller makes up calls that a configuration has something to say about, mostly.
type caller struct {
	*rand.Rand
	tree *tree
}

// call makes up a call of one to four descriptors.
func (c *caller) call() *pb.RateLimitRequest {
	req := &pb.RateLimitRequest{Domain: c.tree.Domain}
	for range 1 + c.IntN(4) {
		d := &ratelimit.RateLimitDescriptor{}
		c.follow(d, c.tree.Descriptors)
		c.disturb(d)
		req.Descriptors = append(req.Descriptors, d)
	}
	if c.IntN(10) == 0 {
		req.Descriptors = append(req.Descriptors, req.GetDescriptors()[0])
	}
	if c.IntN(100) == 0 {
		req.Domain = "unknown"
	}
	return req
}

// costly gives a call addends above 1, for all of it or by descriptor.
func (c *caller) costly(req *pb.RateLimitRequest) {
	req.HitsAddend = uint32(c.IntN(5))
	for _, d := range req.GetDescriptors() {
		if c.IntN(3) == 0 {
			d.HitsAddend = wrapperspb.UInt64(uint64(1 + c.IntN(6)))
		}
	}
}

// follow goes down the configuration by one branch, to its end or not.
func (c *caller) follow(d *ratelimit.RateLimitDescriptor, levels []level) {
	for len(levels) > 0 {
		l := &levels[c.IntN(len(levels))]
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: l.Key, Value: c.value(l.Value)})
		if l.RateLimit != nil && c.IntN(2) == 0 {
			return
		}
		levels = l.Descriptors
	}
}

// value makes up one that a level takes, or that only its neighbours take.
func (c *caller) value(of string) string {
	begin, wildcard := strings.CutSuffix(of, "*")
	switch n := c.IntN(10); {
	case n == 0:
		return someValues[c.IntN(len(someValues))]
	case n == 1 && c.IntN(4) == 0:
		return ""
	case of == "":
		return []string{"u1", "u2"}[c.IntN(2)]
	case wildcard:
		return begin + []string{"", "x", "y"}[c.IntN(3)]
	}
	return of
}

// disturb sometimes makes a descriptor fit less well: deeper, shallower, in another order.
func (c *caller) disturb(d *ratelimit.RateLimitDescriptor) {
	e := d.GetEntries()
	switch c.IntN(20) {
	case 0:
		d.Entries = append(e, &ratelimit.RateLimitDescriptor_Entry{Key: someKeys[c.IntN(len(someKeys))], Value: "a"})
	case 1:
		d.Entries = e[:len(e)-1]
	case 2:
		c.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] })
	}
}
