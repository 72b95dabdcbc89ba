package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// Doors tell a read, or a transaction, that is refused while very many records are being collected from others that are
// refused as too much: it is possible again when they are gone.
func TestCrowdedIsTold(t *testing.T) {
	d := newDesk(t)
	for i := range kernel.MaxReadWork {
		id := fmt.Sprint("s", i)
		d.must(&core.OpenSession{Namespace: ns, ID: id, TTL: time.Minute})
		d.must(&core.PutRecord{Namespace: ns, Path: "r/" + id, Session: id})
	}
	d.at(2 * time.Minute)
	count := &core.Txn{Namespace: ns, Then: []core.Op{{Do: core.Get, Path: "r/", To: "r0", Range: true, Count: true}}}
	if answer := d.do(count); answer.Err == nil || !core.Crowded(answer.Err) {
		t.Errorf("while they are collected it is answered %v", answer.Err)
	}
	if core.Crowded(nil) || core.Crowded(d.do(&core.Txn{Namespace: ns, If: make([]core.Compare, 129)}).Err) {
		t.Error("what is refused otherwise is told so, too")
	}
	d.tickAll()
	if answer := d.must(count); answer.Txn.Results[0].Page.Count != 0 {
		t.Errorf("then %d are left", answer.Txn.Results[0].Page.Count)
	}
}
