//go:build linux

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A rig is a real API server, and what the tests do to it.
type rig struct {
	*peer.Kubernetes
	client *http.Client
}

func newRig(t *testing.T) *rig {
	r := &rig{peer.StartKubernetes(t), nil}
	r.client = r.Client()
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

// do sends a request as the administrator, and returns the status and the body.
func (r *rig) do(t testing.TB, method, path string, body any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, r.URL()+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.AdminToken)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// lease returns a Lease as it is.
func (r *rig) lease(t testing.TB, name string) *object {
	t.Helper()
	status, text := r.do(t, http.MethodGet, leasesPath+"/"+name, nil)
	o := new(object)
	if err := json.Unmarshal(text, o); status != http.StatusOK || err != nil {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	return o
}

// put writes a Lease as an elector does: all of it, as it was read.
func (r *rig) put(t testing.TB, o *object) int {
	t.Helper()
	status, _ := r.do(t, http.MethodPut, leasesPath+"/"+o.Meta.Name, o)
	return status
}

// A hook is a connection on which something happens before a request is sent.
type hook struct {
	http.RoundTripper
	before func(*http.Request) *http.Response // nil: the request is sent
}

func (h *hook) RoundTrip(r *http.Request) (*http.Response, error) {
	if response := h.before(r); response != nil {
		return response, nil
	}
	return h.RoundTripper.RoundTrip(r)
}

// hooked opens the store with a hook.
func (r *rig) hooked(t testing.TB, before func(*http.Request) *http.Response) *Store {
	c := configOf(t, r.Kubernetes)
	c.Client = &http.Client{Transport: &hook{r.client.Transport, before}}
	return openWith(t, c)
}

// A manual clock moves when a test says so.
type manual struct{ now atomic.Int64 }

func (m *manual) Now() time.Duration    { return time.Duration(m.now.Load()) }
func (m *manual) pass(by time.Duration) { m.now.Add(int64(by)) }

// watching opens the store as a process with a clock of its own.
func (r *rig) watching(t testing.TB) (*Store, *manual) {
	clock := new(manual)
	c := configOf(t, r.Kubernetes)
	c.Clock = clock
	return openWith(t, c), clock
}

func acquire(t testing.TB, s *Store, resource, id string) store.Grant {
	t.Helper()
	grant, err := s.Acquire(t.Context(), store.Request{Resource: resource, ID: id, Holder: "h", TTL: 2 * time.Second})
	if err != nil {
		t.Fatalf("%s was not granted to %s: %v", resource, id, err)
	}
	return grant
}

func denied(t testing.TB, s *Store, resource, id string, want error) *leasehold.Error {
	t.Helper()
	_, err := s.Acquire(t.Context(), store.Request{Resource: resource, ID: id, TTL: 2 * time.Second})
	if !errors.Is(err, want) {
		t.Fatalf("%s for %s: %v, want %v", resource, id, err, want)
	}
	var e *leasehold.Error
	errors.As(err, &e)
	return e
}

func renew(t testing.TB, s *Store, resource, id string) store.Renewal {
	t.Helper()
	list, err := s.Renew(t.Context(), store.Ref{Resource: resource, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func release(t testing.TB, s *Store, resource, id string) {
	t.Helper()
	err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{{Resource: resource, ID: id}}})
	if err != nil {
		t.Fatalf("release of %s: %v", id, err)
	}
}

func TestServer(t *testing.T) {
	r := newRig(t)
	for name, test := range map[string]func(*testing.T, *rig){
		"deleted between look and write": deletedBetween, "a dead holder's lease": deadHolder,
		"a release before a late write": releaseBeforeWrite, "a lease deleted while held": deletedWhileHeld,
		"a conflict for each renewal": conflicts, "too many requests": tooMany, "electors": electors,
		"renewals within a second": withinASecond, "the role": roles, "the address": addresses,
		"no such namespace": noNamespace, "an unknown renewal": unknownRenewal, "a foreign lease": foreignLease,
		"namespaces of leasehold": namespaces, "an outage": outage, "a lost reply": lostReply,
		"new leases": newLeases, "a release after hours": releaseAfterHours, "another server": anotherServer,
		"electors at the same time": electorsBeside,
	} {
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
}

// Between the look of an acquire and its write the Lease is deleted, and granted to somebody else. Without
// the uid in the condition both would have the same token.
func deletedBetween(t *testing.T, r *rig) {
	other := openWith(t, configOf(t, r.Kubernetes))
	release(t, other, "deleted", "nobody") // makes the Lease
	old := r.lease(t, "deleted")
	var theirs store.Grant
	var once atomic.Bool
	s := r.hooked(t, func(q *http.Request) *http.Response {
		if q.Method == http.MethodPut && once.CompareAndSwap(false, true) {
			if status, text := r.do(t, http.MethodDelete, leasesPath+"/deleted", nil); status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
			theirs = acquire(t, other, "deleted", "theirs")
			release(t, other, "deleted", "theirs")
		}
		return nil
	})
	if ours := acquire(t, s, "deleted", "ours"); ours.Token <= theirs.Token {
		t.Errorf("token %d was granted after %d", ours.Token, theirs.Token)
	}

	// What the API server does without uid: it creates the Lease again, by a condition that was met once.
	r.do(t, http.MethodDelete, leasesPath+"/deleted", nil)
	if status := r.put(t, old); status != http.StatusConflict && status != http.StatusNotFound {
		t.Errorf("with the uid of a Lease that was deleted: %d", status)
	}
	old.Meta.UID = ""
	delete(old.meta, "uid")
	if status := r.put(t, old); status != http.StatusCreated {
		t.Errorf("without uid: %d; the API server no longer creates it", status)
	}
}

// Nobody knows when a holder died that nobody watched, so its lease is watched for a whole TTL. Clocks of
// other machines do not matter.
func deadHolder(t *testing.T, r *rig) {
	first := acquire(t, openWith(t, configOf(t, r.Kubernetes)), "dead", "a")
	late, clock := r.watching(t)
	clock.pass(time.Hour)
	for _, step := range []time.Duration{0, time.Second, time.Second - time.Millisecond} {
		clock.pass(step)
		e := denied(t, late, "dead", "b", leasehold.ErrHeld)
		if e.Lease.ID != "a" || e.Lease.Remaining > 2*time.Second {
			t.Errorf("held by %+v", e.Lease)
		}
	}
	if renewal := renew(t, late, "dead", "b"); renewal.Ended == nil {
		t.Errorf("a lease of nobody was renewed: %+v", renewal)
	}
	clock.pass(time.Millisecond)
	if next := acquire(t, late, "dead", "b"); next.Token <= first.Token {
		t.Errorf("token %d was granted after %d", next.Token, first.Token)
	}
	if e := denied(t, late, "dead", "a", leasehold.ErrLost); !strings.Contains(e.Message, "expired") {
		t.Errorf("the dead holder comes back: %v", e)
	}

	// A renewal by another process begins another TTL.
	holder := openWith(t, configOf(t, r.Kubernetes))
	acquire(t, holder, "alive", "a")
	denied(t, late, "alive", "b", leasehold.ErrHeld)
	clock.pass(1500 * time.Millisecond)
	if renewal := renew(t, holder, "alive", "a"); renewal.Ended != nil || renewal.Err != nil {
		t.Fatalf("%+v", renewal)
	}
	clock.pass(1500 * time.Millisecond)
	denied(t, late, "alive", "b", leasehold.ErrHeld)
}

// An acquire is on its way while its id is released.
func releaseBeforeWrite(t *testing.T, r *rig) {
	other := openWith(t, configOf(t, r.Kubernetes))
	var once atomic.Bool
	s := r.hooked(t, func(q *http.Request) *http.Response {
		if q.Method == http.MethodPut && once.CompareAndSwap(false, true) {
			release(t, other, "late", "a")
		}
		return nil
	})
	if e := denied(t, s, "late", "a", leasehold.ErrLost); !strings.Contains(e.Message, "released") {
		t.Errorf("%v", e)
	}
	acquire(t, other, "late", "b")
}

func deletedWhileHeld(t *testing.T, r *rig) {
	s := openWith(t, configOf(t, r.Kubernetes))
	first := acquire(t, s, "gone", "a")
	r.do(t, http.MethodDelete, leasesPath+"/gone", nil)
	if renewal := renew(t, s, "gone", "a"); renewal.Ended == nil {
		t.Errorf("a lease whose object was deleted was renewed: %+v", renewal)
	}
	if next := acquire(t, s, "gone", "b"); next.Token <= first.Token {
		t.Errorf("token %d was granted after %d", next.Token, first.Token)
	}
}

// Somebody writes to the Lease before each write of the holder.
func conflicts(t *testing.T, r *rig) {
	var left atomic.Int64
	n := 0
	s := r.hooked(t, func(q *http.Request) *http.Response {
		if q.Method == http.MethodPut && left.Add(-1) >= 0 {
			n++
			patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{"n": fmt.Sprint(n)}}}
			if status, text := r.do(t, http.MethodPatch, leasesPath+"/storm", patch); status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
		}
		return nil
	})
	left.Store(3)
	grant := acquire(t, s, "storm", "a")
	left.Store(5)
	if renewal := renew(t, s, "storm", "a"); renewal.Token != grant.Token {
		t.Errorf("renewed through conflicts: %+v", renewal)
	}
	left.Store(tries)
	if renewal := renew(t, s, "storm", "a"); !errors.Is(renewal.Err, leasehold.ErrUnavailable) {
		t.Errorf("a conflict each time: %+v", renewal)
	}
	left.Store(2)
	release(t, s, "storm", "a")
	if o := r.lease(t, "storm"); o.Spec.HolderIdentity != "" || o.Meta.Annotations["n"] != fmt.Sprint(n) {
		t.Errorf("after the release: %+v %v", o.Spec, o.Meta.Annotations)
	}
}

// The API server puts requests off.
func tooMany(t *testing.T, r *rig) {
	var left atomic.Int64
	wait := "0"
	s := r.hooked(t, func(*http.Request) *http.Response {
		if left.Add(-1) < 0 {
			return nil
		}
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {wait}},
			Body: io.NopCloser(strings.NewReader(`{"message":"too many requests"}`))}
	})
	left.Store(busyTries - 1)
	acquire(t, s, "busy", "a")
	left.Store(100)
	if renewal := renew(t, s, "busy", "a"); !errors.Is(renewal.Err, leasehold.ErrUnavailable) {
		t.Errorf("when it is always busy: %+v", renewal)
	}
	wait = "60"
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	began := time.Now()
	_, err := s.Acquire(ctx, store.Request{Resource: "busy", ID: "a", TTL: 2 * time.Second})
	if !errors.Is(err, leasehold.ErrUnavailable) || time.Since(began) > 3*time.Second {
		t.Errorf("it asks to wait for a minute, and there are five seconds: %v after %v", err, time.Since(began))
	}
}

func unknownRenewal(t *testing.T, r *rig) {
	s := openWith(t, configOf(t, r.Kubernetes))
	if renewal := renew(t, s, "never", "a"); renewal.Ended == nil || renewal.Ended.How != 0 {
		t.Errorf("%+v", renewal)
	}
	if status, _ := r.do(t, http.MethodGet, leasesPath+"/never", nil); status != http.StatusNotFound {
		t.Errorf("the renewal of nothing made a Lease: %d", status)
	}
}

func noNamespace(t *testing.T, r *rig) {
	c := configOf(t, r.Kubernetes)
	c.KubernetesNamespace = "missing"
	e := denied(t, openWith(t, c), "r", "a", leasehold.ErrRefused)
	if !strings.Contains(e.Message, "kubectl create namespace missing") {
		t.Error(e)
	}
}

// Two namespaces of Leasehold share one of Kubernetes.
func namespaces(t *testing.T, r *rig) {
	for _, namespace := range []string{"", "team-a", "Team/B"} {
		c := configOf(t, r.Kubernetes)
		c.Namespace = namespace
		s := openWith(t, c)
		acquire(t, s, "shared", "a")
		page, err := s.List(t.Context(), store.Query{Prefix: "shared"})
		if err != nil || len(page.Items) != 1 || page.Items[0].Resource != "shared" {
			t.Errorf("in %q the list is %+v, %v", namespace, page, err)
		}
	}
	text := string(r.lease(t, "shared").Meta.Labels[labelNamespace])
	if text != leasehold.DefaultNamespace {
		t.Errorf("the label is %q", text)
	}
}
