package consul

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

const short = `{"TTL":"10s","LockDelay":"5s","Name":"web"}`

func TestLifeOfALock(t *testing.T) {
	b := newBench(t, Config{})
	ann, bob := b.open(short), b.open(`{"Name":"bob"}`)
	first := b.ask("PUT /v1/kv/a?acquire="+ann+"&flags=7", "x").is("true")
	held := b.get("a")
	if held.Session != ann || held.Flags != 7 || string(held.Value) != "x" || held.LockIndex == 0 {
		t.Errorf("the key is %+v", held)
	}
	if first.header.Get(tokenHeader) != strconv.FormatUint(held.LockIndex, 10) {
		t.Errorf("the token is %q and the lock index %d", first.header.Get(tokenHeader), held.LockIndex)
	}
	if s := b.status("a"); len(s.Holders) != 1 || s.Holders[0].Holder != "web" || s.Holders[0].Session != ann {
		t.Errorf("the core has %+v", s.Holders)
	}
	refused := b.ask("PUT /v1/kv/a?acquire="+bob, "y").is("false")
	if refused.header.Get(reasonHeader) == "" {
		t.Error("nothing says why the answer is false")
	}
	// The same session again writes the key and keeps the lock.
	b.ask("PUT /v1/kv/a?acquire="+ann, "z").is("true")
	again := b.get("a")
	if again.LockIndex != held.LockIndex || string(again.Value) != "z" || again.ModifyIndex <= held.ModifyIndex {
		t.Errorf("acquired again, the key is %+v", again)
	}
	// Locks are advisory: anybody may write, and the lock stays, with its index.
	b.ask("PUT /v1/kv/a", "w").is("true")
	if e := b.get("a"); e.Session != ann || e.LockIndex != held.LockIndex || string(e.Value) != "w" {
		t.Errorf("written by another, the key is %+v", e)
	}
	b.ask("PUT /v1/kv/a?release="+bob, "").is("false")
	b.ask("PUT /v1/kv/a?release="+ann, "free").is("true")
	if e := b.get("a"); e.Session != "" || string(e.Value) != "free" || e.LockIndex != held.LockIndex {
		t.Errorf("released, the key is %+v", e)
	}
	b.ask("PUT /v1/kv/a?release="+ann, "").is("false")
	b.ask("PUT /v1/kv/none?release="+ann, "").is("false")
	b.ask("PUT /v1/kv/a?acquire="+bob, "").is("true") // a clean end has no lock-delay
	if e := b.get("a"); e.LockIndex <= held.LockIndex {
		t.Errorf("the next lock has index %d after %d", e.LockIndex, held.LockIndex)
	}
}

func TestSessionEndReleasesOrDeletes(t *testing.T) {
	for _, behavior := range []string{release, remove} {
		for _, how := range []string{"destroyed", "expired"} {
			t.Run(behavior+" "+how, func(t *testing.T) {
				inTime(t, func(t *testing.T, b *bench) {
					ann := b.open(`{"TTL":"10s","LockDelay":"5s","Behavior":"` + behavior + `"}`)
					bob := b.open("")
					b.ask("PUT /v1/kv/a?acquire="+ann, "x").is("true")
					before := b.get("a")
					if how == "destroyed" {
						b.ask("PUT /v1/session/destroy/"+ann, "").is("true")
					} else {
						time.Sleep(20*time.Second + time.Millisecond)
					}
					if behavior == remove {
						b.ask("GET /v1/kv/a", "").expect(404)
					} else if e := b.get("a"); e.Session != "" || e.ModifyIndex <= before.ModifyIndex || string(e.Value) != "x" {
						t.Errorf("the key is %+v", e)
					}
					b.ask("PUT /v1/kv/a?acquire="+bob, "y").is("false") // the lock-delay
					time.Sleep(4900 * time.Millisecond)
					b.ask("PUT /v1/kv/a?acquire="+bob, "y").is("false")
					time.Sleep(200 * time.Millisecond)
					b.ask("PUT /v1/kv/a?acquire="+bob, "y").is("true")
					if e := b.get("a"); e.LockIndex <= before.LockIndex {
						t.Errorf("the lock index went from %d to %d", before.LockIndex, e.LockIndex)
					}
				})
			})
		}
	}
}

// In Consul the index begins anew when a key is deleted.
func TestLockIndexNeverGoesBack(t *testing.T) {
	b := newBench(t, Config{})
	ann, bob := b.open(short), b.open(short)
	last := uint64(0)
	for i := range 20 {
		s := []string{ann, bob}[i%2]
		b.ask("PUT /v1/kv/a?acquire="+s, "").is("true")
		e := b.get("a")
		if e.LockIndex <= last {
			t.Fatalf("the lock index went from %d to %d", last, e.LockIndex)
		}
		last = e.LockIndex
		b.ask("PUT /v1/kv/a", "plain").is("true")
		switch i % 3 {
		case 0:
			b.ask("DELETE /v1/kv/a", "").is("true") // no lock-delay
		case 1:
			b.ask("PUT /v1/kv/a?release="+s, "").is("true")
		case 2:
			b.ask("PUT /v1/kv/a?release="+s, "").is("true")
			b.ask(fmt.Sprintf("DELETE /v1/kv/a?cas=%d", b.get("a").ModifyIndex), "").is("true")
		}
	}
}

// A lock is a lease of ours: other doors see it, and break it.
func TestOtherDoorsSeeAndBreakLocks(t *testing.T) {
	inTime(t, func(t *testing.T, b *bench) {
		ann, bob := b.open(short), b.open(short)
		b.ask("PUT /v1/kv/jobs/x?acquire="+ann, "").is("true")
		lease := b.status("jobs/x").Holders[0]
		b.do(&core.Break{Namespace: leasehold.DefaultNamespace, ID: lease.ID, By: "ops", Reason: "stuck"})
		if e := b.get("jobs/x"); e.Session != "" {
			t.Errorf("the broken lock shows as %+v", e)
		}
		b.ask("PUT /v1/kv/jobs/x?acquire="+bob, "").is("false") // the lock-delay
		b.ask("PUT /v1/kv/jobs/x?release="+ann, "").is("false")
		time.Sleep(5*time.Second + time.Millisecond)
		b.ask("PUT /v1/kv/jobs/x?acquire="+bob, "").is("true")
	})
}

func TestLeasesOfOtherDoorsAreInTheWay(t *testing.T) {
	b := newBench(t, Config{})
	ann := b.open(short)
	b.do(&core.Acquire{Namespace: leasehold.DefaultNamespace, Resource: "x", ID: "native", Holder: "worker", TTL: time.Minute})
	b.ask("PUT /v1/kv/x?acquire="+ann, "").is("false")
	b.ask("GET /v1/kv/x", "").expect(404)
	b.do(&core.Release{Namespace: leasehold.DefaultNamespace, ID: "native"})
	b.ask("PUT /v1/kv/x?acquire="+ann, "").is("true")
}

// What the clients of etcd hold shows as their keys, and no key of Consul can stand for it.
func TestLocksOfEtcdAreInTheWay(t *testing.T) {
	b := newBench(t, Config{})
	ann := b.open(short)
	b.do(&core.OpenSession{Namespace: leasehold.DefaultNamespace, ID: "s", TTL: time.Hour})
	b.do(&core.PutRecord{Namespace: leasehold.DefaultNamespace, Path: "x/1", Session: "s",
		Link: &core.Link{Resource: "x", ID: "e", Holder: "etcd", Wait: true, Mirror: "x/"}})
	b.ask("PUT /v1/kv/x?acquire="+ann, "").is("false")
	b.do(&core.DeleteRecord{Namespace: leasehold.DefaultNamespace, Path: "x/1"})
	b.ask("PUT /v1/kv/x?acquire="+ann, "").is("true")
}

func TestOneOfManyHolds(t *testing.T) {
	b := newBench(t, Config{})
	var sessions []string
	for range 16 {
		sessions = append(sessions, b.open(short))
	}
	for round := range 10 {
		var all sync.WaitGroup
		got := make([]told, len(sessions))
		for i, s := range sessions {
			all.Go(func() { got[i] = b.ask("PUT /v1/kv/a?acquire="+s, s) })
		}
		all.Wait()
		winner := ""
		for i := range got {
			if got[i].expect(200).body == "true" {
				if winner != "" {
					t.Fatalf("%s and %s hold in round %d", winner, sessions[i], round)
				}
				winner = sessions[i]
			}
		}
		if e := b.get("a"); e.Session != winner || string(e.Value) != winner {
			t.Fatalf("%q won, and the key is %+v", winner, e)
		}
		b.ask("PUT /v1/kv/a?release="+winner, "").is("true")
	}
}

// The same session that asks several times at once gets one lease, and every answer is yes.
func TestOneSessionAsksAtOnce(t *testing.T) {
	b := newBench(t, Config{})
	s := b.open(short)
	for range 20 {
		var all sync.WaitGroup
		got := make([]told, 8)
		for i := range got {
			all.Go(func() { got[i] = b.ask("PUT /v1/kv/a?acquire="+s, "") })
		}
		all.Wait()
		for i := range got {
			got[i].is("true")
		}
		b.ask("DELETE /v1/kv/a", "").is("true")
	}
}

// A key that was locked shows that somebody has it through another door, so that those who want the lock wait for the
// key to change.
func TestHoldersOfOtherDoors(t *testing.T) {
	b := newBench(t, Config{})
	ann := b.open(short)
	b.ask("PUT /v1/kv/a?acquire="+ann, "x").is("true")
	b.ask("PUT /v1/kv/a?release="+ann, "x").is("true")
	before := b.get("a")
	b.do(&core.Acquire{Namespace: "default", Resource: "a", ID: "own", Holder: "worker-7", TTL: time.Minute})
	e := b.get("a")
	if e.Session != "own" || e.ModifyIndex <= before.ModifyIndex || e.LockIndex <= before.LockIndex || string(e.Value) != "x" {
		t.Errorf("while another holds it, the key is %+v", e)
	}
	b.ask("PUT /v1/kv/a?acquire="+ann, "y").is("false")
	b.do(&core.Release{Namespace: "default", ID: "own"})
	if e := b.get("a"); e.Session != "" {
		t.Errorf("after its release the key is %+v", e)
	}
	b.ask("PUT /v1/kv/a?acquire="+ann, "y").is("true")
}
