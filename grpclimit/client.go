package grpclimit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
)

// Client asks a sluice service. It is a sluice.Checker, so the middlewares of httplimit and the interceptors of this
// package work with it as with a limiter in the process. It is safe for concurrent use.
type Client struct {
	api    sluicev1.LimiterServiceClient
	opts   ClientOptions
	stream *streamer // nil without one
}

// ClientOptions tune a Client. The zero value works.
type ClientOptions struct {
	// Timeout bounds every call, whatever the service does; a caller's earlier deadline bounds it further. Default 50 ms.
	Timeout time.Duration
	// Fallback decides while the service does not answer, such as a limiter in this process with a memstore and a share of
	// the limits. Its decisions keep their mode. Default: none, and everything passes, with the mode Open and the cause in
	// Decision.StoreErr.
	Fallback sluice.Checker
	// Stream sends calls over one long-lived stream, and those that come together in one message: several times cheaper
	// for both sides at high rates. All calls then go to the node that took the stream. It opens with the first call;
	// Close ends it. Default false.
	Stream bool
}

// NewClient returns a client that asks over a connection, which stays the caller's. It starts nothing.
func NewClient(conn grpc.ClientConnInterface, opts ClientOptions) *Client {
	if opts.Timeout <= 0 {
		opts.Timeout = 50 * time.Millisecond
	}
	c := &Client{api: sluicev1.NewLimiterServiceClient(conn), opts: opts}
	if opts.Stream {
		c.stream = newStreamer(c.api)
	}
	return c
}

// Close ends the stream. Calls under way, and later ones, go as if the service did not answer. It does not close the
// connection.
func (c *Client) Close() error {
	if c.stream != nil {
		c.stream.close()
	}
	return nil
}

// Check asks the service. An error means that the request is invalid or ctx is done; when the service does not answer
// within the timeout, or not sensibly, Fallback decides. Calls are not repeated, because the service may have charged
// them: one that was given up may so have been counted.
//
// Request.Refundable has no effect: receipts stay with the service. A request whose Subject has Exempt, Blocked or
// Overrides is invalid: those are on record with the service.
func (c *Client) Check(ctx context.Context, req sluice.Request) (sluice.Decision, error) {
	in, err := messageFor(&req)
	if err != nil {
		return sluice.Decision{}, err
	}
	within, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	d, err := c.ask(within, in)
	switch {
	case err == nil:
		return d, nil
	case ctx.Err() != nil:
		return sluice.Decision{}, ctx.Err()
	case status.Code(err) == codes.InvalidArgument:
		return sluice.Decision{}, fmt.Errorf("%w: %s", sluice.ErrInvalidRequest, status.Convert(err).Message())
	}
	return c.fallBack(ctx, req, fmt.Errorf("%w: ask the sluice service: %w", sluice.ErrUnavailable, err))
}

func (c *Client) ask(ctx context.Context, in *sluicev1.Request) (sluice.Decision, error) {
	if c.stream != nil {
		return c.stream.ask(ctx, in)
	}
	out, err := c.api.Check(ctx, &sluicev1.CheckRequest{Request: in})
	if err != nil {
		return sluice.Decision{}, err
	}
	return decisionOf(out.GetDecision())
}

func (c *Client) fallBack(ctx context.Context, req sluice.Request, cause error) (sluice.Decision, error) {
	if c.opts.Fallback != nil {
		d, err := c.opts.Fallback.Check(ctx, req)
		if err == nil && d.StoreErr == nil {
			d.StoreErr = cause
		}
		return d, err
	}
	d := sluice.Decision{Allowed: true, Mode: sluice.Open, Cost: max(req.Cost, 1), StoreErr: cause}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	_ = d.ID.UnmarshalText(hex.AppendEncode(nil, id[:]))
	return d, nil
}
