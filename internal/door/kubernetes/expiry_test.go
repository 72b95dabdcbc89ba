package kubernetes

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A Lease whose holder does not renew it shows none once its duration, and a second, are over.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Lasting: parseSpaces("kube-node-lease")})
		made := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
		nodes := "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
		b.ask("POST", nodes, held("node-1", "node-1", 40)).expect(201)
		b.ask("POST", leases, held("long", "ann", 100*24*3600)).expect(201)
		b.ask("POST", leases, `{"metadata":{"name":"state"},"spec":{"holderIdentity":"terraform"}}`).expect(201)
		time.Sleep(16*time.Second - time.Millisecond)
		if l := b.get("op"); l.Spec.HolderName() != "ann" || l.Meta.ResourceVersion != made.Meta.ResourceVersion {
			t.Errorf("before its end it is %+v", l)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		over := b.get("op")
		if over.Spec.Holder == nil || *over.Spec.Holder != "" || *over.Spec.DurationSeconds != 15 ||
			over.Meta.ResourceVersion == made.Meta.ResourceVersion || over.Meta.Annotations[tokenKey] != "" {
			t.Errorf("after its end it is %+v", over)
		}
		if b.status("op").State != leasehold.Expired {
			t.Errorf("the resource is %v", b.status("op").State)
		}
		// Its holder was paused, and comes back with what it knows.
		b.put(made).expect(409, `"reason":"Conflict"`)
		over.Spec.Holder = new("bob")
		if next := b.put(over).expect(200).lease(); next.Meta.Annotations[tokenKey] <= made.Meta.Annotations[tokenKey] {
			t.Errorf("the next token is %v after %v", next.Meta.Annotations, made.Meta.Annotations)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		b.ask("GET", nodes+"/node-1", "").expect(200, `"holderIdentity":"node-1"`)
		for name, holder := range map[string]string{"long": "ann", "state": "terraform", "op": ""} {
			if l := b.get(name); l.Spec.HolderName() != holder {
				t.Errorf("%s is held by %q an hour later", name, l.Spec.HolderName())
			}
		}
	})
}

// A label is no sign of life: only what changes the spec renews.
func TestALabelDoesNotRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{})
		made := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
		time.Sleep(10 * time.Second)
		labelled := b.ask("PATCH", leases+"/op", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", mergePatch).expect(200).lease()
		if labelled.Meta.Annotations[tokenKey] != made.Meta.Annotations[tokenKey] || labelled.Spec.HolderName() != "ann" {
			t.Errorf("with a label it is %+v", labelled)
		}
		time.Sleep(6*time.Second + time.Millisecond)
		synctest.Wait()
		if l := b.get("op"); l.Spec.HolderName() != "" || l.Meta.Labels["a"] != "b" {
			t.Errorf("after its end it is %+v", l)
		}
	})
}

// A break ends what a client holds. Where there is no duration, there is no holder afterwards: Terraform takes an empty
// one for somebody.
func TestBreak(t *testing.T) {
	b := newBench(t, Config{})
	made := b.ask("POST", leases, `{"metadata":{"name":"state"},"spec":{"holderIdentity":"one"}}`).expect(201).lease()
	s := b.status("state")
	b.do(&core.Break{Namespace: "default", Resource: "kubernetes/ns/state", Token: s.Holders[0].Token, Reason: "r"})
	got := b.get("state")
	if got.Spec.Holder != nil || got.Meta.ResourceVersion == made.Meta.ResourceVersion {
		t.Errorf("after a break it is %+v", got)
	}
	got.Spec.Holder = new("two")
	b.put(got).expect(200, `"holderIdentity":"two"`)
	// A lease that gets a duration later ends by it.
	got = b.get("state")
	token := got.Meta.Annotations[tokenKey]
	got.Spec.DurationSeconds = new(int32(15))
	if b.put(got).expect(200).lease().Meta.Annotations[tokenKey] == token || b.status("state").Holders[0].TTL != 16*time.Second {
		t.Errorf("with a duration it is %+v", b.status("state"))
	}
}

// In a strict namespace nobody takes a Lease from a holder that is alive; anywhere, nobody takes one that is held
// through another door.
func TestStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Strict: parseSpaces("ns")})
		made := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
		taken := made.Clone()
		taken.Spec.Holder = new("bob")
		b.put(taken).expect(409, `"reason":"Conflict"`, `it is held by ann, whose lease has not expired: this namespace is strict`)
		b.ask("PATCH", leases+"/op", `{"spec":{"holderIdentity":"bob"}}`, "Content-Type", mergePatch).expect(409, "strict")
		free := made.Clone()
		free.Spec.Holder = new("")
		free = b.put(free).expect(200).lease()
		free.Spec.Holder = new("bob")
		b.put(free).expect(200)
		time.Sleep(17 * time.Second)
		synctest.Wait()
		taken = b.get("op")
		taken.Spec.Holder = new("eve")
		b.put(taken).expect(200)

		loose := newBench(t, Config{})
		loose.do(&core.Acquire{Namespace: "default", Resource: "kubernetes/ns/op", ID: "own", Holder: "worker-7", TTL: time.Minute})
		loose.ask("POST", leases, held("op", "ann", 15)).expect(409, `"reason":"Conflict"`, "worker-7")
		loose.ask("POST", leases, `{"metadata":{"name":"op"},"spec":{}}`).expect(201)
		if l := loose.get("op"); l.Spec.HolderName() != "worker-7" || l.Meta.Annotations[tokenKey] == "" {
			t.Errorf("a Lease whose resource is held when it is created is %+v", l)
		}
		loose.ask("PATCH", leases+"/op", `{"spec":{"holderIdentity":"ann"}}`, "Content-Type", mergePatch).expect(409, "worker-7")
		loose.do(&core.Release{Namespace: "default", ID: "own"})
		loose.ask("PATCH", leases+"/op", `{"spec":{"holderIdentity":"ann"}}`, "Content-Type", mergePatch).expect(200)
	})
}

func (b *bench) do(command core.Command) core.Answer {
	b.t.Helper()
	answer, err := b.engine.Do(b.t.Context(), command)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}
