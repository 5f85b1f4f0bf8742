package envoyrls

import (
	"context"
	"errors"
	"fmt"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
)

// The most that a call may bring. All of it is hashed and matched, and larger ones are mistakes or attacks.
const (
	maxDescriptors = 32
	maxKey         = 128 // bytes, of a domain also
	maxValue       = 1024
	maxAddend      = 1_000_000_000 // which is what Envoy's API allows, too
)

// check refuses calls that cannot be answered, before anything is done about them.
func check(req *pb.RateLimitRequest) error {
	switch n := len(req.GetDescriptors()); {
	case req.GetDomain() == "":
		return invalid("rate limit domain must not be empty")
	case len(req.GetDomain()) > maxKey:
		return invalid("rate limit domain has %d bytes: the most is %d", len(req.GetDomain()), maxKey)
	case n == 0:
		return invalid("rate limit descriptor list must not be empty")
	case n > maxDescriptors:
		return invalid("%d descriptors: the most is %d", n, maxDescriptors)
	case req.GetHitsAddend() > maxAddend:
		return invalid("hits_addend is %d: the most is %d", req.GetHitsAddend(), maxAddend)
	}
	for i, d := range req.GetDescriptors() {
		if err := checkDescriptor(d); err != nil {
			return fmt.Errorf("%w (descriptor %d)", err, i+1)
		}
	}
	return nil
}

func checkDescriptor(d *ratelimit.RateLimitDescriptor) error {
	if n := len(d.GetEntries()); n > pattern.MaxDepth {
		return invalid("%d entries: the most is %d", n, pattern.MaxDepth)
	}
	if n := d.GetHitsAddend().GetValue(); n > maxAddend {
		return invalid("hits_addend is %d: the most is %d", n, maxAddend)
	}
	for _, e := range d.GetEntries() {
		if n := len(e.GetKey()); n > maxKey {
			return invalid("a key has %d bytes: the most is %d", n, maxKey)
		}
		if n := len(e.GetValue()); n > maxValue {
			return invalid("a value has %d bytes: the most is %d", n, maxValue)
		}
	}
	if limit := d.GetLimit(); limit != nil {
		if _, err := windowOf(limit); err != nil {
			return err
		}
	}
	return nil
}

// windowOf returns the window of a limit that the caller brought.
func windowOf(limit *ratelimit.RateLimitDescriptor_RateLimitOverride) (time.Duration, error) {
	window := time.Duration(0)
	if unit := limit.GetUnit(); unit != envoytype.RateLimitUnit_UNKNOWN {
		window = unitWindow(pb.RateLimitResponse_RateLimit_Unit(unit)) // the two enumerations have the same numbers
	}
	if window == 0 {
		return 0, invalid("limit.unit is %s: it must be one from SECOND to YEAR", limit.GetUnit())
	}
	times := int64(1)
	if m := limit.GetUnitMultiplier(); m != nil {
		times = int64(m.GetValue())
	}
	if most := int64(sluice.MaxWindow / window); times < 1 || times > most {
		return 0, invalid("limit.unit_multiplier is %d: it must be from 1 to %d for this unit", times, most)
	}
	return time.Duration(times) * window, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{sluice.ErrInvalidRequest}, args...)...)
}

// statusOf is the gRPC status of an error. Envoy takes any of them as the failure of the service, and lets the request
// pass unless it was told to deny.
func statusOf(err error) error {
	code := codes.Internal
	switch {
	case errors.Is(err, sluice.ErrInvalidRequest):
		code = codes.InvalidArgument
	case errors.Is(err, engine.ErrOverloaded), errors.Is(err, sluice.ErrUnavailable):
		code = codes.Unavailable
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, err.Error())
}
