package kernel_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What a transaction ends lets others in, who may be more than ended, and the last that a cap has room for. The
// transaction has what it acquires all the same: it was promised before.
func TestTransactionHasItsPlaceUnderACap(t *testing.T) {
	d := newDesk(t).at(time.Second)
	d.must(&core.SetCaps{Caps: leasehold.Caps{Leases: 2}})
	d.must(&core.OpenSession{Namespace: ns, ID: "s", TTL: time.Hour})
	d.must(&core.PutRecord{Namespace: ns, Path: "face", Session: "s",
		Link: &core.Link{Resource: "m", ID: "m1", Holder: "me"}})
	for _, id := range []string{"w1", "w2"} {
		d.must(&core.Acquire{Namespace: ns, Resource: "m", ID: id, Holder: id, Session: "s", Party: id, Slots: 1,
			Capacity: 2, Wait: time.Hour})
	}
	answer := d.must(&core.Txn{Namespace: ns, Then: []core.Op{
		{Do: core.Delete, Path: "face"},
		{Do: core.AcquireLease, Acquire: &core.Acquire{Namespace: ns, Resource: "x", ID: "mine", Holder: "me",
			TTL: time.Minute}},
	}})
	if answer.Txn.Results[1].Lease == nil {
		t.Error("the record is deleted, and the lease was not granted")
	}
}
