package kubernetes

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
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
	b.ask("DELETE", leases+"/op", "").expect(200)
	if s := b.status("op"); s.State != leasehold.Broken {
		t.Errorf("after the Lease was deleted the resource is %v", s.State)
	}
}
