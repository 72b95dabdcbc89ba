package etcd

import (
	"context"
	"errors"
	"net/http"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// Clients tell errors apart by their text, so what etcd has a text for is said in it, word for word.

// statusOf returns an error as clients are told it.
func (c *call) statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, told := status.FromError(err); told {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return rpctypes.ErrGRPCDeadlineExceeded
	case errors.Is(err, context.Canceled):
		return rpctypes.ErrGRPCCanceled
	case door.StatusOf(err, 0) == http.StatusUnauthorized:
		return c.unproven(err)
	}
	return c.coded(door.Coded(err))
}

// unproven tells that a credential is missing or was refused. The text decides what clientv3 does: after "invalid auth
// token" it logs in and tries again, over and over, which helps only those who sent a token.
func (c *call) unproven(err error) error {
	switch {
	case door.Anonymous(err):
		return rpctypes.ErrGRPCUserEmpty
	case c != nil && secretOf(c.ctx) == "": // a certificate that no rule knows
		return rpctypes.ErrGRPCPermissionDenied
	}
	return rpctypes.ErrGRPCInvalidAuthToken
}

// coded tells an error by its code. What a code means for one request in particular, that request says itself.
func (c *call) coded(e *leasehold.Error) error {
	switch e.Code {
	case leasehold.Held, leasehold.Lost, leasehold.Refused:
		return status.Error(codes.FailedPrecondition, e.Message)
	case leasehold.NotFound:
		return status.Error(codes.NotFound, e.Message)
	case leasehold.Invalid:
		return status.Error(codes.InvalidArgument, e.Message)
	case leasehold.Denied:
		return rpctypes.ErrGRPCPermissionDenied
	case leasehold.Limited:
		return rpctypes.ErrGRPCRequestTooManyRequests
	case leasehold.Unavailable:
		// Watches and keep-alives of clientv3 end for good after "no leader", so only those are told who asked to be.
		if c != nil && c.stream && !c.needsLeader {
			return status.Error(codes.Unavailable, e.Message)
		}
		return rpctypes.ErrGRPCNoLeader
	case leasehold.Undecided:
		return rpctypes.ErrGRPCTimeout
	}
	return status.Error(codes.Internal, e.Message)
}

// codeOf returns in our words what a client was told, for metrics.
func codeOf(err error) leasehold.Code {
	switch status.Code(err) {
	case codes.NotFound:
		return leasehold.NotFound
	case codes.PermissionDenied, codes.Unauthenticated:
		return leasehold.Denied
	case codes.ResourceExhausted:
		return leasehold.Limited
	case codes.Unavailable:
		if errors.Is(err, rpctypes.ErrGRPCTimeout) {
			return leasehold.Undecided
		}
		return leasehold.Unavailable
	case codes.FailedPrecondition:
		return leasehold.Refused
	case codes.Canceled, codes.DeadlineExceeded, codes.Internal:
		return leasehold.Undecided
	}
	return leasehold.Invalid
}

// tooLarge is what a client is told whose request would be more than one command can carry.
func tooLarge() error { return rpctypes.ErrGRPCRequestTooLarge }

// noLease tells, of a request that names a lease, that there is none.
func noLease(err error) error {
	if errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost) {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	return err
}
