package kernel

import (
	"math"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/command"
)

// define sets the definition of a path. The same definition once more changes nothing: no
// revision, no event.
func (t *turn) define(c *Define) Answer {
	if failure := t.mayChange(c); failure != nil {
		return Answer{Err: failure} // before a namespace is begun for it
	}
	sp, failure := t.makeSpace(c.Namespace)
	if failure != nil {
		return Answer{Err: failure}
	}
	before, known := sp.definitions.Get(c.Definition.Path)
	if !known && t.definitions >= leasehold.MaxDefinitions {
		return refuse(leasehold.Limited, "there are %d definitions already, which is as many as there can be",
			t.definitions)
	}
	d := c.Over(before)
	if known && command.SameDefinition(before, &d) {
		return Answer{Definition: before} // an earlier try did it
	}
	if failure := t.checkChange(sp, c, before, &d); failure != nil {
		return Answer{Err: failure}
	}
	d.Revision = t.revise(sp)
	t.setDefinition(sp, &d)
	t.emit(sp, &leasehold.Event{Kind: leasehold.Defined, Resource: d.Path, By: c.By, Reason: c.Reason})
	t.followed(sp, d.Path)
	return Answer{Definition: &d}
}

func (t *turn) undefine(c *Undefine) Answer {
	sp := t.space(c.Namespace)
	if sp != nil {
		if _, known := sp.definitions.Delete(c.Path); known {
			t.definitions--
			t.emit(sp, &leasehold.Event{Kind: leasehold.Undefined, Resource: c.Path, By: c.By, Reason: c.Reason})
			t.followed(sp, c.Path)
			return Answer{}
		}
	}
	return refuse(leasehold.NotFound, "%s has no definition of its own", c.Path)
}

func (t *turn) setDefinition(sp *space, d *leasehold.Definition) {
	if _, known := sp.definitions.Set(d.Path, d); !known {
		t.definitions++
	}
}

// definition returns the definition that applies to a resource; an empty one if none does.
func (sp *space) definition(path string) leasehold.Definition {
	if d, _ := sp.findDefinition(path); d != nil {
		return *d
	}
	return leasehold.Definition{}
}

// findDefinition returns the definition of a path itself, else that of its longest prefix, else
// nil; and how many definitions it looked at. It does not try prefix after prefix, since a path
// may have hundreds. Instead it takes the last definition that does not come after the path:
// every shorter prefix of the path that is defined is a prefix of what the two have in common,
// so the search goes on from there.
func (sp *space) findDefinition(path string) (found *leasehold.Definition, looked int) {
	for from := path; from != "" && sp.definitions.Len() > 0; {
		var last *leasehold.Definition
		sp.definitions.Descend(from, func(_ string, d *leasehold.Definition) bool {
			last = d
			return false
		})
		looked++
		if last == nil || last.Path == path || strings.HasSuffix(last.Path, "/") && strings.HasPrefix(path, last.Path) {
			found = last
			break
		}
		from = path[:1+strings.LastIndexByte(path[:common(last.Path, path)], '/')]
	}
	if found == nil {
		found, _ = sp.definitions.Get("/")
	}
	return found, looked
}

// common returns how many bytes two texts have in common from their beginning on.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// followed lets queues follow a definition that changed: as many as an entry may look at, and
// the others later.
func (t *turn) followed(sp *space, path string) {
	t.followDefinition(sp, path, "", math.MaxInt)
}

// fitsPath reports whether the definition of a path is one for a resource, be there longer
// ones or not.
func fitsPath(path, resource string) bool {
	return path == "/" || path == resource || strings.HasSuffix(path, "/") && strings.HasPrefix(resource, path)
}
