//go:build linux

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// begin opens a transaction of its own connection.
func begin(t testing.TB, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := connect(t, theServer(t).URL()).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// blocked waits until some session waits for a lock.
func blocked(t testing.TB) {
	t.Helper()
	conn := connect(t, theServer(t).URL())
	waitFor(t, func() bool {
		var n int
		err := conn.QueryRow(t.Context(), "select count(*) from pg_locks where not granted").Scan(&n)
		return err == nil && n > 0
	})
}

func commit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The time that a call waited for a lock is not taken off the lease.
func TestTheClockIsReadAfterTheLock(t *testing.T) {
	s := newStore(t)
	release(t, s, "a", "nobody") // makes the row
	tx := begin(t, pgx.ReadCommitted)
	s.execute(t, tx, "select from @.resources for update")
	var g store.Grant
	var asked sync.WaitGroup
	asked.Go(func() { g = acquire(t, s, request("a", "one")) })
	blocked(t)
	time.Sleep(300 * time.Millisecond)
	unlocked := time.Now()
	commit(t, tx)
	asked.Wait()
	if g.Acquired.Before(unlocked) || g.Remaining != time.Minute || g.Token < leasehold.Token(unlocked.UnixMicro()) {
		t.Errorf("granted at %v with %v left, unlocked at %v", g.Acquired, g.Remaining, unlocked)
	}
}

// A function that waits for a row which the cleaner then removes makes a new one, and its tokens go on
// above those of the old row.
func TestTheCleanerRemovesARowThatIsWaitedFor(t *testing.T) {
	s := newStore(t)
	g := acquire(t, s, request("a", "one"))
	release(t, s, "a", "one")
	tx := begin(t, pgx.ReadCommitted)
	ahead := int64(g.Token) + 1e12 // as if the clock had gone back since
	s.execute(t, tx, "update @.resources set last = $1, touched = touched - interval '1 hour'", ahead)
	s.execute(t, tx, "select @.clean(10, '1 minute')")
	var next store.Grant
	var asked sync.WaitGroup
	asked.Go(func() { next = acquire(t, s, request("a", "two")) })
	blocked(t)
	commit(t, tx)
	asked.Wait()
	if int64(next.Token) <= ahead {
		t.Errorf("token %d after %d", next.Token, ahead)
	}
	state, err := s.Read(t.Context(), "a")
	if err != nil || state.Holding != 1 || state.Holders[0].ID != "two" {
		t.Errorf("granted, and the state is %+v, %v", state, err)
	}
}

func TestTheCleanerLeavesWhatIsNeeded(t *testing.T) {
	s := newStore(t)
	conn := connect(t, theServer(t).URL())
	acquire(t, s, request("held", "one"))
	acquire(t, s, request("idle", "one"))
	release(t, s, "idle", "one")
	acquire(t, s, request("waited", "one"))
	enqueue(t, s, request("waited", "two"))
	if err := s.cleanOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), request("idle", "one")); code(err) != leasehold.Lost {
		t.Errorf("a mark of less than ten minutes is gone: %v", err)
	}
	s.execute(t, conn, "update @.resources set touched = touched - interval '11 minutes'")
	s.execute(t, conn, "update @.marks set until = until - interval '11 minutes'")
	if err := s.cleanOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rows, marks, waiters int
	err := conn.QueryRow(t.Context(), fmt.Sprintf("select (select count(*) from %[1]s.resources), "+
		"(select count(*) from %[1]s.marks), (select count(*) from %[1]s.waiters)", s.schema)).Scan(&rows, &marks, &waiters)
	if err != nil || rows != 2 || marks != 0 || waiters != 1 {
		t.Errorf("%d rows, %d marks and %d waiters are left, %v", rows, marks, waiters, err)
	}
}

// One row that a stuck session has locked costs the other leases nothing, and is not reported as ended.
func TestRenewalsPassALockedRow(t *testing.T) {
	s := newStore(t)
	var refs []store.Ref
	for _, name := range []string{"a", "b", "c"} {
		acquire(t, s, request(name, "id"))
		refs = append(refs, store.Ref{Resource: name, ID: "id"})
	}
	tx := begin(t, pgx.ReadCommitted)
	s.execute(t, tx, "select from @.resources where name = 'b' for update")
	renewals, err := s.Renew(t.Context(), refs...)
	if err != nil || renewals[0].Remaining != time.Minute || renewals[2].Remaining != time.Minute {
		t.Fatalf("renewed %+v, %v", renewals, err)
	}
	if renewals[1].Ended != nil || code(renewals[1].Err) != leasehold.Unavailable {
		t.Errorf("the locked one: %+v", renewals[1])
	}
	commit(t, tx)
	renewals, err = s.Renew(t.Context(), refs...)
	if err != nil || renewals[1].Err != nil || renewals[1].Remaining != time.Minute {
		t.Errorf("after it: %+v, %v", renewals, err)
	}
}

// Renewals must not fail because others ask for the same resources at the same time.
func TestRenewalsBesideContenders(t *testing.T) {
	s := newStore(t)
	var refs []store.Ref
	for i := range 10 {
		refs = append(refs, store.Ref{Resource: fmt.Sprint(i), ID: "id"})
		acquire(t, s, request(fmt.Sprint(i), "id"))
	}
	ctx, stop := context.WithCancel(t.Context())
	var contenders sync.WaitGroup
	for i := range 8 {
		contenders.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := request(fmt.Sprint(n%10), fmt.Sprint("contender ", i, n))
				r.Wait = time.Millisecond
				_, _ = s.Acquire(ctx, r)
				_ = s.Release(ctx, store.ReleaseRequest{Leases: []store.Ref{{Resource: r.Resource, ID: r.ID}}})
			}
		})
	}
	for range 20 {
		renewals, err := s.Renew(t.Context(), refs...)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range renewals {
			if r.Err != nil || r.Ended != nil {
				t.Errorf("%+v", r)
			}
		}
	}
	stop()
	contenders.Wait()
}

var levels = []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

func atEachLevel(t *testing.T, test func(t *testing.T, level pgx.TxIsoLevel)) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) { test(t, level) })
	}
}

func pass(g store.Grant) fence.Pass { return fence.Pass{Token: g.Token, Resource: g.Resource} }

// While a transaction is fenced, the lease is renewed and may end, but nobody else gets the resource.
func TestAFencedTransactionHoldsOthersOff(t *testing.T) {
	atEachLevel(t, func(t *testing.T, level pgx.TxIsoLevel) {
		s := newStore(t)
		g := acquire(t, s, request("a", "one"))
		tx := begin(t, level)
		if err := s.Fence(t.Context(), tx, pass(g)); err != nil {
			t.Fatal(err)
		}
		renewals, err := s.Renew(t.Context(), store.Ref{Resource: "a", ID: "one"})
		if err != nil || renewals[0].Remaining != time.Minute {
			t.Errorf("a renewal: %+v, %v", renewals, err)
		}
		release(t, s, "a", "one")
		_, err = s.Acquire(t.Context(), request("a", "two"))
		if code(err) != leasehold.Held {
			t.Errorf("another got it before the commit: %v", err)
		}
		// Even somebody who bypasses the functions.
		plain := connect(t, theServer(t).URL())
		if _, err := plain.Exec(t.Context(), "set lock_timeout = '100ms'"); err != nil {
			t.Fatal(err)
		}
		_, err = plain.Exec(t.Context(), "update "+s.schema+".resources set token = token + 1")
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != codeUnavailable {
			t.Errorf("a plain update of the token does not wait: %v", err)
		}
		commit(t, tx)
		acquire(t, s, request("a", "two"))
	})
}

// A take-over between the snapshot of the transaction and its fence is noticed.
func TestAFenceNoticesATakeOver(t *testing.T) {
	atEachLevel(t, func(t *testing.T, level pgx.TxIsoLevel) {
		s := newStore(t)
		g := acquire(t, s, request("a", "one"))
		tx := begin(t, level)
		s.execute(t, tx, "select from pg_class limit 1") // takes the snapshot
		release(t, s, "a", "one")
		acquire(t, s, request("a", "two"))
		err := s.Fence(t.Context(), tx, pass(g))
		if e, ok := errors.AsType[*pgconn.PgError](err); !errors.Is(err, leasehold.ErrLost) && (!ok || e.Code != codeSerialize) {
			t.Errorf("the fence of a late holder: %v", err)
		}
		if tx.Commit(t.Context()) == nil {
			t.Error("the transaction of a late holder was committed")
		}
	})
}

// The same while the take-over is not committed yet.
func TestAFenceWaitsForATakeOver(t *testing.T) {
	atEachLevel(t, func(t *testing.T, level pgx.TxIsoLevel) {
		s := newStore(t)
		g := acquire(t, s, request("a", "one"))
		other := begin(t, pgx.ReadCommitted)
		s.execute(t, other, "select @.release('default', '{a}', '{one}')")
		s.execute(t, other, "select @.acquire('default', 'a', 'two', 60000000, false, 0, '{}', null, 1)")
		tx := begin(t, level)
		var fenced error
		var done sync.WaitGroup
		done.Go(func() { fenced = s.Fence(t.Context(), tx, pass(g)) })
		blocked(t)
		commit(t, other)
		done.Wait()
		if fenced == nil {
			t.Error("the fence of a late holder passed")
		}
	})
}

func TestAFenceRefusesALeaseThatHasEnded(t *testing.T) {
	atEachLevel(t, func(t *testing.T, level pgx.TxIsoLevel) {
		s := newStore(t)
		r := request("a", "one")
		r.TTL = 100 * time.Millisecond
		g := acquire(t, s, r)
		time.Sleep(110 * time.Millisecond)
		for _, p := range []fence.Pass{pass(g), {Token: g.Token + 1, Resource: "a"}, {Resource: "a"}, {Token: 1, Resource: "b"}} {
			err := s.Fence(t.Context(), begin(t, level), p)
			if _, ok := errors.AsType[*fence.LateError](err); !ok {
				t.Errorf("%+v: %v", p, err)
			}
		}
	})
}

// The text form is for other languages.
func TestTheFenceInSQL(t *testing.T) {
	s := newStore(t)
	g := acquire(t, s, request("räume/1", "one"))
	s.execute(t, begin(t, pgx.ReadCommitted), fmt.Sprintf("select @.fence('default', 'räume/1', %d)", g.Token))
	_, err := begin(t, pgx.ReadCommitted).Exec(t.Context(),
		fmt.Sprintf("select %s.fence('default', 'räume/1', %d)", s.schema, g.Token-1))
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != codeLate {
		t.Errorf("another token: %v", err)
	}
}

func TestANotificationIsForWaitersOnly(t *testing.T) {
	s := newStore(t)
	conn := connect(t, theServer(t).URL())
	if _, err := conn.Exec(t.Context(), "listen "+s.schema); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, request("a", "one"))
	release(t, s, "a", "one")
	acquire(t, s, request("a", "two"))
	enqueue(t, s, request("a", "three"))
	release(t, s, "a", "two")
	n, err := conn.WaitForNotification(t.Context())
	if err != nil || n.Payload[len(n.Payload)-2:] != " 1" {
		t.Errorf("notified of %+v, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if n, err := conn.WaitForNotification(ctx); err == nil {
		t.Errorf("and of %+v", n)
	}
}
