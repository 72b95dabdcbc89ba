package engine

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
)

type originKey struct{}

// WithOrigin says where the commands come from that are done with a context. It is
// part of the context, and not of Do, because it also belongs to what a request does
// after its caller has left: the release of a lease that nobody waits for.
func WithOrigin(ctx context.Context, o leasehold.Origin) context.Context {
	return context.WithValue(ctx, originKey{}, &o)
}

// HasOrigin tells the commands whose origin is kept. Renewals are by far the most, and
// nobody asks later who sent them.
func HasOrigin(c core.Command) bool { return !command.IsRoutine(c) }

// OriginOf returns where a command comes from, and what is wrong with that. It is not
// cut to size: an audit that names half of somebody names somebody else.
func OriginOf(ctx context.Context) (leasehold.Origin, error) {
	o, err := OriginIn(ctx)
	if o == nil {
		return leasehold.Origin{}, err
	}
	return *o, nil
}

// OriginIn is OriginOf without a copy: nil if a context says nothing. Nobody may change it.
func OriginIn(ctx context.Context) (*leasehold.Origin, error) {
	o, ok := ctx.Value(originKey{}).(*leasehold.Origin)
	if !ok {
		return nil, nil
	}
	switch {
	case len(o.Actor) > leasehold.MaxName:
		return nil, tooLong("actor", o.Actor, leasehold.MaxName)
	case len(o.Address) > leasehold.MaxAddress:
		return nil, tooLong("address", o.Address, leasehold.MaxAddress)
	case len(o.Door) > leasehold.MaxDoor:
		return nil, tooLong("door", o.Door, leasehold.MaxDoor)
	}
	return o, nil
}

func tooLong(field, value string, most int) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
		"the %s of the request has %d bytes: at most %d are allowed", field, len(value), most)}
}
