package kernel_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// TestRecordsStand feeds logs to replicas in which records are at the paths of resources and stand for those who have
// them: whatever a command does to leases and records at once, each record shows the holder of its resource, which is
// an invariant; a snapshot can be restored; and a watch sees every change, at one revision once.
func TestRecordsStand(t *testing.T) {
	forEachLog(t, logs(testing.Short()), standingJournal, func(seed uint64, j journal) error {
		if err := againstReplicas(t, seed, j); err != nil {
			return err
		}
		return watched(j)
	})
}

// standingJournal makes up a log, and puts its records where its resources are.
func standingJournal(seed uint64) journal {
	j := writeJournal(*length, seeded(seed))
	pick := &writer{pick: seeded(seed + 1)}
	for _, e := range j {
		for i, c := range e.commands {
			e.commands[i] = pick.stand(c)
		}
	}
	return j
}

// stand lets what a command puts stand for the holders of a resource, mostly.
func (w *writer) stand(c core.Command) core.Command {
	switch c := c.(type) {
	case *core.PutRecord:
		moved := *c
		moved.Path, moved.Link = w.standingLink(c.Path, c.Link, c.Session)
		moved.KeepLink = moved.KeepLink && moved.Link == nil
		switch {
		case moved.Link != nil && moved.Session != "":
			moved.Link.TTL = 0
		case moved.Link == nil && moved.Session == "" && !moved.KeepLink && w.chance(4):
			moved.Link = &core.Link{Resource: moved.Path, Mirror: moved.Path, Stay: true} // which claims nothing
		}
		return &moved
	case *core.DeleteRecord:
		moved := *c
		if moved.Path = w.resource(); moved.Range {
			moved.To = moved.Path + "~"
		}
		return &moved
	case *core.Txn:
		moved := *c
		moved.Then, moved.Else = w.standIn(c.Then), w.standIn(c.Else)
		return &moved
	}
	return c
}

func (w *writer) standIn(ops []core.Op) (moved []core.Op) {
	used, acquired := map[string]bool{}, ""
	for _, o := range ops {
		switch o.Do {
		case core.AcquireLease:
			acquired = o.Acquire.Resource
		case core.Put:
			o.Path, o.Link = w.standingLink(o.Path, o.Link, o.Session)
			o.KeepLink = o.KeepLink && o.Link == nil
			if o.Link == nil && acquired != "" && w.chance(2) {
				o.Path = acquired
			}
		case core.Delete:
			o.Path, o.To, o.Range = w.resource(), "", false
		}
		if o.Do == core.Put || o.Do == core.Delete {
			if used[o.Path] {
				continue // one transaction writes a record once
			}
			used[o.Path] = true
		}
		moved = append(moved, o)
	}
	return moved
}

// standingLink returns the path of a resource for a record, and a link by which it stands for the holders of it.
func (w *writer) standingLink(path string, l *core.Link, session string) (string, *core.Link) {
	resource := w.resource()
	switch {
	case w.chance(5):
		return path, l
	case l == nil && !w.chance(3):
		return resource, nil
	case l == nil:
		w.made++
		l = &core.Link{ID: fmt.Sprint("s", w.made), Holder: "dan", Take: w.chance(3)}
	}
	stands := *l
	stands.Resource, stands.Mirror, stands.Stay, stands.Wait = resource, resource, true, false
	if session == "" && stands.TTL == 0 {
		stands.TTL = w.seconds(1, 12)
	}
	return resource, &stands
}

// watched feeds a log to a state and follows its records by events alone.
func watched(j journal) error {
	type place struct{ namespace, path string }
	state := &replica{State: core.NewAt(core.NewestLevel)}
	seen := map[place]*leasehold.Record{}
	last := map[place]leasehold.Revision{}
	for _, e := range j {
		result, err := state.apply(e)
		if err != nil {
			return err
		}
		if e.restore != nil { // revisions go on elsewhere
			clear(last)
		}
		for _, event := range result.Events {
			at := place{event.Namespace, event.Resource}
			switch event.Kind {
			default:
				continue
			case leasehold.RecordPut:
				if was := seen[at]; was != nil && event.Record.Token < was.Token {
					return fmt.Errorf("at %v the token of %v goes back", e.stamp, at)
				}
				seen[at] = event.Record
			case leasehold.RecordDeleted:
				delete(seen, at)
			}
			if event.Revision <= last[at] {
				return fmt.Errorf("at %v %v changes twice at revision %d", e.stamp, at, event.Revision)
			}
			if last[at] = event.Revision; event.Kind == leasehold.RecordDeleted {
				last[at]-- // a put that meets one whose session is over makes it anew
			}
		}
		there := 0
		view := state.View(0)
		for _, namespace := range view.Namespaces() {
			page, _ := view.Records(namespace, core.RecordQuery{})
			for _, r := range page.Records {
				if there++; !reflect.DeepEqual(seen[place{namespace, r.Path}], r) {
					return fmt.Errorf("at %v %s is %+v, and events say %+v", e.stamp, r.Path, r, seen[place{namespace, r.Path}])
				}
			}
		}
		if there > len(seen) {
			return fmt.Errorf("at %v there are %d records, and events told of %d", e.stamp, there, len(seen))
		}
	}
	return nil
}
