package kernel

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/btree"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// Two jobs on one pool may take a minute and a day: what is usual on the pool says little about either. So a lease
// that says what it is for is learned by its kind, too: by the label kind, or by the label command and the holder's
// name without its number. Leases that say neither cost nothing.

// A Kind is what was learned of one kind of leases on a resource. It is never changed in place.
type Kind struct {
	Resource string
	Name     string
	Recent   usage.Recent

	order uint64 // larger for those that were learned of later
}

// How many kinds are kept. Beyond it, the one of the namespace that was not heard of for longest makes room.
const (
	maxKinds    = 65536 // in all namespaces
	maxKindsOne = 1024  // in one
	maxKindName = 64    // bytes
)

// The labels by which a kind is told.
const (
	kindLabel    = "kind"
	commandLabel = "command"
)

// kinds are those of a namespace.
type kinds struct {
	byName *btree.BTreeG[*Kind]     // by resource, then name
	byAge  btree.Map[uint64, *Kind] // by order
}

func newKinds() kinds {
	return kinds{byName: btree.NewBTreeGOptions(func(a, b *Kind) bool {
		if a.Resource != b.Resource {
			return a.Resource < b.Resource
		}
		return a.Name < b.Name
	}, noLocks)}
}

func (k *kinds) copy() kinds { return kinds{k.byName.Copy(), *k.byAge.Copy()} }

// set stores a kind as the newest.
func (k *kinds) set(kind *Kind, order uint64) (known bool) {
	kind.order = order
	before, known := k.byName.Set(kind)
	if known {
		k.byAge.Delete(before.order)
	}
	k.byAge.Set(order, kind)
	return known
}

// KindName returns the kind of a lease by what it says of itself; empty if it says nothing.
func KindName(labels leasehold.Labels, holder string) string {
	command := ""
	for _, label := range labels {
		switch label.Key {
		case kindLabel:
			if label.Value != "" {
				return cutName(label.Value)
			}
		case commandLabel:
			command = label.Value
		}
	}
	if command == "" {
		return ""
	}
	return cutName(cutName(command) + "|" + unnumbered(holder))
}

// unnumbered returns a name without the number at its end: trainer-17 and ann:4711 are trainer and ann.
func unnumbered(name string) string {
	short := strings.TrimRight(name, "0123456789-_.:#/@ ")
	if short == "" {
		return name
	}
	return short
}

// cutName cuts a text to the length of a kind's name, between two characters.
func cutName(text string) string {
	if len(text) <= maxKindName {
		return text
	}
	end := maxKindName
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// kind returns the name of a claim's kind; empty if it has none.
func (s *State) kind(c *Claim) string {
	if c.Terms == nil {
		return ""
	}
	name := KindName(c.Terms.Labels, c.Holder)
	if name == "" && c.Terms.Task {
		return kindOfTask
	}
	return name
}

// kindOfTask is the kind of a lease on a task for which nobody named another. A task is done once: what can be learned
// is how long those of its folder take.
const kindOfTask = "task"

// learnedOn returns the path under which the kind of a claim is kept.
func (c *Claim) learnedOn() string {
	if c.OnTask() && !c.Waiting() {
		return leasehold.TaskFolder(c.Resource)
	}
	return c.Resource
}

// recent returns what was learned of a kind on a resource; empty if nothing was.
func (sp *space) recent(path, name string) usage.Recent {
	if name == "" || sp.kinds.byName.Len() == 0 {
		return ""
	}
	kind, ok := sp.kinds.byName.Get(&Kind{Resource: path, Name: name})
	if !ok {
		return ""
	}
	return kind.Recent
}

// recentOf is recent for a claim.
func (s *State) recentOf(sp *space, c *Claim) usage.Recent {
	if sp.kinds.byName.Len() == 0 {
		return ""
	}
	return sp.recent(c.learnedOn(), s.kind(c))
}

// learnKind notes how a lease went that ended at some moment. One that was handed on is of no kind: two holders did
// something with it.
func (t *turn) learnKind(sp *space, c *Claim, how leasehold.How, at Time) {
	name := t.kind(c)
	if name == "" || c.Terms.ChangedWall != 0 {
		return
	}
	ttl, gap := t.pulse(sp, c)
	recent := sp.recent(c.learnedOn(), name)
	if recent == "" && !t.roomForKind(sp) {
		return
	}
	recent = recent.Add(time.Duration(at-c.Since), how, ttl, gap)
	t.setKind(sp, &Kind{Resource: c.learnedOn(), Name: name, Recent: recent})
}

func (t *turn) setKind(sp *space, kind *Kind) {
	t.kindSeq++
	if !sp.kinds.set(kind, t.kindSeq) {
		t.totals.kinds++
	}
}

// roomForKind makes room for a kind that is new, and reports whether there is any. Nobody's are forgotten for those of
// another namespace.
func (t *turn) roomForKind(sp *space) bool {
	if sp.kinds.byAge.Len() < maxKindsOne && t.totals.kinds < maxKinds {
		return true
	}
	_, oldest, ok := sp.kinds.byAge.PopMin()
	if ok {
		sp.kinds.byName.Delete(oldest)
		t.totals.kinds--
	}
	return ok
}

// longFor returns the step of the scale above which a lease is held for unusually long: by its kind, or else by its
// resource.
func (s *State) longFor(sp *space, r *Resource, c *Claim) byte {
	if long := s.recentOf(sp, c).Long(); long != 0 {
		return long
	}
	return r.more().Usual.Long()
}

// pickTTL returns the TTL that a request asks for, or leaves to what was defined or learned.
func (s *State) pickTTL(sp *space, c *Acquire, path string, d leasehold.Definition) time.Duration {
	if c.Pick == TTLAsSaid {
		return c.TTL
	}
	kind := KindName(c.Labels, c.Holder)
	if kind == "" && c.Task {
		kind = kindOfTask
	}
	switch {
	case c.Pick == TTLUnattended && kind == "":
		return sp.usual(path).Recent().Unattended(d)
	case c.Pick == TTLUnattended:
		return sp.recent(path, kind).Unattended(d)
	case c.Pick == TTLAuto && kind != "":
		return usage.AdviseKind(sp.recent(path, kind), d).TTL
	}
	ttl := c.TTL
	if d.DefaultTTL != 0 {
		ttl = d.DefaultTTL
	}
	if c.Pick == TTLAuto {
		ttl = usage.Advise(sp.usual(path), d, ttl).TTL
	}
	return ttl
}

// Kinds shows what was learned of the kinds of leases on a resource, by name. If a name is given, that is the only one,
// be it known or not.
func (v *view) Kinds(namespace, path, name string) (list []leasehold.LearnedKind) {
	sp := v.s.space(namespace)
	if sp == nil {
		sp = v.s.newSpace(namespace)
	}
	d := sp.definition(path)
	show := func(k *Kind) {
		list = append(list, leasehold.LearnedKind{Name: k.Name, TTL: usage.AdviseKind(k.Recent, d).TTL,
			Unattended: k.Recent.Unattended(d), Usual: k.Recent.Shown()})
	}
	if name != "" {
		show(&Kind{Name: name, Recent: sp.recent(path, name)})
		return list
	}
	sp.kinds.byName.Ascend(&Kind{Resource: path}, func(k *Kind) bool {
		if k.Resource != path {
			return false
		}
		show(k)
		return v.work.take(LeaseCost)
	})
	return list
}

// kindPieces writes what was learned of kinds, oldest first: the order decides which is forgotten next.
func (sp *space) kindPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.kinds.byAge.Scan(func(_ uint64, k *Kind) bool {
		more = yield(Piece{sp.name, k})
		return more
	})
	return more
}

// restoreKind takes a piece over that Pieces made. The order of the pieces is that of forgetting.
func (t *turn) restoreKind(sp *space, k *Kind) error {
	if _, twice := sp.kinds.byName.Get(k); twice || k.Name == "" || len(k.Name) > maxKindName {
		return fmt.Errorf("snapshot has kind %q of %q twice, or without a name that it can have", k.Name, k.Resource)
	}
	if err := k.Recent.WellFormed(); err != nil {
		return fmt.Errorf("snapshot has kind %q of %q with what was never learned: %w", k.Name, k.Resource, err)
	}
	t.setKind(sp, k)
	return nil
}

// kinds checks that each kind is in both orders, and that there are not too many.
func (c *checker) kinds(sp *space) {
	n := sp.kinds.byName.Len()
	c.that(n == sp.kinds.byAge.Len() && n <= maxKindsOne, "%s: %d kinds by name, %d by age", sp.name, n,
		sp.kinds.byAge.Len())
	sp.kinds.byAge.Scan(func(order uint64, k *Kind) bool {
		same, _ := sp.kinds.byName.Get(k)
		c.that(same == k && k.order == order, "%s: kind %q of %q is not where it belongs", sp.name, k.Name, k.Resource)
		return true
	})
}
