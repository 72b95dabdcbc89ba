package door

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// A Witness is the engine as one request sees it. It knows which of the request's refusals the
// engine decided: those are in the journal by way of the log, and the door notes the others.
// It belongs to one goroutine.
type Witness struct {
	engine.Engine
	backend *Backend
	refusal *leasehold.Error
}

// Witness returns the engine for one request. While the server starts it has none, and notes
// nothing.
func (b *Backend) Witness() *Witness { return &Witness{Engine: b.Engine(), backend: b} }

// Do carries out a command.
func (w *Witness) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	answer, err := w.Engine.Do(ctx, command)
	w.Heard(err)
	return answer, err
}

// Heard takes note of what the engine decided about a command that was submitted for the request by Backend.Submit.
func (w *Witness) Heard(err error) { errors.As(err, &w.refusal) }

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

// Note puts a refusal in the journal if it is one that only the door knows of. Reads and
// renewals are kept only if they were made without right: writes says that it is neither.
// Outcome and Reason are filled in from the error where they are empty.
func (w *Witness) Note(err error, writes bool, r audit.Refusal) {
	if err == nil || w.Engine == nil || !w.Unnoted(err) || !writes && !errors.Is(err, leasehold.ErrDenied) {
		return
	}
	if r.Outcome == "" {
		r.Outcome = Coded(err).Code.String()
	}
	if r.Reason == "" {
		r.Reason = err.Error()
	}
	w.backend.Refused(r)
}

// Denied puts in the journal that somebody had no right to what it asked.
func (b *Backend) Denied(err error, r audit.Refusal) {
	if !errors.Is(err, leasehold.ErrDenied) {
		return
	}
	r.Reason = err.Error()
	b.Refused(r)
}
