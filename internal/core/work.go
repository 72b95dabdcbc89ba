package core

// Nothing that is asked of a state may hold it for long, whatever is in it: everybody
// else waits meanwhile. Work is therefore counted, in units that take about a
// microsecond on a small machine, and never timed: all nodes must count the same.

// maxReadWork is how much work one read does. What would need more is cut short, or
// refused where it can not be.
const maxReadWork = 4096

// What a read costs.
const (
	lookCost   = 1  // at one thing
	statusCost = 2  // to show a resource
	leaseCost  = 2  // to show one that holds it, or waits for it
	perUnit    = 16 // things that are copied in a unit of work
)

// A work counts what was done of at most so much.
type work struct{ done, most int }

// take counts more work, and reports whether there was still some to be had.
func (w *work) take(n int) bool {
	w.done += n
	return w.done <= w.most
}

// Work returns how much work was done with the view so far: an engine that serves many
// readers lets others in between.
func (v View) Work() int { return v.work.done }
