package kubernetes

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A fullEngine writes records only if they renew a lease, as one does whose disk is nearly full.
type fullEngine struct {
	*memory.Engine
	full bool
}

func (f *fullEngine) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if put, ok := c.(*core.PutRecord); ok && f.full && !put.Renews() {
		return core.Answer{}, &leasehold.Error{Code: leasehold.Limited, Message: "the disk is nearly full"}
	}
	return f.Engine.Do(ctx, c)
}

func (f *fullEngine) Submit(batch []engine.Submission) { engine.SubmitEach(f.Do, batch) }

// When a disk is full a Lease is renewed and released, and nothing else is written.
func TestFullDisk(t *testing.T) {
	e := &fullEngine{Engine: doortest.StartMemory(t)}
	b := &bench{t, e.Engine, New(door.NewBackend(e, door.Options{}), Config{})}
	ann := b.ask("POST", leases, held("op", "ann", 15)).expect(201).lease()
	b.ask("POST", leases, `{"metadata":{"name":"free"},"spec":{}}`).expect(201)
	e.full = true
	ann.Spec.DurationSeconds = new(int32(30))
	ann = b.put(ann).expect(200).lease()
	b.ask("POST", leases, held("other", "ann", 15)).expect(429)
	b.ask("PATCH", leases+"/free", `{"spec":{"leaseDurationSeconds":9}}`, "Content-Type", mergePatch).expect(429)
	b.ask("PATCH", leases+"/op", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", mergePatch).expect(429)
	late := ann.Clone()
	ann.Spec.Holder = new("")
	free := b.put(ann).expect(200).lease()
	if free.Spec.HolderName() != "" || free.Meta.ResourceVersion == late.Meta.ResourceVersion ||
		free.Meta.ResourceVersion != b.get("op").Meta.ResourceVersion {
		t.Errorf("released, it is %+v", free)
	}
	if s := b.status("op"); s.Last == nil || s.Last.How != leasehold.Released {
		t.Errorf("the resource is %+v", s)
	}
	late.Spec.Holder = new("")
	b.put(late).expect(409)
}
