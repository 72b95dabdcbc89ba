package engine

import (
	"context"
	"slices"

	"github.com/leasehold/leasehold/internal/core"
)

// A Submission is a command whose answer no goroutine waits for.
type Submission struct {
	// Ctx has the origin of the command and who asks for it. If it has ended when the command is submitted, nothing
	// happens; if it ends later, that changes nothing.
	Ctx     context.Context
	Command core.Command // nobody may change it any more

	// Done is called once, by any goroutine, with what Do would have returned. It must not block, so it
	// must not call Do or Read.
	Done func(core.Answer, error)
}

// ErrLeft is the error of a submission whose context had ended.
var ErrLeft = Unavailable("the request ended before it was taken: nothing happened")

// SubmitEach carries out a batch by an engine's Do, one after the other, in a goroutine of its own. It is for engines
// that wrap another one and look at each command.
func SubmitEach(do func(context.Context, core.Command) (core.Answer, error), batch []Submission) {
	batch = slices.Clone(batch)
	go func() {
		for _, s := range batch {
			if s.Ctx.Err() != nil {
				s.Done(core.Answer{}, ErrLeft)
				continue
			}
			s.Done(do(s.Ctx, s.Command))
		}
	}()
}
