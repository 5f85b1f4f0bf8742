package checkgrpc

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
)

// statusOf turns an error into what callers read: nothing was decided, and why.
func statusOf(err error) error {
	switch {
	case errors.Is(err, sluice.ErrInvalidRequest):
		return invalidStatus(err)
	case errors.Is(err, engine.ErrOverloaded):
		return status.Error(codes.Unavailable, "this node has too many requests under way: ask another, or again later")
	case errors.Is(err, sluice.ErrUnavailable):
		return status.Error(codes.Unavailable, "the counter store does not answer: try again later")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the caller is gone")
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "the caller's deadline passed")
	default:
		return status.Error(codes.Internal, "the request could not be decided")
	}
}

func invalidStatus(err error) error {
	st := status.New(codes.InvalidArgument, err.Error())
	faults := engine.FaultsOf(err)
	if len(faults) == 0 {
		return st.Err()
	}
	details := &errdetails.BadRequest{}
	for _, f := range faults {
		details.FieldViolations = append(details.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: f.Field(), Description: f.Problem,
		})
	}
	if with, err := st.WithDetails(details); err == nil {
		st = with
	}
	return st.Err()
}
