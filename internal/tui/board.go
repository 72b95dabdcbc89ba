package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/follow"
	"github.com/leasehold/leasehold/internal/cli/lease"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A board is what top shows. update tells it what happened and returns what it wants done; it can
// be drawn at any time. It does nothing itself: no network, no terminal, no clock. So a test can
// play a whole evening at the terminal in a millisecond.
type board struct {
	app       *cli.App // for its words
	server    string
	namespace string
	prefix    string
	query     v1.ResourceQuery // what the server lists

	width, height int
	now           time.Time

	seen   *follow.Snapshot // nil: nothing was seen yet
	lost   error            // nil: the server answers
	lostAt time.Time
	last   *v1.Event

	order    order
	filter   string
	rows     []v1.Resource  // what passes the filter, in order
	tally    string         // how many there are of what; made with the rows, like natural
	natural  map[string]int // how wide each column would like to be
	selected string         // a name: rows come and go, and the cursor stays with its own
	cursor   int
	first    int // the first row on the screen

	mode     mode
	typing   string       // the filter before esc, while it is typed
	Details  *detailsView // in modeDetails
	breaking *breakView   // in modeWhom, modeReason and modeConfirm
	note     string       // about the last thing that was done
	noted    time.Time    // when that was
	asked    time.Time    // when the list was last asked for because a countdown had ended
	done     func() error // set: the end, and what to end with
}

// A mode says what the keys mean.
type mode uint8

const (
	modeList mode = iota
	modeFilter
	modeDetails
	modeHelp
	modeWhom    // chooses whose lease is to be broken
	modeReason  // types why a lease is to be broken
	modeConfirm // is asked whether it means it
)

// An order of the rows.
type order uint8

const (
	byName order = iota
	byRemaining
	byWaiting
	byHeld
	orders
)

// Orders are what the rows can be sorted by; the first is the default.
func Orders() []string { return []string{"name", "remaining", "waiting", "held"} }

// orderCalled returns the order with a name; the first if there is none.
func orderCalled(name string) order { return order(max(0, slices.Index(Orders(), name))) }

func (o order) String() string {
	return [orders]string{"name", "what remains", "waiting", "held longest"}[o]
}

// A detailsView is one resource with its queue.
type detailsView struct {
	name     string
	resource *v1.Resource // nil: not answered yet
	asked    time.Time
	err      error
	first    int // the first line on the screen
}

// A breakView is a break that is being prepared: nothing is sent until it is confirmed.
type breakView struct {
	resource v1.Resource
	leases   []v1.Lease // what it would end
	cursor   int        // in modeWhom: which holder; behind the last one: all
	asked    time.Time
	reason   string
	atOnce   bool
	sent     bool
}

// What a board is told.
type (
	tickMsg struct{ now time.Time }
	sizeMsg struct{ width, height int }
	keyMsg  struct {
		name string // "up", "enter", "ctrl+c", "a"
		text string // what it types, if anything
	}
	newsMsg   struct{ follow.Update }
	lookedMsg struct {
		name     string
		toBreak  bool
		resource v1.Resource
		asked    time.Time
		err      error
	}
	brokeMsg struct {
		leases []v1.Lease // that were ended
		err    error      // what became of another one
	}
)

// What a board wants done.
type (
	wantList struct{}
	wantLook struct {
		name    string
		toBreak bool
	}
	wantBreak struct{ requests []v1.BreakRequest }
)

// update takes one thing that happened and returns what is wanted, or nil.
func (b *board) update(msg any) any {
	switch m := msg.(type) {
	case tickMsg:
		b.now = m.now
		return b.ranOut()
	case sizeMsg:
		b.width, b.height = m.width, m.height
		b.keepInSight()
	case keyMsg:
		return b.key(m)
	case newsMsg:
		return b.hear(m.Update)
	case lookedMsg:
		b.looked(m)
	case brokeMsg:
		return b.broke(m)
	}
	return nil
}

// ranOut asks for the list when a countdown on the screen has reached its end: the lease was
// renewed, which is no event, or it will be gone. At most once a second, since a server that is
// late to expire it would otherwise be asked with every tick.
func (b *board) ranOut() any {
	if b.seen == nil || b.lost != nil || b.now.Sub(b.asked) < time.Second {
		return nil
	}
	for _, r := range b.visible() {
		if left, ok := remaining(r); ok && left <= b.elapsed() {
			b.asked = b.now
			return wantList{}
		}
	}
	return nil
}

// hear takes what the follower says. When the server is lost, the last snapshot stays on the
// screen, faint: old news is better than none if it is marked as old.
func (b *board) hear(n follow.Update) any {
	switch {
	case n.Snapshot != nil:
		b.seen, b.lost = n.Snapshot, nil
		b.arrange()
		if b.mode == modeDetails {
			return wantLook{name: b.Details.name}
		}
	case n.Event != nil && n.Event.Resource != "":
		b.last = n.Event
	case n.Lost != nil && follow.Permanent(n.Lost):
		b.done = func() error { return n.Lost }
	case n.Lost != nil && b.lost == nil:
		b.lost, b.lostAt = n.Lost, b.now
	}
	return nil
}

// looked takes the answer about one resource, for the page of details or for a break. A person may
// have left the page before the answer came; then it is dropped.
func (b *board) looked(m lookedMsg) {
	switch {
	case m.toBreak && b.mode != modeList && b.mode != modeDetails:
		// the person went on to something else
	case m.toBreak && m.err != nil:
		b.say("%v", m.err)
	case m.toBreak && len(m.resource.Holders) == 0:
		b.say("%s is %s: there is nothing to break", m.resource.Resource, m.resource.State)
	case m.toBreak:
		b.breaking, b.note = &breakView{resource: m.resource, leases: m.resource.Holders, asked: m.asked}, ""
		if b.mode = modeReason; len(m.resource.Holders) > 1 {
			b.mode = modeWhom
		}
	case b.mode == modeDetails && b.Details.name == m.name:
		b.Details.err = m.err
		if m.err == nil {
			b.Details.resource, b.Details.asked = &m.resource, m.asked
		}
	}
}

// broke takes the result of a break. The list is read again: an event may come late.
func (b *board) broke(m brokeMsg) any {
	b.breaking = nil
	b.back()
	var said []string
	for _, l := range m.leases {
		said = append(said, lease.BrokenText(l))
	}
	switch {
	case errors.Is(m.err, leasehold.ErrLost) && len(m.leases) == 0:
		said = append(said, "nothing was done: the lease that was shown is over")
	case errors.Is(m.err, leasehold.ErrLost):
		said = append(said, "another one that was shown was over")
	case m.err != nil:
		said = append(said, m.err.Error())
	}
	b.say("%s", strings.Join(said, "; "))
	return wantList{}
}

// noteTime is how long the result of an action is shown.
const noteTime = 10 * time.Second

func (b *board) say(format string, args ...any) {
	b.note, b.noted = cli.Printable(fmt.Sprintf(format, args...)), b.now
}

// back leaves what is open for what was below it.
func (b *board) back() {
	if b.mode = modeList; b.Details != nil {
		b.mode = modeDetails
	}
}

// arrange rebuilds the rows from the last snapshot, and keeps the cursor on the
// resource that it is on.
func (b *board) arrange() {
	if b.seen == nil {
		return
	}
	b.rows = b.rows[:0]
	for _, r := range b.seen.Resources {
		if matches(r, b.filter) {
			b.rows = append(b.rows, r)
		}
	}
	slices.SortStableFunc(b.rows, b.order.compare)
	b.tally, b.natural = b.counts(), b.measure()
	if i := slices.IndexFunc(b.rows, func(r v1.Resource) bool { return r.Resource == b.selected }); i >= 0 {
		b.cursor = i
	}
	b.move(0)
}

// matches reports whether anything that a row shows contains the filter, in upper or lower case.
func matches(r v1.Resource, filter string) bool {
	filter = strings.ToLower(filter)
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), filter) }
	if has(r.Resource) || has(r.State) {
		return true
	}
	return slices.ContainsFunc(r.Holders, func(l v1.Lease) bool {
		return has(l.Holder) || has(l.Reason) || has(l.Note)
	})
}

// compare sorts two rows. Ties keep the order of the server, so that rows do not jump.
func (o order) compare(x, y v1.Resource) int {
	switch o {
	case byRemaining:
		return compareKnown(x, y, remaining, cmp.Compare[time.Duration])
	case byWaiting:
		return cmp.Compare(y.Waiting, x.Waiting)
	case byHeld:
		return compareKnown(x, y, heldSince, time.Time.Compare)
	}
	return 0 // as the server lists them
}

// compareKnown sorts rows of which the value is known before the others: a lease without a TTL is
// not about to end.
func compareKnown[T any](x, y v1.Resource, of func(v1.Resource) (T, bool), compare func(T, T) int) int {
	a, knownA := of(x)
	b, knownB := of(y)
	switch {
	case knownA && knownB:
		return compare(a, b)
	case knownA:
		return -1
	case knownB:
		return 1
	}
	return 0
}

// remaining returns what was left of the lease that ends first, when it was seen.
func remaining(r v1.Resource) (least time.Duration, known bool) {
	for _, l := range r.Holders {
		if l.RemainingMS == nil {
			continue
		}
		if d := time.Duration(*l.RemainingMS) * time.Millisecond; !known || d < least {
			least, known = d, true
		}
	}
	return least, known
}

// heldSince returns when the oldest lease on a resource was granted.
func heldSince(r v1.Resource) (oldest time.Time, known bool) {
	for _, l := range r.Holders {
		if l.Acquired != nil && (!known || l.Acquired.Before(oldest)) {
			oldest, known = l.Acquired.Time, true
		}
	}
	return oldest, known
}

func (b *board) current() (v1.Resource, bool) {
	if b.cursor >= len(b.rows) {
		return v1.Resource{}, false
	}
	return b.rows[b.cursor], true
}

func (b *board) move(by int) {
	b.cursor = max(0, min(b.cursor+by, len(b.rows)-1))
	b.selected = ""
	if r, ok := b.current(); ok {
		b.selected = r.Resource
	}
	b.keepInSight()
}

func (b *board) keepInSight() {
	b.first = max(0, min(b.first, len(b.rows)-b.room()))
	b.first = max(min(b.first, b.cursor), b.cursor-b.room()+1)
}

// visible returns the rows that are on the screen.
func (b *board) visible() []v1.Resource {
	first := min(b.first, len(b.rows))
	return b.rows[first:min(first+b.room(), len(b.rows))]
}

// elapsed returns the time since what is shown was asked for. It stops while the server is gone: a
// countdown to zero would claim an expiry that nobody has seen.
func (b *board) elapsed() time.Duration {
	if b.lost != nil {
		return max(0, b.lostAt.Sub(b.seen.Asked))
	}
	return max(0, b.now.Sub(b.seen.Asked))
}

// pace returns how often to tick. Tenths of a second are shown only in the last ten seconds of a
// lease; a terminal over SSH should not be redrawn that often all day.
func (b *board) pace() time.Duration {
	if b.seen == nil || b.lost != nil {
		return time.Second
	}
	for _, r := range b.visible() {
		if d, ok := remaining(r); ok && d > b.elapsed() && d-b.elapsed() < 10*time.Second {
			return 100 * time.Millisecond
		}
	}
	return time.Second
}
