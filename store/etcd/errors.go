package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold"
)

// failure returns what an error of etcd means. What is not an answer of etcd may have happened.
func (s *Store) failure(err error) error {
	var known *leasehold.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("etcd did not answer in time: %w", err)
	}
	if e := s.decided(err); e != nil {
		return e
	}
	return &leasehold.Error{Code: leasehold.Undecided, Message: "etcd did not answer: " + plain(err)}
}

// unopened returns what an error means that came before the first answer: nothing was asked for yet.
func (s *Store) unopened(err error, endpoints []string) error {
	failed := s.failure(err)
	switch {
	case errors.Is(err, context.Canceled):
		return failed
	case errors.Is(err, context.DeadlineExceeded):
		return &leasehold.Error{Code: leasehold.Unavailable,
			Message: "etcd cannot be reached: no answer from " + strings.Join(endpoints, ", ")}
	case errors.Is(failed, leasehold.ErrUndecided):
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "etcd cannot be reached: " + plain(err)}
	}
	return failed
}

// decided returns the error if etcd, or the driver before it sent anything, refused the request.
func (s *Store) decided(err error) error {
	code, message := leasehold.Code(0), ""
	switch text := plain(err); {
	case is(err, rpctypes.ErrPermissionDenied):
		code, message = leasehold.Denied, fmt.Sprintf(
			"etcd denied it: the user's role needs readwrite on all keys below %s: "+
				"etcdctl role grant-permission ROLE --prefix=true readwrite '%s'", s.keys.root, s.keys.root)
	case is(err, rpctypes.ErrAuthFailed), is(err, rpctypes.ErrUserEmpty), is(err, rpctypes.ErrUserNotFound),
		is(err, rpctypes.ErrInvalidAuthToken), is(err, rpctypes.ErrRoleNotFound):
		code, message = leasehold.Denied,
			"etcd did not accept the user name and password: put them in the address, as in etcd://user:password@host"
	case is(err, rpctypes.ErrNoSpace):
		code, message = leasehold.Unavailable,
			"etcd's database is full: compact and defragment it, then run: etcdctl alarm disarm"
	case is(err, rpctypes.ErrTooManyRequests):
		code, message = leasehold.Unavailable, "etcd has too many requests: try again"
	case is(err, rpctypes.ErrRequestTooLarge):
		code, message = leasehold.Invalid,
			"the request is larger than etcd allows (--max-request-bytes): use a smaller value"
	case unsent(err):
		code, message = leasehold.Unavailable, "etcd cannot be reached: "+text
	default:
		return nil
	}
	return &leasehold.Error{Code: code, Message: message}
}

// is compares an error of the driver with one of etcd's; some come as a status, some as an EtcdError.
func is(err, target error) bool {
	return errors.Is(err, target) || plain(err) == plain(target)
}

// unsent reports whether a request was never sent, because there was no connection.
func unsent(err error) bool {
	text := plain(err)
	return status.Code(err) == codes.Unavailable && (strings.Contains(text, "connection refused") ||
		strings.Contains(text, "Error while dialing") || strings.Contains(text, "no such host"))
}

// plain returns the text of an error without the frame of gRPC.
func plain(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// leaseGone reports whether a request named an etcd lease that has ended.
func leaseGone(err error) bool { return is(err, rpctypes.ErrLeaseNotFound) }

func lost(id, resource string, m *mark) error {
	message := fmt.Sprintf("lease %s on %s has ended: acquire it again under another id", id, resource)
	switch e := m.ending(id); e.How {
	case leasehold.ByBreak:
		message = fmt.Sprintf("lease %s on %s was broken by %s: %s", id, resource, e.By, e.Reason)
	case leasehold.Released:
		message = fmt.Sprintf("lease %s on %s was released: acquire it again under another id", id, resource)
	case leasehold.ByTTL:
		message = fmt.Sprintf("lease %s on %s has expired: acquire it again under another id", id, resource)
	}
	return &leasehold.Error{Code: leasehold.Lost, Message: message}
}
