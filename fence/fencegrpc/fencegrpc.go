// Package fencegrpc guards a gRPC service: a call with the token of a lease that has ended, and
// whose resource was granted again, is refused, with both tokens.
//
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(fencegrpc.Unary(guard, resource)),
//		grpc.StreamInterceptor(fencegrpc.Stream(guard, resource)),
//	)
//
// The holder's side:
//
//	ctx = fencegrpc.With(ctx, h.Pass())
package fencegrpc

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/fence"
)

// A ResourceOf returns the resource that a call is about; empty: the call is not guarded.
// request is nil for streams.
type ResourceOf func(ctx context.Context, method string, request any) string

// With puts a pass into the calls that are made with the context, in the place of another that is there.
func With(ctx context.Context, pass fence.Pass) context.Context {
	h := http.Header{}
	pass.Set(h)
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = metadata.MD{}
	}
	for _, name := range []string{fence.TokenHeader, fence.FloorHeader, fence.ResourceHeader} {
		md.Delete(name)
		if h.Get(name) != "" {
			md.Set(name, h.Get(name))
		}
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// Unary guards calls with one answer.
func Unary(guard fence.Guard, resource ResourceOf) grpc.UnaryServerInterceptor {
	return func(
		ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (answer any, err error) {
		err = admit(ctx, guard, resource(ctx, info.FullMethod, request), func(ctx context.Context) (err error) {
			answer, err = handler(ctx, request)
			return err
		})
		return answer, err
	}
}

// Stream guards streams, from their beginning to their end.
func Stream(guard fence.Guard, resource ResourceOf) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := stream.Context()
		return admit(ctx, guard, resource(ctx, info.FullMethod, nil), func(ctx context.Context) error {
			return handler(server, &guarded{stream, ctx})
		})
	}
}

// guarded is a stream whose context ends when a newer holder comes.
type guarded struct {
	grpc.ServerStream
	ctx context.Context
}

func (g *guarded) Context() context.Context { return g.ctx }

func admit(ctx context.Context, guard fence.Guard, resource string, fn func(context.Context) error) error {
	if resource == "" {
		return fn(ctx)
	}
	pass, err := passOf(ctx)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	err = guard.Do(ctx, resource, pass, fn)
	if late := (*fence.LateError)(nil); errors.As(err, &late) {
		return status.Error(codes.FailedPrecondition, late.Error())
	}
	if mismatch := (*fence.MismatchError)(nil); errors.As(err, &mismatch) {
		return status.Error(codes.InvalidArgument, mismatch.Error())
	}
	return err
}

func passOf(ctx context.Context) (fence.Pass, error) {
	h := http.Header{}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, name := range []string{fence.TokenHeader, fence.FloorHeader, fence.ResourceHeader} {
		h[name] = md.Get(name)
	}
	return fence.PassOf(h)
}
