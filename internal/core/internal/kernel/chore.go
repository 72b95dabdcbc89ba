package kernel

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

// Chores are how a change that touches very much is spread over several entries. What they have
// not come to yet must look to every command as if it were done: a claim whose session has
// ended is over (see isOver), and a queue that has not been looked at is not reported as
// neglected (see handsOver).

// A Chore is work that was too much for the entry that it came up in. Ticks get it done,
// a part at a time, each chore in its turn. It is never changed in place.
type Chore struct {
	Kind  ChoreKind
	Name  string // of the session, the resource or the definition
	Order uint64 // smallest first
	Path  string // of a definition: the queue that was looked at last; of a hand-over: the waiter to go on with
	Left  *Left  // of a session
}

// ChoreKind says what a chore does.
type ChoreKind uint8

// The kinds. Snapshots number them: add at the end only.
const (
	// CollectSession ends what was bound to a session that has ended. All of that is over
	// from the end of the session on, collected or not.
	CollectSession ChoreKind = iota + 1
	// HandOver lets those have a resource who wait for it.
	HandOver
	// FollowDefinition lets those have what a change of definition made free.
	FollowDefinition
)

// Left is what is known of a session that has ended while something is bound to it.
type Left struct {
	TTL    time.Duration
	Gap    uint8
	How    leasehold.How
	At     Time // when it ended
	Leases int  // that ended with it so far

	// The first of them.
	Resource string
	Holder   string
}

// choreStep is how many things are done of one chore before the next one has its turn.
const choreStep = 64

func choreKey(kind ChoreKind, name string) string { return string(rune('a'+kind)) + name }

func (c *Chore) key() string { return choreKey(c.Kind, c.Name) }

// chore returns what is still to be done about something; nil if there is nothing.
func (sp *space) chore(kind ChoreKind, name string) *Chore {
	if sp.chores.Len() == 0 {
		return nil
	}
	c, _ := sp.chores.Get(choreKey(kind, name))
	return c
}

// left returns what is known of a session that has ended and is not collected yet; nil if there
// is no such session. Nearly always there is none, and the first comparison in chore makes that
// answer cheap.
func (sp *space) left(session string) *Left {
	if c := sp.chore(CollectSession, session); c != nil {
		return c.Left
	}
	return nil
}

// leaving reports whether sessions have ended that are not collected yet.
func (sp *space) leaving() (found bool) {
	sp.eachLeft(func(string) bool {
		found = true
		return false
	})
	return found
}

// eachLeft goes over the sessions that have ended and are not collected yet.
func (sp *space) eachLeft(yield func(session string) bool) {
	if sp.chores.Len() == 0 {
		return
	}
	sp.chores.Ascend(choreKey(CollectSession, ""), func(_ string, c *Chore) bool {
		return c.Kind == CollectSession && yield(c.Name)
	})
}

// putOff leaves a chore for the ticks, behind the others. There is one chore for each thing: a
// second about the same thing takes the place of the first.
func (t *turn) putOff(sp *space, c *Chore) *Chore {
	if before, ok := sp.chores.Get(c.key()); ok {
		t.chores.Delete(before.Order)
	}
	last, _, _ := t.chores.Max()
	c.Order = last + 1
	t.fileChore(sp, c)
	return c
}

func (t *turn) fileChore(sp *space, c *Chore) {
	sp.chores.Set(c.key(), c)
	t.chores.Set(c.Order, place{sp.name, c.key()})
}

// setChore stores what is known of a chore by now. It keeps its turn.
func (t *turn) setChore(sp *space, c *Chore) { sp.chores.Set(c.key(), c) }

func (t *turn) dropChore(sp *space, c *Chore) {
	if now, ok := sp.chores.Delete(c.key()); ok {
		t.chores.Delete(now.Order)
	}
}

// doChore does a part of the chore whose turn it is, and reports whether there was one.
func (t *turn) doChore() bool {
	_, at, ok := t.chores.Min()
	if !ok {
		return false
	}
	t.work.take(LookCost)
	sp := t.space(at.namespace)
	c, _ := sp.chores.Get(at.path)
	// The chore goes to the back of the queue before anything is done, so that what is left of
	// it finds it there, and a long one cannot keep the others waiting.
	again := *c
	t.putOff(sp, &again)
	switch c.Kind {
	case CollectSession:
		t.collect(sp, c.Name, choreStep)
	case HandOver:
		t.dropChore(sp, &again)
		// What is too much for this entry too is put off again.
		t.wake(wakeup{space: sp, path: c.Name, from: c.Path})
	case FollowDefinition:
		t.followDefinition(sp, c.Name, c.Path, choreStep)
	}
	return true
}

// collect ends up to most of the things that were bound to a session that has ended, as far as
// the budget of the entry allows. Leases go before records, so that those who wait for a lease
// wait as little as possible; the alarm comes last, when it is known how many leases were lost.
func (t *turn) collect(sp *space, session string, most int) {
	for ; most > 0 && !t.work.spent(); most-- {
		if id := firstBound(sp.bound, session); id != "" {
			claim, _ := sp.claims.Get(id)
			t.endLeft(sp, claim)
			continue
		}
		chore := sp.chore(CollectSession, session)
		if sp.records.EndBound(t.in(sp), session, chore.Left.How) {
			continue
		}
		t.dropChore(sp, chore)
		// A session that was closed gave its leases back, which is no reason for an alarm.
		if l := chore.Left; !l.How.Clean() {
			t.alarms.SessionEnded(t.in(sp), session, l)
		}
		return
	}
}

// endLeft ends a claim whose session has ended.
func (t *turn) endLeft(sp *space, claim *Claim) {
	chore := sp.chore(CollectSession, claim.Session)
	if own, by := claim.End(); own != 0 && own <= chore.Left.At {
		// It was over before its session was. To call that a clean end now would cut
		// short the rest that follows an unclean one.
		t.finish(sp, claim, end{how: by, at: own})
		return
	}
	if !claim.Waiting() {
		counted, left := *chore, *chore.Left
		if left.Leases++; left.Leases == 1 {
			left.Resource, left.Holder = claim.Resource, claim.Holder
		}
		counted.Left = &left
		t.setChore(sp, &counted)
	}
	t.finish(sp, claim, end{how: chore.Left.How, at: chore.Left.At})
}

// followDefinition hands over what a change of definition made free, queue by queue, from the
// one after another on. Only resources with a queue are looked at, and at most most of them;
// the rest is a chore, which remembers how far it came.
func (t *turn) followDefinition(sp *space, path, after string, most int) {
	from := path
	switch {
	case after != "":
		from = after + "\x00"
	case path == "/":
		from = ""
	}
	for waiter := firstFrom(sp, from); waiter != nil && fitsPath(path, waiter.Resource); waiter = firstFrom(sp, from) {
		if most <= 0 || t.work.spent() {
			t.putOff(sp, &Chore{Kind: FollowDefinition, Name: path, Path: after})
			return
		}
		most--
		t.work.take(LookCost)
		after = waiter.Resource
		from = after + "\x00"
		t.wakeQueue(sp, after)
	}
	t.dropChore(sp, &Chore{Kind: FollowDefinition, Name: path})
}

// handsOver reports whether a chore has yet to look at a queue: until then its first waiter may
// well fit and not have been granted.
func (sp *space) handsOver(path string) (found bool) {
	if sp.chore(HandOver, path) != nil {
		return true
	}
	sp.chores.Ascend(choreKey(FollowDefinition, ""), func(_ string, c *Chore) bool {
		found = c.Kind == FollowDefinition && fitsPath(c.Name, path) && path > c.Path
		return c.Kind == FollowDefinition && !found
	})
	return found
}

// restoreChore takes a piece over that Pieces made.
func (t *turn) restoreChore(sp *space, c *Chore) error {
	_, twice := sp.chores.Get(c.key())
	_, order := t.chores.Get(c.Order)
	switch {
	case twice || order || c.Name == "":
		return fmt.Errorf("snapshot has the chore about %q twice, or about nothing", c.Name)
	case c.Kind < CollectSession || c.Kind > FollowDefinition || (c.Left != nil) != (c.Kind == CollectSession):
		return fmt.Errorf("snapshot has a chore about %q that cannot be", c.Name)
	}
	t.fileChore(sp, c)
	return nil
}

// chores checks that those of a namespace are in order.
func (c *checker) chores(s *look, sp *space) {
	sp.chores.Scan(func(key string, chore *Chore) bool {
		at, ok := s.chores.Get(chore.Order)
		c.that(ok && at == place{sp.name, key} && key == chore.key(), "%s: the chore about %q is not in order", sp.name,
			chore.Name)
		_, alive := sp.sessions.Get(chore.Name)
		c.that(chore.Kind != CollectSession || !alive, "%s: session %q has ended, and is there", sp.name, chore.Name)
		c.that(strings.HasPrefix(chore.Path, strings.TrimSuffix(chore.Name, "/")) || chore.Name == "/" ||
			chore.Path == "" || chore.Kind == HandOver,
			"%s: the chore about %q has come to %q", sp.name, chore.Name, chore.Path)
		return true
	})
}
