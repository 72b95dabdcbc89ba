package kernel

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/command"
)

// A change of a definition is merged here and not by who asks for it: two who change different
// fields at the same time would otherwise undo each other's work.

// mayChange refuses a change that cannot be made, whatever is defined.
func (s *State) mayChange(c *Define) *leasehold.Error {
	switch {
	case !c.IsChange():
		return nil
	case c.IfRevision != 0 && s.space(c.Namespace) == nil:
		return changedSince(c, nil)
	}
	return nil
}

// checkChange refuses a definition that cannot be, or that was asked for by somebody who may not
// know what it does.
func (t *turn) checkChange(sp *space, c *Define, before, d *leasehold.Definition) *leasehold.Error {
	if c.Fields != 0 {
		var failure *leasehold.Error
		if errors.As(command.CheckDefinition(d), &failure) {
			return failure
		}
	}
	if failure := sp.noSlotsDefined(d); failure != nil {
		return failure
	}
	if c.IfRevision != 0 && (before == nil || before.Revision != c.IfRevision) {
		return changedSince(c, before)
	}
	if !c.KeepSlots {
		return nil
	}
	applied := sp.definition(d.Path)
	if failure := t.dropsUnits(sp, &applied, d); failure != nil {
		return failure
	}
	return t.dropsSlots(sp, &applied, d)
}

func changedSince(c *Define, before *leasehold.Definition) *leasehold.Error {
	if before == nil {
		return refuse(leasehold.Refused, "the definition of %s is gone: look at what applies now with leasehold "+
			"definitions --for %s", c.Definition.Path, c.Definition.Path).Err
	}
	return refuse(leasehold.Refused, "the definition of %s was changed by somebody else (its revision is %d, not %d): "+
		"look at it again with leasehold definitions %s", c.Definition.Path, before.Revision, c.IfRevision,
		c.Definition.Path).Err
}

const howToReplace = `: to do it all the same, add --replace (in the API: "replace": true)`

// maxNamed is how many units or holders a refusal names.
const maxNamed = 5

// dropsUnits refuses a definition that leaves out units that there are, taken or not: a list that
// was meant to add to them looks the same.
func (t *turn) dropsUnits(sp *space, applied, d *leasehold.Definition) *leasehold.Error {
	var kept btree.Set[string]
	for _, unit := range d.Units {
		kept.Insert(unit)
	}
	holders := t.unitHolders(sp, d.Path)
	var dropped []string
	for _, unit := range applied.Units {
		if kept.Contains(unit) {
			continue
		}
		if holder, held := holders.Get(unit); held {
			unit += " (held by " + holder + ")"
		}
		dropped = append(dropped, unit)
	}
	if len(dropped) == 0 {
		return nil
	}
	word := "units"
	if len(dropped) == 1 {
		word = "unit"
	}
	from := ""
	if applied.Path != d.Path {
		from = ", which the definition of " + applied.Path + " gives it"
	}
	return refuse(leasehold.Refused, "this would drop %s %s of %s%s; holders keep theirs until they release them%s",
		word, FirstFew(dropped), d.Path, from, howToReplace).Err
}

// unitHolders returns who has which unit of a resource; of a prefix, nothing.
func (t *turn) unitHolders(sp *space, path string) (holders btree.Map[string, string]) {
	r := t.settle(sp, path)
	if r == nil {
		return holders
	}
	for _, unit := range r.more().shares().Units {
		if unit.lease != "" {
			name := unit.Holder
			if !t.sees(sp, unit.lease, path) {
				name = somebody
			}
			holders.Set(unit.Name, name)
		}
	}
	return holders
}

// dropsSlots refuses a definition with fewer slots than are taken, or with fewer than there were
// while somebody waits. Of the resources under a prefix there may be too many to look at: fewer
// slots are refused there whatever is held.
func (t *turn) dropsSlots(sp *space, applied, d *leasehold.Definition) *leasehold.Error {
	if strings.HasSuffix(d.Path, "/") {
		had, has := sp.capacity(d.Path, nil, *applied), sp.capacity(d.Path, nil, *d)
		if has == 0 || has >= had {
			return nil
		}
		return refuse(leasehold.Refused, "this would leave each resource under %s with %d slots, not %d; holders keep "+
			"theirs until they release them%s", d.Path, has, had, howToReplace).Err
	}
	r := t.settle(sp, d.Path)
	if r == nil {
		return nil
	}
	had, has := sp.capacity(d.Path, r, *applied), sp.capacity(d.Path, r, *d)
	used := r.more().shares().used
	switch {
	case has == 0 || has >= had:
		return nil
	case used > has:
		return refuse(leasehold.Refused, "this would leave %s with %s while %d are taken, by %s; holders keep theirs "+
			"until they release them%s", d.Path, slotCount(has), used, t.slotHolders(sp, r), howToReplace).Err
	case r.Waiting > 0:
		return refuse(leasehold.Refused, "this would leave %s with %s, not %d, while %d wait for it; those who need "+
			"more than there are leave the queue%s", d.Path, slotCount(has), had, r.Waiting, howToReplace).Err
	}
	return nil
}

func (l *look) slotHolders(sp *space, r *Resource) string {
	var names []string
	sp.holders(r, func(c *Claim) bool {
		names = append(names, fmt.Sprintf("%s (%s)", l.nameOf(sp, c), slotCount(int(c.Slots))))
		return len(names) < maxNamed
	})
	if more := r.Sharers() - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}

func slotCount(n int) string {
	if n == 1 {
		return "1 slot"
	}
	return fmt.Sprintf("%d slots", n)
}

// FirstFew lists names, and says of more than a few how many more there are.
func FirstFew(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
