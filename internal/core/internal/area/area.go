// Package area says which names of an area are in the way of which. A name such as repo/web:src/auth/** is a pattern
// of paths in the area repo/web. It is a resource like any other to the kernel, which grants it only if nothing that
// overlaps it is in the way. Package pattern says what overlaps.
package area

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/pattern"
)

// areas are those of one namespace.
type areas struct {
	names pattern.Index // that are held, waited for or at rest
}

// New returns those of a namespace that has none.
func New() kernel.Areas { return &areas{pattern.NewIndex()} }

func (a *areas) Copy() kernel.Areas { return &areas{a.names.Copy()} }

// parse returns the pattern that a path is; nil if it is none.
func parse(path string) *pattern.Pattern {
	if !pattern.In(path) {
		return nil
	}
	p, err := pattern.Parse(path)
	if err != nil {
		return nil
	}
	return p
}

// Stored keeps a name among those of its area for as long as it is held, waited for or at rest.
func (a *areas) Stored(r *kernel.Resource) {
	p := parse(r.Path)
	switch {
	case p == nil:
	case r.InUse():
		a.names.Set(p)
	default:
		a.names.Delete(p)
	}
}

func (a *areas) Dropped(path string) {
	if p := parse(path); p != nil {
		a.names.Delete(p)
	}
}

func (a *areas) Refuse(items []kernel.Item) *leasehold.Error {
	var asked []*pattern.Pattern
	for _, item := range items {
		if !pattern.In(item.Resource) {
			continue
		}
		p, err := pattern.Parse(item.Resource)
		if err != nil {
			return kernel.Refusal(leasehold.Invalid, "%v", err)
		}
		if i := slices.IndexFunc(asked, p.Overlaps); i >= 0 {
			return kernel.Refusal(leasehold.Invalid, "%s and %s overlap, and are asked for at once: leave one out",
				asked[i].Name, p.Name)
		}
		asked = append(asked, p)
		if n := a.names.Of(p.Area); n+len(asked) > leasehold.MaxAreaNames && !a.names.Has(p) {
			return kernel.Refusal(leasehold.Limited,
				"%d names of %s are held, waited for or at rest: at most %d are allowed", n, p.Area,
				leasehold.MaxAreaNames)
		}
	}
	return nil
}

func (a *areas) Overlap(path, other string) bool {
	p, q := parse(path), parse(other)
	return p != nil && q != nil && p.Overlaps(q)
}

func (a *areas) Overlapping(n kernel.Namespace, path string, yield func(*kernel.Resource) bool) (looked int) {
	p := parse(path)
	if p == nil {
		return 0
	}
	return a.names.Overlapping(p, func(other *pattern.Pattern) bool {
		return other.Name == path || yield(n.Resource(other.Name))
	})
}

// InTheWay finds another name that overlaps that of a claim and is held, unless both are shared, or rests, or is waited
// for by somebody with a place before. Those who hold it go before those who wait, since they are the ones to ask.
func (a *areas) InTheWay(n kernel.Namespace, c *kernel.Claim) (other *kernel.Resource, looked int) {
	met := 0
	looked = a.Overlapping(n, c.Resource, func(r *kernel.Resource) bool {
		met++
		if excludes(n, r, c.Slots != 0) {
			other = r
			return false
		}
		if other == nil && awaitedBefore(n, r, c) {
			other = r
		}
		return true
	})
	return other, looked + met
}

// excludes reports whether a resource is held, or rests, so that what overlaps it cannot be granted, shared or not.
func excludes(n kernel.Namespace, r *kernel.Resource, shared bool) bool {
	resting, all := r.Rests(n.Now())
	return r.Claim != "" || all || !shared && (r.Sharers() > 0 || resting > 0)
}

// awaitedBefore reports whether somebody waits for a resource at a place before that of a claim.
func awaitedBefore(n kernel.Namespace, r *kernel.Resource, c *kernel.Claim) (before bool) {
	if r.Waiting == 0 {
		return false
	}
	n.Waiters(r.Path, func(waiter *kernel.Claim) bool {
		if !kernel.ComesBefore(waiter, c) {
			return false
		}
		before = !n.MustLeave(waiter)
		return !before
	})
	return before
}

func (a *areas) Ahead(n kernel.Namespace, c *kernel.Claim) (count, work int) {
	met := 0
	looked := a.Overlapping(n, c.Resource, func(r *kernel.Resource) bool {
		met++
		count += ahead(n, r, c)
		return true
	})
	return count, looked/kernel.LooksPerUnit + met
}

// fewWaiters are counted one by one.
const fewWaiters = 8

// ahead counts the waiters of a resource that come before a waiter of another one.
func ahead(n kernel.Namespace, r *kernel.Resource, c *kernel.Claim) (count int) {
	switch {
	case r.Waiting > fewWaiters:
		return n.WaitersBefore(r.Path, c)
	case r.Waiting > 0:
		n.Waiters(r.Path, func(other *kernel.Claim) bool {
			before := kernel.ComesBefore(other, c)
			if before {
				count++
			}
			return before
		})
	}
	return count
}
