// Package engine is the contract between those who ask (the doors) and whatever
// orders and keeps commands: enginetest says what is promised, memory and cluster
// keep it.
package engine

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
)

// An Engine puts commands in one order, keeps them, and applies them to a state.
// Its methods may be called from any goroutine.
type Engine interface {
	// Do returns the answer to a command once it is durable. An
	// error is always a *leasehold.Error: the command's own refusal, Unavailable if
	// nothing happened, or Undecided if nobody can tell, which is also what a
	// caller gets whose context ended in the meantime. Where the command comes from is
	// in the context too, and who asks for it: see WithOrigin and WithAsker. The command is the engine's from then
	// on, and nobody may change it, not even after the answer.
	Do(ctx context.Context, command core.Command) (core.Answer, error)

	// Submit puts commands into the queue, in this order and together, so that they share a write if
	// they can. It does not wait for them, but it may carry them out itself, and then takes as long as that does; it
	// may call Done of some before it returns. The slice is the caller's again then. A command that names a large value
	// may come after those behind it.
	Submit(batch []Submission)

	// Read calls fn with a state that has every command whose answer anybody had
	// before Read was called. The view is good until fn returns, and nothing else
	// is applied in the meantime: fn must be quick and keep no part of the view
	// itself. In a context of WithStale the state may lack the newest commands.
	Read(ctx context.Context, fn func(core.View)) error

	// Level returns the level of the rules by which this node's state decides. What needs a
	// higher one, Do refuses.
	Level() core.Level

	// Feed tells what happens, on this node, in the order of the log.
	Feed() *Feed

	// Journal has what was done, by whom, and who held what: everything whose answer
	// anybody had. Nil: this engine keeps none.
	Journal() audit.Book
}

// A Warner is an engine that knows what somebody should look at although it works: an Engine
// may be one.
type Warner interface {
	// Warnings returns one sentence for each.
	Warnings() []string
}

// Unavailable is the error of an engine that did nothing.
func Unavailable(message string) error {
	return &leasehold.Error{Code: leasehold.Unavailable, Message: message}
}

// Undecided is the error of an engine that cannot know whether it did something.
func Undecided(message string) error {
	return &leasehold.Error{Code: leasehold.Undecided, Message: message}
}

// Refused is the error of an engine that does not do what an operator or a server asks for.
func Refused(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(format, args...)}
}

// Decided turns an answer into what Do returns.
func Decided(answer core.Answer) (core.Answer, error) {
	if answer.Err != nil {
		return core.Answer{}, answer.Err
	}
	return answer, nil
}
