package kernel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A locker takes a lock as clients of etcd do: see lock.
type locker struct{ session, path, prefix, resource string }

// quarters are towns of lockers: of each, one lock is held, and it takes and gives back another.
var quarters = map[int]*quarter{}

type quarter struct {
	*town
	lockers []locker
}

func newQuarter(lockers int) *quarter {
	q := &quarter{town: newTown(0)}
	q.from = []core.From{{Origins: []leasehold.Origin{{Door: "etcd", Address: "127.0.0.1:50000"}}}}
	for i := range lockers {
		session := fmt.Sprintf("%016x", q.chance.Uint64()>>1)
		q.do(&core.OpenSession{Namespace: ns, ID: session, TTL: leasehold.MaxTTL})
		l := newLocker(session, fmt.Sprintf("locks/free-%06d", i))
		held := newLocker(session, fmt.Sprintf("locks/held-%06d", i))
		q.lock(held)
		q.lockers, q.sessions = append(q.lockers, l), append(q.sessions, session)
	}
	return q
}

func newLocker(session, resource string) locker {
	return locker{session: session, resource: resource, prefix: resource + "/", path: resource + "/" + session}
}

// lock is the transaction of a concurrency.Mutex, as etcd's door translates it.
func (q *quarter) lock(l locker) {
	first := core.Op{Do: core.Get, Path: l.prefix, To: core.PrefixEnd(l.prefix), Range: true, Count: true, Most: 1,
		Select: core.Selection{By: core.ByCreate}}
	q.made++
	answer := q.do(&core.Txn{
		Namespace: ns, If: []core.Compare{{What: core.RecordCreate, Is: core.Equal, Path: l.path}},
		Then: []core.Op{{Do: core.Put, Path: l.path, Session: l.session, Link: &core.Link{
			Resource: l.resource, ID: fmt.Sprintf("%s-%026d", l.session, q.made), Holder: "etcd client at 127.0.0.1:50000",
			Wait: true, Mirror: l.prefix, MayExpire: true, Foreign: l.path}}, first},
		Else: []core.Op{{Do: core.Get, Path: l.path}, first},
	})
	if !answer.Txn.Succeeded || len(answer.Txn.Results[1].Page.Records) != 1 {
		panic("the lock is not held")
	}
}

func (q *quarter) unlock(l locker) {
	answer := q.do(&core.Txn{Namespace: ns, Then: []core.Op{{Do: core.Delete, Path: l.path}}})
	if answer.Txn.Results[0].Deleted != 1 {
		panic("the lock was not held")
	}
}

// BenchmarkLock is a lock and its end by the records that clients of etcd know them by: a transaction that puts a
// linked record and reads who is first, and one that deletes it.
func BenchmarkLock(b *testing.B) {
	for _, lockers := range []int{1, 10000} {
		b.Run(fmt.Sprint("locks=", lockers), func(b *testing.B) {
			q := quarters[lockers]
			if q == nil {
				q = newQuarter(lockers)
				quarters[lockers] = q
			}
			q.step = time.Millisecond
			b.ReportAllocs()
			for b.Loop() {
				l := q.lockers[q.chance.IntN(len(q.lockers))]
				q.lock(l)
				q.unlock(l)
			}
		})
	}
}
