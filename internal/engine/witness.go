package engine

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A Witness is an engine as one request sees it. It knows which of the request's refusals the
// engine decided: those are in the journal by way of the log, and the door notes the others.
type Witness struct {
	Engine
	refusal *leasehold.Error
}

// Do carries out a command.
func (w *Witness) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	answer, err := w.Engine.Do(ctx, command)
	errors.As(err, &w.refusal)
	return answer, err
}

// Unnoted reports whether an error is a refusal that the journal keeps, and that only the
// door knows of. Errors of requests that are wrong in themselves, or that came when the server
// could not take them, are not kept.
func (w *Witness) Unnoted(err error) bool {
	var e *leasehold.Error
	if !errors.As(err, &e) || e == w.refusal {
		return false
	}
	switch e.Code {
	case leasehold.Held, leasehold.Lost, leasehold.NotFound, leasehold.Refused, leasehold.Denied:
		return true
	}
	return false
}
