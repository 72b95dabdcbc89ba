package core_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
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
	again, _, err := wire.ReadSnapshot(bytes.NewReader(written(t, s)))
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
