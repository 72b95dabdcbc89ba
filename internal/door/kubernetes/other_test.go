package kubernetes

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// A Lease that had a holder shows who holds it through another door, at versions of its own, in reads, lists and
// watches; and to delete it breaks that lease.
func TestHoldersOfOtherDoors(t *testing.T) { bubble(t, holdersOfOtherDoors) }

func holdersOfOtherDoors(t *testing.T, b *port) {
	ann := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
	w := b.watch("&resourceVersion=" + ann.Meta.ResourceVersion)
	defer w.close()
	free := ann.Clone()
	free.Spec.Holder = new("")
	free = b.put(free).expect(200).lease()
	b.do(&core.Acquire{Namespace: "default", Resource: "kubernetes/ns/op", ID: "own", Holder: "worker-7", TTL: time.Minute})

	seen := b.get("op")
	if seen.Spec.HolderName() != "worker-7" || seen.Meta.ResourceVersion <= free.Meta.ResourceVersion ||
		seen.Meta.Annotations[tokenKey] <= ann.Meta.Annotations[tokenKey] {
		t.Fatalf("while another holds it, it is %+v", seen)
	}
	if list := b.ask("GET", leases, "").expect(200); !strings.Contains(list.body, `"holderIdentity":"worker-7"`) {
		t.Errorf("the list is %s", list.body)
	}
	w.expect("MODIFIED op ", "MODIFIED op worker-7")
	// An elector that saw nothing of it, or all of it, takes nothing.
	b.put(free).expect(409, `"reason":"Conflict"`)
	taken := seen.Clone()
	taken.Spec.Holder = new("bob")
	b.put(taken).expect(409, `"reason":"Conflict"`, "another door")
	seen = b.ask("PATCH", leases+"/op", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", mergePatch).expect(200).lease()
	w.expect("MODIFIED op worker-7")
	if seen.Spec.HolderName() != "worker-7" || seen.Meta.Labels["a"] != "b" {
		t.Errorf("with a label it is %+v", seen)
	}
	b.do(&core.Release{Namespace: "default", ID: "own"})
	if over := b.get("op"); over.Spec.HolderName() != "" || over.Meta.Labels["a"] != "b" {
		t.Errorf("after its release it is %+v", over)
	}
	w.expect("MODIFIED op ")

	b.do(&core.Acquire{Namespace: "default", Resource: "kubernetes/ns/op", ID: "again", Holder: "worker-7", TTL: time.Minute})
	w.expect("MODIFIED op worker-7")
	b.ask("DELETE", leases+"/op", "").expect(200)
	w.expect("DELETED op worker-7")
	if s := b.status("op"); s.State != leasehold.Broken {
		t.Errorf("after the Lease was deleted the resource is %v", s.State)
	}
}

// Whatever is written to a Lease that shows a holder of another door, nobody is told that the lease is another's, and
// nobody loses it.
func TestWritesBesideHoldersOfOtherDoors(t *testing.T) {
	b := newBench(t, Config{})
	ann := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
	s := b.status("op")
	b.do(&core.Break{Namespace: "default", Resource: "kubernetes/ns/op", Token: s.Holders[0].Token, Reason: "r"})
	b.do(&core.Acquire{Namespace: "default", Resource: "kubernetes/ns/op", ID: "own", Holder: "worker-7", TTL: time.Minute})
	shown := b.get("op")
	again := ann.Clone() // as it is kept, to the byte
	again.Meta.ResourceVersion = shown.Meta.ResourceVersion
	b.put(again).expect(409, `"reason":"Conflict"`, "worker-7", "another door")
	for what, change := range map[string]func(*object.Lease){
		"emptied":             func(l *object.Lease) { l.Spec.Holder = new("") },
		"without a holder":    func(l *object.Lease) { l.Spec.Holder = nil },
		"taken":               func(l *object.Lease) { l.Spec.Holder = new("bob") },
		"renewed":             func(l *object.Lease) { l.Spec.RenewTime = object.NewMicroTime(time.Now()) },
		"with another length": func(l *object.Lease) { l.Spec.DurationSeconds = new(int32(99)) },
	} {
		l := shown.Clone()
		change(l)
		if b.put(l).expect(409, `"reason":"Conflict"`, "another door"); b.status("op").State != leasehold.Leased {
			t.Fatalf("%s, the resource is %v", what, b.status("op").State)
		}
	}
	b.do(&core.PutRecord{Namespace: "default", Path: "kubernetes/ns/op", Value: encode(shown), Fence: core.Fence{Lease: "own"}})
	if l := b.get("op"); l.Spec.HolderName() != "worker-7" || b.status("op").State != leasehold.Leased {
		t.Errorf("when its holder has written the record, it is %+v", l)
	}
	// A list as of then shows who held it then.
	version := b.get("op").Meta.ResourceVersion
	b.do(&core.Release{Namespace: "default", ID: "own"})
	list := b.ask("GET", leases+"?resourceVersionMatch=Exact&resourceVersion="+version, "").expect(200)
	if !strings.Contains(list.body, `"holderIdentity":"worker-7"`) {
		t.Errorf("the list is %s", list.body)
	}
	list = b.ask("GET", leases+"?resourceVersionMatch=Exact&resourceVersion="+shown.Meta.ResourceVersion, "").expect(200)
	if !strings.Contains(list.body, `"holderIdentity":"worker-7"`) {
		t.Errorf("the list is %s", list.body)
	}
}
