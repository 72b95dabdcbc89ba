package client

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A wire carries one message to one server, once, and brings its answer back. It is
// all that the rest of the client knows of a protocol.
type wire interface {
	Version(context.Context) (v1.Version, error)
	OpenSession(context.Context, v1.SessionRequest, ...v1.Option) (v1.Session, error)
	RenewSession(ctx context.Context, id string) (v1.Session, error)
	RenewSessionSince(ctx context.Context, id string, interventions uint64) (v1.Session, error)
	CloseSession(ctx context.Context, id string, options ...v1.Option) error
	Acquire(context.Context, v1.AcquireRequest, ...v1.Option) (v1.Lease, error)
	Renew(context.Context, v1.RenewRequest) (v1.Lease, error)
	Release(context.Context, v1.ReleaseRequest, ...v1.Option) error
	Change(context.Context, v1.ChangeRequest, ...v1.Option) (v1.Lease, error)
	Move(context.Context, v1.MoveRequest, ...v1.Option) (v1.Waiter, error)
	Define(ctx context.Context, path string, r v1.DefinitionRequest, options ...v1.Option) (v1.Definition, error)
	Ask(context.Context, v1.AskRequest, ...v1.Option) (v1.Lease, error)
	Resource(ctx context.Context, path string, waiters int) (v1.Resource, error)
	History(context.Context, v1.HistoryQuery) (v1.EventPage, error)
	Record(ctx context.Context, path string, revision uint64) (v1.Record, error)
	PutRecord(context.Context, v1.PutRequest, ...v1.Option) (v1.Record, error)
	DeleteRecord(context.Context, v1.DeleteRequest, ...v1.Option) (v1.Deleted, error)
	Watch(context.Context, v1.WatchQuery) iter.Seq2[v1.Event, error]
	Level() int
	CloseIdle()
}

var _ wire = (*v1.Caller)(nil)

// servers are those that a client may ask. All messages go to one of them, for as
// long as it answers.
type servers struct {
	all     []wire
	lines   []*line // one for each wire
	current atomic.Int64
}

// dialAll makes a wire for each server. It does not connect.
func dialAll(config Config) (*servers, error) {
	s := &servers{}
	for _, address := range config.Servers {
		client := *config.HTTP
		l := newLine(cmp.Or(client.Transport, http.DefaultTransport), config.TTL)
		client.Transport = l
		caller, err := v1.NewCaller(v1.CallerConfig{Server: address, Namespace: config.Namespace, Client: &client, Timeout: patience})
		if err != nil {
			return nil, err
		}
		s.all, s.lines = append(s.all, caller), append(s.lines, l)
	}
	return s, nil
}

// suit makes connections be checked often enough for what lasts for a TTL.
func (s *servers) suit(ttl time.Duration) {
	for _, l := range s.lines {
		l.suit(ttl)
	}
}

// line is the way to the server with a number.
func (s *servers) line(n int64) *line { return s.lines[int(n%int64(len(s.lines)))] }

// reach asks each server once whether it is there, until one is.
func (s *servers) reach(ctx context.Context) error {
	var failures []error
	for range s.all {
		err := s.once(ctx, patience, func(ctx context.Context, w wire) error {
			_, err := w.Version(ctx)
			return err
		})
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// now returns the server to ask, and the number by which to leave it.
func (s *servers) now() (wire, int64) {
	n := s.current.Load()
	return s.all[int(n%int64(len(s.all)))], n
}

// level is what the server that is asked now said last of the features it has.
func (s *servers) level() int {
	w, _ := s.now()
	return w.Level()
}

// leave goes on to the next server, unless somebody else did already.
func (s *servers) leave(n int64) { s.current.CompareAndSwap(n, n+1) }

// try sends one message until a server answers it, with yes or no, or ctx ends. The
// message must be one that may arrive twice. within limits each attempt.
func (s *servers) try(ctx context.Context, within time.Duration, send func(context.Context, wire) error) error {
	for n := 1; ; n++ {
		err := s.once(ctx, within, send)
		if !passing(err) || ctx.Err() != nil {
			return err
		}
		if n%len(s.all) == 0 && !sleep(ctx, pause(n/len(s.all))) {
			return err
		}
	}
}

// once is a single attempt. If it got no answer, the next goes to another server, and to
// this one over a new connection.
func (s *servers) once(ctx context.Context, within time.Duration, send func(context.Context, wire) error) error {
	w, n := s.now()
	dialled := s.line(n).dialled()
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := send(limited, w)
	if passing(err) {
		s.leave(n)
		if limited.Err() != nil && ctx.Err() == nil {
			s.line(n).redial(dialled)
		}
	}
	return err
}

// pause is how long to wait before all servers are tried once more: longer each
// time, up to a second, and never the same for two clients.
func pause(round int) time.Duration {
	most := min(50*time.Millisecond<<min(round-1, 5), time.Second)
	return most/2 + rand.N(most/2)
}

// sleep waits and tells whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
