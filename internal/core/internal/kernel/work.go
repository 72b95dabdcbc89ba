package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/command"
)

// Nothing that is asked of a state may hold it for long, whatever is in it: everybody else
// waits meanwhile, and a renewal that waits too long costs a lease. Work is therefore counted,
// in units that take about a microsecond on a small machine. It is never timed: all nodes must
// come to the same count, or they would put off different things and no longer agree.
//
// An entry of the log has a budget. When it is spent, what can be done later
// becomes a chore, which ticks get done; a command that has not begun yet is answered with
// Unavailable, which says that nothing happened and that it can be sent again. Renewals and
// releases are always carried out.

const (
	// maxWork is the budget of an entry. One command may go beyond it by as much again.
	maxWork = 4096
	// MaxReadWork is how much work one read does. What would need more is cut short, or
	// refused where it cannot be.
	MaxReadWork = 4096
)

// What things cost.
const (
	LookCost   = 1  // to look at one thing
	beginCost  = 1  // a command
	grantCost  = 4  // of a lease
	EndCost    = 4  // of a lease or a session
	leaveCost  = 6  // of a waiter, whose queue may be long
	RecordCost = 2  // to put a record, or to delete one that was bound to a session
	statusCost = 2  // to show a resource
	LeaseCost  = 2  // to show one that holds it, or waits for it
	PerUnit    = 16 // things that are copied in a unit of work
)

// A work counts what was done, and knows the most that may be done.
type work struct{ done, most int }

// take counts more work, and reports whether the budget still covers it. It counts beyond the
// budget too: what was begun is finished.
func (w *work) take(n int) bool {
	w.done += n
	return w.done <= w.most
}

// left returns how much of the budget is left.
func (w *work) left() int { return max(0, w.most-w.done) }

func (w *work) spent() bool { return w.done >= w.most }

// newWork is the budget of an entry.
func (s *State) newWork() work {
	if s.smallWork > 0 {
		return work{most: s.smallWork}
	}
	return work{most: maxWork}
}

// Work returns how much work the last applied entry took.
func (s *State) Work() int { return s.last.budget.done }

// Work returns how much work was done with the view so far: an engine that serves many
// readers lets others in between.
func (v *view) Work() int { return v.work.done }

// refuseOverBudget refuses a command that has not begun when the budget of its entry is spent; nil if it may begin.
// What keeps or ends a lease always may: to refuse a renewal would cost somebody a lease, and the others make room.
func (l *look) refuseOverBudget(c Command) *leasehold.Error {
	if !l.work.spent() {
		return nil
	}
	switch command.ClassOf(c) {
	case command.Adds, command.Alters:
		return tooMuchAtOnce()
	}
	return nil
}

func tooMuchAtOnce() *leasehold.Error {
	return refuse(leasehold.Unavailable, "the server has too much to do at this moment, and did not begin with "+
		"this: try again").Err
}

// tooManyOver refuses what cannot be decided yet: more leases that are over are in the way than
// one entry may collect.
func tooManyOver(path string) *leasehold.Error {
	return refuse(leasehold.Unavailable, "very many leases on %s have just ended and are being collected: try "+
		"again in a moment", path).Err
}
