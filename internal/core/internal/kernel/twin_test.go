package kernel_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/wire"
)

// A server that read a snapshot must go on exactly like those that did not: what is not written must decide nothing.

// written returns the snapshot of a state.
func written(t testing.TB, s *core.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := wire.WriteSnapshot(&b, s.Freeze()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// reread returns what another server has that read a snapshot of a state.
func reread(t testing.TB, s *core.State) *core.State {
	t.Helper()
	again, _, err := wire.ReadSnapshotUpTo(nextLevel, bytes.NewReader(written(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// differently says how two servers differ in what they made of one entry; empty if they do not.
func differently(a, b *core.State, x, y core.Result) string {
	if p, q := renderAny(x), renderAny(y); p != q {
		return fmt.Sprintf("one says\n%s\nthe other\n%s", p, q)
	}
	if a.Work() != b.Work() {
		return fmt.Sprintf("one counts %d units of work, the other %d", a.Work(), b.Work())
	}
	return ""
}

// mustAgree lets a desk do an entry, and another server that reads a snapshot before it.
func (d *desk) mustAgree(commands ...core.Command) {
	d.Helper()
	other := &desk{TB: d, state: reread(d, d.state), now: d.now}
	other.state.SetWorkLike(d.state)
	mine, its := d.apply(commands...), other.apply(commands...)
	if how := differently(d.state, other.state, mine, its); how != "" {
		d.Errorf("two servers made two states of one entry: %s", how)
	}
	if !bytes.Equal(written(d, d.state), written(d, other.state)) {
		d.Error("two servers have two states after one entry")
	}
}

// waits is must for somebody who is to wait.
func (d *desk) waits(c *core.Acquire) {
	d.Helper()
	if a := d.must(c); a.Waiter == nil {
		d.Fatalf("%s does not wait", c.ID)
	}
}

// The queue of a pool is not looked at again while nothing changes there. Who waits for a unit and for something else
// waits for changes elsewhere, too: then a look does something, and all servers must look, or none.
func TestServersLookAtTheQueueOfAPoolAlike(t *testing.T) {
	units := []core.HostUnit{{Name: "u0"}, {Name: "u1"}}
	for name, prepare := range map[string]func(d *desk){
		"the other resource rested": func(d *desk) {
			d.at(time.Second).must(&core.Acquire{Namespace: ns, Resource: "b", ID: "old", Holder: "old", TTL: time.Second, Grace: 10 * time.Second})
			d.at(3 * time.Second).must(&core.Tick{}) // it has died, and b rests until 12 s
			d.waits(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "w", Holder: "w", Session: "s", Slots: 1, Wait: time.Hour,
				Also: []core.Item{{Resource: "b", ID: "wb"}}})
		},
		"a waiter for another pool was gone": func(d *desk) {
			d.at(time.Second).must(&core.SetUnits{Namespace: ns, Resource: "tpu", Host: "h", Units: units})
			d.must(&core.Acquire{Namespace: ns, Resource: "tpu", ID: "t", Holder: "t", Session: "s", Slots: 1})
			// It wants two, of which one is free and kept for it, and gives up at 12 s.
			d.waits(&core.Acquire{Namespace: ns, Resource: "tpu", ID: "v", Holder: "v", Session: "s", Slots: 2, Wait: 11 * time.Second})
			d.at(3 * time.Second)
			d.waits(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "w", Holder: "w", Session: "s", Slots: 1, Wait: time.Hour,
				Also: []core.Item{{Resource: "tpu", ID: "wb", Slots: 1}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{TB: t, state: core.NewAt(core.NewestLevel)}
			d.at(time.Second).must(&core.OpenSession{Namespace: ns, ID: "s", TTL: time.Hour})
			d.must(&core.SetUnits{Namespace: ns, Resource: "gpu", Host: "h", Units: units})
			prepare(d)
			// One who waits behind, and shows every few seconds that it is alive.
			d.waits(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "p", Holder: "p", Slots: 2, Wait: time.Hour})
			d.at(5 * time.Second).mustAgree(&core.Renew{Namespace: ns, ID: "p"})
			// The renewal is stamped after 12 s, and before the tick.
			d.at(13*time.Second).mustAgree(&core.Renew{Namespace: ns, ID: "p"},
				&core.Acquire{Namespace: ns, Resource: "y", ID: "y", Holder: "me", TTL: time.Minute})
			if d.mustAgree(&core.Tick{}); len(d.state.View(0).Status(ns, "gpu", 1).Holders) == 0 {
				t.Error("time has made room for w, and the tick did not let it in")
			}
		})
	}
}

// What a look counts may refuse commands in the same entry, so that all servers must count alike.
func TestServersCountLooksAlike(t *testing.T) {
	d := &desk{TB: t, state: core.NewAt(core.NewestLevel)}
	d.at(time.Second).must(&core.OpenSession{Namespace: ns, ID: "s", TTL: time.Hour})
	for i := range 900 { // names of an area that are held, and of which the last is in the way
		d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprintf("repo/web:f%04d*", i), ID: fmt.Sprint("f", i), Holder: "f", Session: "s"})
	}
	d.must(&core.Acquire{Namespace: ns, Resource: "repo/web:z*", ID: "z", Holder: "z", Session: "s"})
	const pools, each = 6, 16
	var alive []core.Command
	for k := range pools {
		gpu := fmt.Sprint("gpu", k)
		units := make([]core.HostUnit, 64)
		for i := range units {
			units[i].Name = fmt.Sprintf("u%d", i)
		}
		d.must(&core.SetUnits{Namespace: ns, Resource: gpu, Host: "h", Units: units})
		for i := range each { // who want a unit and a file at once
			d.waits(&core.Acquire{Namespace: ns, Resource: gpu, ID: fmt.Sprintf("j%d-%d", k, i), Holder: "j", Session: "s", Slots: 1,
				Select: &leasehold.Select{Where: fmt.Sprintf("unit=u%d", i)}, Wait: time.Hour,
				Also: []core.Item{{Resource: fmt.Sprintf("repo/web:**/z%d-%d", k, i), ID: fmt.Sprintf("k%d-%d", k, i)}}})
		}
		d.waits(&core.Acquire{Namespace: ns, Resource: gpu, ID: fmt.Sprint("w", k), Holder: "w", Slots: 2, Wait: time.Hour})
		alive = append(alive, &core.Renew{Namespace: ns, ID: fmt.Sprint("w", k)})
	}
	for _, c := range alive {
		d.must(c)
	}
	d.at(2 * time.Second).mustAgree(append(alive, &core.Acquire{Namespace: ns, Resource: "x", ID: "x", Holder: "me", TTL: time.Minute})...)
}

// TestServersAgreeOnEverything feeds logs of all subjects to a server that goes on, and to one that is stopped after
// each entry and reads its snapshot. They say the same, count the same and have the same. What they say is true. A snapshot
// after each entry takes its time, so that these logs are fewer.
func TestServersAgreeOnEverything(t *testing.T) {
	forEachLog(t, max(1, logs(testing.Short())/6), wideJournal, func(seed uint64, j journal) error { return againstReread(t, j) })
}

func againstReread(t *testing.T, j journal) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	one, two := &replica{State: core.NewAt(core.NewestLevel)}, &replica{State: core.NewAt(core.NewestLevel)}
	for i, e := range j {
		kept := keeping(one.State)
		a, err := one.apply(e)
		if err != nil {
			return err
		}
		b, err := two.apply(e)
		if err != nil {
			return err
		}
		if how := differently(one.State, two.State, a, b); how != "" {
			return fmt.Errorf("at %v %s", e.stamp, how)
		}
		if err := honest(one.State, e, a, kept); err != nil {
			return fmt.Errorf("at %v %w", e.stamp, err)
		}
		bytesOfTwo := written(t, two.State)
		if i%8 == 0 && !bytes.Equal(written(t, one.State), bytesOfTwo) {
			return fmt.Errorf("at %v they have\n%s\n%s", e.stamp, render(one.State), render(two.State))
		}
		if two.State, _, err = wire.ReadSnapshotUpTo(nextLevel, bytes.NewReader(bytesOfTwo)); err != nil {
			return fmt.Errorf("at %v: %w", e.stamp, err)
		}
	}
	return nil
}

// keeping returns the reservations that keep a whole resource for somebody who did not claim it yet, by id.
func keeping(s *core.State) map[string]*reservation.Reservation {
	kept := map[string]*reservation.Reservation{}
	for p := range s.Pieces() {
		if r, ok := p.Value.(*reservation.Reservation); ok && r.Begun && r.Over == 0 && r.Lease == "" && r.Slots == 0 {
			kept[r.ID] = r
		}
	}
	return kept
}

// honest says what is wrong with the answers of an entry whatever the state was: what was reserved is there, what a
// transaction acquired it has, and nobody got what is kept for somebody else.
func honest(s *core.State, e entry, result core.Result, kept map[string]*reservation.Reservation) error {
	for id := range keeping(s) {
		r := kept[id]
		for _, event := range result.Events {
			if r != nil && event.Kind == leasehold.Acquired && event.Namespace == ns && event.Resource == r.Resource {
				return fmt.Errorf("%s has %s, which is kept for reservation %s", event.ID, r.Resource, id)
			}
		}
	}
	for i, c := range e.commands {
		answer := result.Answers[i]
		if answer.Err != nil {
			continue
		}
		switch c := c.(type) {
		case *core.Reserve:
			if i == len(e.commands)-1 && !c.Extends() && !stands(s, c.ID) {
				return fmt.Errorf("reservation %s was made, and is not there", c.ID)
			}
		case *core.Txn:
			if err := done(c, answer.Txn); err != nil {
				return err
			}
		}
	}
	return nil
}

// stands reports whether a reservation or a series is there and not over.
func stands(s *core.State, id string) (there bool) {
	for p := range s.Pieces() {
		switch v := p.Value.(type) {
		case *reservation.Reservation:
			there = there || v.ID == id && v.Over == 0
		case *reservation.Series:
			there = there || v.ID == id
		}
	}
	return there
}

// done says what a transaction did not do that it says it did.
func done(c *core.Txn, answer *core.TxnAnswer) error {
	list := c.Else
	if answer.Succeeded {
		list = c.Then
	}
	for i, o := range list {
		r := answer.Results[i]
		switch {
		case o.Do == core.Nested:
			if err := done(o.Txn, r.Txn); err != nil {
				return err
			}
		case o.Do == core.AcquireLease && (r.Lease == nil || len(r.Also) != len(o.Acquire.Also)):
			return fmt.Errorf("a transaction succeeded, and has no lease on %s", o.Acquire.Resource)
		}
	}
	return nil
}
