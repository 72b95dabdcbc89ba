// Package server is the store of a Leasehold server, or of a cluster of them: the contract of package
// store over RESP and the HTTP API. It has every power but values in leases, for which it has records.
//
// Package client opens it by itself for http and https addresses. Requests go to one server for as
// long as that answers; a failed attempt makes the next server the one to ask.
package server

import (
	"cmp"
	"context"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// A Store keeps leases on Leasehold servers.
type Store struct{ servers *v1.Servers }

var _ interface {
	store.Store
	store.Sessions
	store.Watcher
	store.Records
	store.Changer
	store.Messenger
	store.Noter
	store.Historian
	store.Definer
	store.Mover
} = (*Store)(nil)

// Open returns the store once a server has answered. A wrong address or a certificate that is not
// trusted is thus reported here, and not by the first acquire. Unlike a Caller it speaks v1.WireAuto if
// the configuration names no wire.
func Open(ctx context.Context, config v1.CallerConfig) (*Store, error) {
	config.Wire = cmp.Or(config.Wire, v1.WireAuto)
	servers, err := v1.NewServers(config)
	if err != nil {
		return nil, err
	}
	read := v1.Attempts{Limit: config.Timeout, Idempotent: true}
	err = servers.Each(ctx, read, func(ctx context.Context, server *v1.Caller) error { return server.Connect(ctx) })
	if err != nil {
		return nil, err
	}
	return &Store{servers}, nil
}

// Features returns what a server promises.
func (s *Store) Features() store.Features {
	return store.Features{
		Store: "leasehold", MinTTL: leasehold.MinTTL, MaxTTL: leasehold.MaxTTL,
		Clock:      "the servers' monotonic clocks, as time in the replicated log",
		Durability: "synced to the disks of a majority before it is answered",
		Tokens:     store.Tokens{Scope: store.PerNamespace, Flush: "no: a server whose data was deleted begins anew"},
		Powers: []store.Power{
			store.SessionPower, store.WatchPower, store.RecordPower, store.ChangePower, store.MessagePower,
			store.NotePower, store.HistoryPower, store.DefinitionPower, store.MovePower, store.TaskPower,
			store.AdvicePower,
			store.FairQueue, store.Slots, store.Several, store.Selection, store.Reservations,
			store.Priority, store.Grace, store.HoldLimit,
			store.Parties, store.BreakPeriod, store.Detached,
		},
	}
}

// Close closes the connections that are not in use.
func (s *Store) Close() error {
	s.servers.CloseIdle()
	return nil
}

// Endpoints returns the number of servers: that many attempts in a row need no pause.
func (s *Store) Endpoints() int { return s.servers.Count() }

// MaxReleases returns how many leases one Release should have.
func (s *Store) MaxReleases() int { return v1.MaxReleases }

// PingWithin makes connections be checked often enough for leases of a TTL.
func (s *Store) PingWithin(ttl time.Duration) { s.servers.PingWithin(ttl) }

// once makes one attempt, at the server to ask now.
func (s *Store) once(ctx context.Context, send v1.Send) error {
	chosen := s.servers.Choose()
	err := send(ctx, chosen.Caller)
	switch {
	case !v1.Transient(err):
	case context.Cause(ctx) == store.ErrLimit:
		s.servers.LeaveSilent(chosen)
	default:
		s.servers.Leave(chosen)
	}
	return err
}

// ask is once for a request with an answer.
func ask[A any](ctx context.Context, s *Store, send func(context.Context, *v1.Caller) (A, error)) (A, error) {
	var answer A
	err := s.once(ctx, func(ctx context.Context, server *v1.Caller) (err error) {
		answer, err = send(ctx, server)
		return err
	})
	return answer, err
}
