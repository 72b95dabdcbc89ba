//go:build linux

package consul

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
)

// soon waits for something, and fails if it does not come.
func soon[T any](w *world, what string, c <-chan T) (v T) {
	w.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		w.Fatalf("%s: %s does not come", w.name, what)
	}
	return v
}

func (w *world) lock(options api.LockOptions) *api.Lock {
	w.Helper()
	l, err := w.client().LockOpts(&options)
	w.must(err)
	return l
}

// TestLock runs the locks of consul/api.
func TestLock(t *testing.T) {
	compare(t, func(w *world) {
		ann := w.lock(api.LockOptions{Key: "lock", Value: []byte("ann"), SessionName: "ann", SessionTTL: "10s"})
		lost, err := ann.Lock(nil)
		w.must(err)
		pair, _, err := w.client().KV().Get("lock", nil)
		w.must(err)
		w.say("held: %s flags %d, by a session: %v, lock index above 0: %v", pair.Value, pair.Flags, pair.Session != "", pair.LockIndex > 0)
		_, err = ann.Lock(nil)
		w.say("again: %v", err)
		once := w.lock(api.LockOptions{Key: "lock", LockTryOnce: true, LockWaitTime: 200 * time.Millisecond})
		got, err := once.Lock(nil)
		w.say("tried once: %v %v", got == nil, err)
		bob := w.lock(api.LockOptions{Key: "lock", SessionName: "bob"})
		won := make(chan (<-chan struct{}), 1)
		go func() {
			got, err := bob.Lock(nil)
			if err != nil {
				t.Error(err)
			}
			won <- got
		}()
		select {
		case <-won:
			t.Errorf("%s: two hold the lock", w.name)
		case <-lost:
			t.Errorf("%s: the lock was lost", w.name)
		case <-time.After(500 * time.Millisecond):
		}
		w.must(ann.Unlock())
		soon(w, "the loss that an unlock tells", lost)
		lost = soon(w, "the second holder", won)
		w.say("destroy while it is held: %v", ann.Destroy())
		// The session of the holder ends: it is told at once.
		pair, _, err = w.client().KV().Get("lock", nil)
		w.must(err)
		_, err = w.client().Session().Destroy(pair.Session, nil)
		w.must(err)
		soon(w, "the loss", lost)
		w.say("unlock of what is lost: %v", bob.Unlock())
		w.must(ann.Destroy())
		pair, _, err = w.client().KV().Get("lock", nil)
		w.say("destroyed: %v %v", pair == nil, err)
		_, err = w.client().KV().Put(&api.KVPair{Key: "other", Flags: 1}, nil)
		w.must(err)
		_, err = w.lock(api.LockOptions{Key: "other"}).Lock(nil)
		w.say("of another kind: %v", err)
	})
}

// TestSemaphore runs the semaphores of consul/api.
func TestSemaphore(t *testing.T) {
	compare(t, func(w *world) {
		var all []*api.Semaphore
		for i := range 3 {
			s, err := w.client().SemaphoreOpts(&api.SemaphoreOptions{Prefix: "sem", Limit: 2, SessionName: fmt.Sprint("c", i)})
			w.must(err)
			all = append(all, s)
		}
		first, err := all[0].Acquire(nil)
		w.must(err)
		second, err := all[1].Acquire(nil)
		w.must(err)
		won := make(chan (<-chan struct{}), 1)
		go func() {
			got, err := all[2].Acquire(nil)
			if err != nil {
				t.Error(err)
			}
			won <- got
		}()
		select {
		case <-won:
			t.Errorf("%s: three of two hold", w.name)
		case <-time.After(500 * time.Millisecond):
		}
		w.must(all[0].Release())
		third := soon(w, "the third holder", won)
		select {
		case <-second:
			t.Errorf("%s: the second holder lost its place", w.name)
		case <-third:
			t.Errorf("%s: the third holder lost its place", w.name)
		default:
		}
		soon(w, "the end of the first", first)
		w.say("destroy in use: %v", all[0].Destroy())
		pairs, _, err := w.client().KV().List("sem/", nil)
		w.must(err)
		w.say("%d keys, the first %s with flags %d", len(pairs), pairs[0].Key, pairs[0].Flags)
		w.must(all[1].Release())
		w.must(all[2].Release())
		w.must(all[2].Destroy())
		pairs, _, err = w.client().KV().List("sem/", nil)
		w.say("%d keys are left: %v", len(pairs), err)
	})
}

// TestKVOfTheLibrary runs the keys and transactions of consul/api.
func TestKVOfTheLibrary(t *testing.T) {
	compare(t, func(w *world) {
		kv := w.client().KV()
		session, _, err := w.client().Session().Create(&api.SessionEntry{TTL: "10s", Behavior: api.SessionBehaviorDelete, LockDelay: time.Millisecond}, nil)
		w.must(err)
		entry, _, err := w.client().Session().Renew(session, nil)
		w.must(err)
		w.say("%s %s %v %v", entry.TTL, entry.Behavior, entry.LockDelay, entry.NodeChecks)
		_, _, err = w.client().Session().CreateNoChecks(nil, nil)
		w.must(err)
		_, _, err = w.client().Session().Create(&api.SessionEntry{TTL: "1s"}, nil)
		w.say("too short: %v", err)
		ok, _, err := kv.Acquire(&api.KVPair{Key: "k", Value: []byte("v"), Session: session}, nil)
		w.say("acquire %v %v", ok, err)
		ok, response, _, err := w.client().Txn().Txn(api.TxnOps{
			{KV: &api.KVTxnOp{Verb: api.KVSet, Key: "t", Value: []byte("1")}},
			{KV: &api.KVTxnOp{Verb: api.KVCheckSession, Key: "k", Session: session}},
			{KV: &api.KVTxnOp{Verb: api.KVGetTree, Key: "t"}},
		}, nil)
		w.must(err)
		w.say("txn %v %d results, the last %s=%s", ok, len(response.Results), response.Results[2].KV.Key, response.Results[2].KV.Value)
		ok, old, _, err := kv.Txn(api.KVTxnOps{{Verb: api.KVCAS, Key: "t", Index: 1, Value: []byte("2")}}, nil)
		w.must(err)
		w.say("stale txn %v %s", ok, old.Errors[0].What)
		ok, _, err = kv.Release(&api.KVPair{Key: "k", Session: session}, nil)
		w.say("release %v %v", ok, err)
		pair, meta, err := kv.Get("t", nil)
		w.must(err)
		w.say("index of the key %v, leader known %v", meta.LastIndex == pair.ModifyIndex, meta.KnownLeader)
		ok, _, err = kv.CAS(&api.KVPair{Key: "t", ModifyIndex: pair.ModifyIndex, Value: []byte("3")}, nil)
		w.say("cas %v %v", ok, err)
		ok, _, err = kv.DeleteCAS(&api.KVPair{Key: "t", ModifyIndex: pair.ModifyIndex}, nil)
		w.say("stale delete %v %v", ok, err)
		keys, _, err := kv.Keys("", "", nil)
		w.say("%v %v", keys, err)
		_, err = kv.DeleteTree("", nil)
		w.must(err)
		list, _, err := w.client().Session().List(nil)
		w.say("%d sessions %v", len(list), err)
		for _, s := range list {
			_, err := w.client().Session().Destroy(s.ID, nil)
			w.must(err)
		}
		stop := make(chan struct{})
		close(stop)
		w.say("renewed: %v", w.client().Session().RenewPeriodic("10s", session, nil, stop))
		err = w.client().Session().RenewPeriodic("10ms", session, nil, make(chan struct{}))
		w.say("renewed after its end: %v", errors.Is(err, api.ErrSessionExpired))
		nodes, _, err := w.client().Catalog().Nodes(nil)
		w.say("%d node %v", len(nodes), err)
		checks, _, err := w.client().Health().Node(w.node, nil)
		w.must(err)
		w.say("%s is %s", checks[0].CheckID, checks[0].Status)
		leader, err := w.client().Status().Leader()
		w.say("a leader: %v %v", leader != "", err)
		w.must(w.client().Agent().ServiceRegister(&api.AgentServiceRegistration{Name: "web"}))
		w.must(w.client().Agent().ServiceDeregister("web"))
	})
}
