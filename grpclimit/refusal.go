package grpclimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

// ReasonRateLimited is the ErrorInfo reason of refusals.
const ReasonRateLimited = "RATE_LIMITED"

// Refusal returns the error of a refused call: RESOURCE_EXHAUSTED; UNAVAILABLE where a rule refuses because the counter
// store does not answer; PERMISSION_DENIED for a blocked subject. Its details are ErrorInfo with the decision's id,
// RetryInfo unless waiting cannot help, and QuotaFailure with the limits that refused, by their labels: no rule's name is
// in it, nor what other rules count by.
func Refusal(d *sluice.Decision, domain string) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{
		Reason:   ReasonRateLimited,
		Domain:   domain,
		Metadata: map[string]string{"decision": d.ID.String()},
	}}
	if d.RetryAfter != sluice.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	}
	if quota := quotaFailure(d); quota != nil {
		details = append(details, quota)
	}
	st := status.New(codeOf(d), messageOf(d))
	if with, err := st.WithDetails(details...); err == nil { // fails only for the code OK
		st = with
	}
	return st.Err()
}

// codeOf says in gRPC what the other doors say in HTTP.
func codeOf(d *sluice.Decision) codes.Code {
	switch httplimit.Status(d) {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	default:
		return codes.ResourceExhausted
	}
}

func messageOf(d *sluice.Decision) string {
	t := d.Tightest()
	switch {
	case t == nil && len(d.Results()) > 0:
		return cmp.Or(d.Results()[0].Rule.Response.Message, "such requests are refused")
	case t == nil:
		return "requests of this client are refused"
	case t.Rule.Response.Message != "":
		return t.Rule.Response.Message
	case t.Mode == sluice.Closed:
		return "quotas cannot be counted at the moment"
	case t.RetryAfter == sluice.Never:
		return fmt.Sprintf("the request costs more than the quota %q ever admits", t.Rule.Label)
	default:
		return fmt.Sprintf("the quota %q is spent: retry in %s", t.Rule.Label, roundUp(d.RetryAfter))
	}
}

// quotaFailure names what was violated; nil when it is no quota. A limit that could not be counted refuses without being
// violated.
func quotaFailure(d *sluice.Decision) *errdetails.QuotaFailure {
	var q errdetails.QuotaFailure
	results := d.Results()
	for i := range results {
		r := &results[i]
		if r.Allowed || !r.Enforced() || r.Limit.Limit == 0 || r.Mode == sluice.Closed {
			continue
		}
		q.Violations = append(q.Violations, &errdetails.QuotaFailure_Violation{
			Subject:     r.Rule.Label,
			Description: fmt.Sprintf("at most %d per %s", r.Limit.Limit, r.Limit.Window),
			QuotaId:     r.Rule.Label,
			QuotaMetric: "requests",
			QuotaValue:  r.Limit.Capacity(),
		})
	}
	if len(q.GetViolations()) == 0 {
		return nil
	}
	return &q
}

// metadataOf returns the header fields of HTTP by their names in gRPC.
func metadataOf(d *sluice.Decision, now time.Time) metadata.MD {
	h := make(http.Header, 4)
	httplimit.WriteHeaders(h, d, httplimit.IETF, now)
	md := make(metadata.MD, len(h)+1)
	for name, values := range h {
		if name != "Cache-Control" {
			md[strings.ToLower(name)] = values
		}
	}
	if !d.Allowed {
		pushback := "-1" // never: gRPC's word for it
		if d.RetryAfter != sluice.Never {
			pushback = strconv.FormatInt(roundUp(d.RetryAfter).Milliseconds(), 10)
		}
		md["grpc-retry-pushback-ms"] = []string{pushback}
	}
	return md
}

// roundUp goes to whole milliseconds.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// statusOf is the error of a call about which nothing was decided, or which ended while it was held. It does not repeat
// causes, which are not written for clients.
func statusOf(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the call was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "the deadline is too early for this call")
	case errors.Is(err, ErrKey), errors.Is(err, sluice.ErrInvalidRequest):
		return status.Error(codes.InvalidArgument, "the call cannot be attributed to a client")
	default:
		return status.Error(codes.Internal, "the call could not be decided about")
	}
}
