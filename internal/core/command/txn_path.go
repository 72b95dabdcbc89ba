package command

import "slices"

// A path of execution is what a transaction would do if its comparisons came out in one way: a list, and of each
// transaction nested in it one of the two lists. What is refused here could happen on some path, so that everything
// can be judged before the first change.

// A doing is what operations that may be on one path do. Those of the two lists of a nested transaction are never done
// together, so neither contradicts the other.
type doing struct {
	puts     []string
	deletes  []*Op
	acquired bool
	released bool
	claims   []Item   // the resources and ids that are taken, each of which can be taken once
	links    []string // the ids of those that are linked
	ends     []string // the ids that are released
}

// validatePath refuses lists that do on some path what can be done once: to write a record, since at one revision a
// record changes once, and a watch shows each revision as a whole; and to take a resource.
func validatePath(list []Op) error {
	if !doesMuch(list) {
		return nil
	}
	_, err := pathOf(list)
	return err
}

// doesMuch reports whether a list could contradict itself: a single operation, beside gets, cannot.
func doesMuch(list []Op) bool {
	n := 0
	for i := range list {
		switch list[i].Do {
		case Get:
		case Nested:
			return true
		default:
			n++
		}
	}
	return n > 1
}

func pathOf(list []Op) (all doing, err error) {
	for i := range list {
		next, err := doingOf(&list[i])
		if err == nil {
			err = all.meets(&next)
		}
		if err != nil {
			return all, err
		}
		all.add(&next)
	}
	return all, nil
}

func doingOf(o *Op) (d doing, err error) {
	switch o.Do {
	case Put:
		d.puts = []string{o.Path}
		if l := o.Link; l != nil {
			d.claims, d.links = []Item{{Resource: l.Resource, ID: l.ID}}, []string{l.ID}
		}
	case Delete:
		d.deletes = []*Op{o}
	case AcquireLease:
		d.acquired, d.claims = true, o.Acquire.Items()
	case ReleaseLease:
		d.released, d.ends = true, []string{o.ID}
	case Nested:
		if d, err = pathOf(o.Txn.Then); err != nil {
			return d, err
		}
		other, err := pathOf(o.Txn.Else)
		d.add(&other)
		return d, err
	}
	return d, nil
}

func (d *doing) add(next *doing) {
	d.puts, d.deletes = append(d.puts, next.puts...), append(d.deletes, next.deletes...)
	d.claims, d.ends = append(d.claims, next.claims...), append(d.ends, next.ends...)
	d.links = append(d.links, next.links...)
	d.acquired, d.released = d.acquired || next.acquired, d.released || next.released
}

// meets refuses what comes next, if it contradicts what comes before it. Of the acquires there is one at most, and
// before any release: else nobody could say before the first change whether all of it can be done.
func (d *doing) meets(next *doing) error {
	switch {
	case next.acquired && d.acquired:
		return invalid("a transaction acquires twice: ask for several resources in one acquire")
	case next.acquired && d.released:
		return invalid("a transaction releases before it acquires: put the acquire first")
	}
	for _, path := range next.puts {
		if d.writes(path) {
			return writtenTwice(path)
		}
	}
	for _, path := range d.puts {
		if next.deletesPath(path) {
			return writtenTwice(path)
		}
	}
	for _, mine := range next.claims {
		for _, other := range d.claims {
			if mine.Resource == other.Resource || mine.ID == other.ID {
				return invalid("a transaction takes %s or lease id %q twice: each is taken once", mine.Resource,
					mine.ID)
			}
		}
	}
	return d.endsWhatItLinks(next)
}

func (d *doing) endsWhatItLinks(next *doing) error {
	for _, two := range [2][2]*doing{{d, next}, {next, d}} {
		for _, id := range two[0].links {
			if slices.Contains(two[1].ends, id) {
				return invalid("a transaction links a record to lease id %q and releases it: do one of the two", id)
			}
		}
	}
	return nil
}

func (d *doing) writes(path string) bool {
	return slices.Contains(d.puts, path) || d.deletesPath(path)
}

func (d *doing) deletesPath(path string) bool {
	return slices.ContainsFunc(d.deletes, func(o *Op) bool { return o.covers(path) })
}

func writtenTwice(path string) error {
	return invalid("a transaction writes %s twice: at one revision a record changes once", path)
}

func (o *Op) covers(path string) bool {
	if !o.Range {
		return o.Path == path
	}
	return path >= o.Path && (o.To == "" || path < o.To)
}
