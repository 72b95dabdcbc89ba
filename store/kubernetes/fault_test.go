//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// through opens the store through a proxy.
func (r *rig) through(t testing.TB, link *peer.Proxy) *Store {
	t.Helper()
	host, _, err := net.SplitHostPort(r.Address)
	if err != nil {
		t.Fatal(err)
	}
	config := r.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = host
	c := configOf(t, r.Kubernetes)
	c.Server = "https://" + link.Address
	target := &target{tls: config}
	line := newLine(target.transport)
	c.Client = &http.Client{Transport: line}
	t.Cleanup(c.Client.CloseIdleConnections)
	s := openWith(t, c)
	s.own = line
	return s
}

// An API server that is away ends nothing, and lets nobody in.
func outage(t *testing.T, r *rig) {
	s, other := openWith(t, configOf(t, r.Kubernetes)), openWith(t, configOf(t, r.Kubernetes))
	request := store.Request{Resource: "outage", ID: "a", TTL: time.Minute}
	grant, err := s.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	r.Kill()
	if renewal := renew(t, s, "outage", "a"); !store.Transient(renewal.Err) {
		t.Errorf("during the outage: %+v", renewal)
	}
	_, err = other.Acquire(t.Context(), store.Request{Resource: "outage", ID: "b", TTL: time.Minute})
	if !store.Transient(err) {
		t.Errorf("during the outage: %v", err)
	}
	if renewal := renew(t, s, "outage", "a"); !errors.Is(renewal.Err, leasehold.ErrUnavailable) {
		t.Errorf("when nobody answers at the address: %+v", renewal)
	}
	r.Restart()
	renewal := renew(t, s, "outage", "a")
	if renewal.Err != nil || renewal.Ended != nil || renewal.Token != grant.Token {
		t.Errorf("after the outage: %+v", renewal)
	}
	denied(t, other, "outage", "b", leasehold.ErrHeld)
}

// The answer to a grant is lost. The same id finds it, with what is left of it since the first attempt.
func lostReply(t *testing.T, r *rig) {
	link := peer.StartProxy(t, r.Address)
	s := r.through(t, link)
	release(t, s, "lost", "before") // the Lease is known, so that the acquire is one message
	link.DropReplies()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, store.ErrLimit)
	defer cancel()
	before := s.own.now.Load()
	request := store.Request{Resource: "lost", ID: "a", TTL: time.Minute}
	if _, err := s.Acquire(ctx, request); !store.Transient(err) || errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatalf("without an answer: %v", err)
	}
	if s.own.now.Load() == before {
		t.Error("after an attempt that took too long the same connections are used")
	}
	link.Forward()
	token := r.lease(t, "lost").noteOf().Token // it was granted
	again, err := s.Acquire(t.Context(), request)
	if err != nil || again.Token != token || again.Remaining > 59*time.Second {
		t.Errorf("granted was token %d; asked again, it is %d with %v left, %v", token, again.Token,
			again.Remaining, err)
	}
}
