//go:build linux

package kubernetes

import (
	"cmp"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// An elector sends what client-go's sends, and judges as it does (tools/leaderelection): it compares the record
// by whole seconds, and lets it live for the duration in it from when it saw a change.
type elector struct {
	r        *rig
	identity string
	duration int64 // seconds; 15 if zero

	record spec
	since  time.Time
}

// try is one round. It reports whether the elector leads afterwards.
func (e *elector) try(t *testing.T, name string) bool {
	t.Helper()
	o := e.r.lease(t, name)
	record := o.Spec
	for _, text := range []*string{&record.RenewTime, &record.AcquireTime} {
		if at, err := time.Parse(microTime, *text); err == nil {
			*text = at.Truncate(time.Second).Format(microTime)
		}
	}
	if record != e.record {
		e.record, e.since = record, time.Now()
	}
	valid := e.since.Add(time.Duration(record.LeaseDurationSeconds) * time.Second).After(time.Now())
	if record.HolderIdentity != "" && record.HolderIdentity != e.identity && valid {
		return false
	}
	now := time.Now().UTC().Format(microTime)
	o.Spec = spec{HolderIdentity: e.identity, LeaseDurationSeconds: cmp.Or(e.duration, 15), AcquireTime: now,
		RenewTime: now, LeaseTransitions: record.LeaseTransitions + 1}
	return e.r.put(t, o) == http.StatusOK
}

// A Lease is shared with an elector.
func electors(t *testing.T, r *rig) {
	s, clock := r.watching(t)
	e := &elector{r: r, identity: "pod-1_5c9d"}
	first := acquire(t, s, "elected", "a")
	o := r.lease(t, "elected")
	if o.Spec.HolderIdentity != "h_a" || o.Spec.LeaseDurationSeconds != 3 || o.Spec.LeaseTransitions != 1 {
		t.Errorf("an elector sees %+v", o.Spec)
	}
	if e.try(t, "elected") {
		t.Fatal("an elector took what is held")
	}
	release(t, s, "elected", "a")
	if !e.try(t, "elected") {
		t.Fatal("an elector does not get what was released")
	}
	held := denied(t, s, "elected", "b", leasehold.ErrHeld)
	if held.Lease.Holder != e.identity || held.Lease.Remaining != 15*time.Second || held.Lease.Token != 0 {
		t.Errorf("held by %+v", held.Lease)
	}
	if status, err := s.Read(t.Context(), "elected"); err != nil || status.Holders[0].ID != e.identity {
		t.Errorf("%+v, %v", status, err)
	}
	clock.pass(14 * time.Second)
	e.try(t, "elected") // it renews
	denied(t, s, "elected", "b", leasehold.ErrHeld)
	clock.pass(15*time.Second - 1)
	denied(t, s, "elected", "b", leasehold.ErrHeld)
	clock.pass(1)
	if next := acquire(t, s, "elected", "b"); next.Token <= first.Token {
		t.Errorf("token %d was granted after %d", next.Token, first.Token)
	}

	// An elector that takes over from us, and then gives up its turn.
	o = r.lease(t, "elected")
	o.Spec.HolderIdentity, o.Spec.LeaseTransitions = e.identity, o.Spec.LeaseTransitions+1
	r.put(t, o)
	if renewal := renew(t, s, "elected", "b"); renewal.Ended == nil || renewal.Ended.How != leasehold.ByTTL {
		t.Errorf("an elector took over, and the renewal says %+v", renewal)
	}
	denied(t, s, "elected", "b", leasehold.ErrLost)
	release(t, s, "elected", "b")
	o = r.lease(t, "elected")
	if o.Spec.HolderIdentity != e.identity {
		t.Errorf("our release ended the turn of %q", o.Spec.HolderIdentity)
	}
	o.Spec.HolderIdentity, o.Spec.LeaseDurationSeconds = "", 1
	r.put(t, o)
	acquire(t, s, "elected", "c")
	denied(t, s, "elected", "b", leasehold.ErrLost)
}

// Renewals within the same second look the same to an elector. It must not take over while the holder still
// counts on the last of them.
func withinASecond(t *testing.T, r *rig) {
	s := openWith(t, configOf(t, r.Kubernetes))
	e := &elector{r: r, identity: "pod-2_77aa"}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // a second begins
	acquire(t, s, "seconds", "a")
	e.try(t, "seconds")
	begin := time.Now().Truncate(time.Second)
	var sent time.Time
	for n := 0; n < 8 && time.Since(begin) < 900*time.Millisecond; n++ {
		sent = time.Now()
		if renewal := renew(t, s, "seconds", "a"); renewal.Ended != nil || renewal.Err != nil {
			t.Fatalf("%+v", renewal)
		}
		e.try(t, "seconds")
		time.Sleep(50 * time.Millisecond)
	}
	for !e.try(t, "seconds") {
		time.Sleep(20 * time.Millisecond)
	}
	if early := time.Until(sent.Add(2 * time.Second)); early > 0 {
		t.Errorf("an elector took over %v before the end of the TTL", early)
	}
}

// A Lease that others made: with no duration, with fields that we do not know, and broken by an operator.
func foreignLease(t *testing.T, r *rig) {
	s, clock := r.watching(t)
	r.do(t, http.MethodPost, leasesPath, map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"name": "foreign", "labels": map[string]string{"app": "x"},
			"finalizers": []string{"example.com/keep"}},
		"spec": map[string]any{"holderIdentity": "somebody"},
	})
	denied(t, s, "foreign", "a", leasehold.ErrHeld)
	clock.pass(1000 * time.Hour)
	denied(t, s, "foreign", "a", leasehold.ErrHeld) // it has no duration
	broke := func(id string) error {
		_, err := s.Break(t.Context(), store.BreakRequest{Ref: store.Ref{Resource: "foreign", ID: id}, By: "ann"})
		return err
	}
	if err := broke("a"); !errors.Is(err, leasehold.ErrNotFound) {
		t.Errorf("break of what holds nothing: %v", err)
	}
	if err := broke("somebody"); err != nil {
		t.Error(err)
	}
	acquire(t, s, "foreign", "a")
	o := r.lease(t, "foreign")
	if o.Meta.Labels["app"] != "x" || string(o.meta["finalizers"]) != `["example.com/keep"]` {
		t.Errorf("what others wrote was lost: %s", o.all["metadata"])
	}
	release(t, s, "foreign", "a")
}
