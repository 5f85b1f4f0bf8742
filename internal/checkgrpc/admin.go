package checkgrpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/engine"
)

// AdminEngine changes counters; see engine.Engine.
type AdminEngine interface {
	Credit(ctx context.Context, req sluice.Request) error
	Reset(ctx context.Context, req sluice.Request) error
}

// Admin answers sluice.v1.AdminService. Whoever serves it lets only operators in.
type Admin struct {
	sluicev1.UnimplementedAdminServiceServer

	engine AdminEngine
}

// NewAdmin returns what answers sluice.v1.AdminService.
func NewAdmin(engine AdminEngine) *Admin { return &Admin{engine: engine} }

// Register makes a gRPC server serve it.
func (a *Admin) Register(r grpc.ServiceRegistrar) { sluicev1.RegisterAdminServiceServer(r, a) }

// Refund gives back the request's cost to every counter that it would charge.
func (a *Admin) Refund(ctx context.Context, in *sluicev1.RefundRequest) (*sluicev1.RefundResponse, error) {
	req, err := requestOf(in.GetRequest())
	if err == nil {
		err = a.engine.Credit(ctx, req)
	}
	if err != nil {
		return nil, statusOf(err)
	}
	return &sluicev1.RefundResponse{}, nil
}

// Reset forgets every counter that the request would charge.
func (a *Admin) Reset(ctx context.Context, in *sluicev1.ResetRequest) (*sluicev1.ResetResponse, error) {
	req, err := requestOf(in.GetRequest())
	if err == nil {
		err = a.engine.Reset(ctx, req)
	}
	if err != nil {
		return nil, statusOf(err)
	}
	return &sluicev1.ResetResponse{}, nil
}

// requestOf reads a generated message, where nobody is in a hurry.
func requestOf(in *sluicev1.Request) (sluice.Request, error) {
	s := in.GetSubject()
	req := sluice.Request{
		Namespace: in.GetNamespace(),
		Subject: sluice.Subject{
			Tenant: s.GetTenant(),
			User:   s.GetUser(),
			APIKey: s.GetApiKey(),
			Tier:   s.GetTier(),
		},
		Route:      in.GetRoute(),
		Method:     in.GetMethod(),
		Attributes: in.GetAttributes(),
		Cost:       in.GetCost(),
	}
	addr, err := engine.Validate(&req, s.GetIp())
	req.Subject.IP = addr
	return req, err
}
