package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// How long servers have to answer what they are asked.
const (
	statusWithin   = 3 * time.Second
	changeWithin   = 15 * time.Second
	transferWithin = 5 * time.Second
	sumWithin      = time.Minute

	// healthFor is how long a server's own report counts.
	healthFor = 5 * time.Second
	// heardFor is how long a server that does not answer still counts as up. Each reports every
	// second.
	heardFor = 3 * time.Second
)

var _ engine.Cluster = (*Engine)(nil)

// status is what a server says of itself.
type status struct {
	Applied uint64 `json:"applied"`
	Term    uint64 `json:"term"`
	Leader  uint64 `json:"leader"`
	LowRoom bool   `json:"low_room"`
	Version string `json:"version"`
	// Starting is set until clients are let in.
	Starting bool `json:"starting,omitempty"`
	// Silent is how long a leader has not heard of others, in nanoseconds.
	Silent map[uint64]int64 `json:"silent,omitempty"`
	// Heard is how long ago this server heard of others, in nanoseconds.
	Heard map[uint64]int64 `json:"heard,omitempty"`
}

type changeAnswer struct {
	Member replica.Member `json:"member"`
	Index  uint64         `json:"index"`
}

// inspect calls fn in the node's goroutine, between two steps. fn must be quick: every command
// waits.
func (e *Engine) inspect(ctx context.Context, fn func(*replica.Node)) error {
	done := make(chan struct{})
	look := func(n *replica.Node) {
		defer close(done)
		fn(n)
	}
	select {
	case e.looks <- look:
	case <-e.stopped:
		return errStopping
	case <-ctx.Done():
		return engine.Unavailable("the request ended before it was answered")
	}
	select {
	case <-done:
		return nil
	case <-e.stopped:
		return errStopping
	}
}

// status returns how this server is doing.
func (e *Engine) status(ctx context.Context) (s status, err error) {
	err = e.inspect(ctx, func(n *replica.Node) {
		s = status{Applied: n.Applied(), Term: n.Term(), Leader: n.Leader(), LowRoom: e.disk.Full(),
			Version: e.self.Version, Starting: !e.opened.Load()}
		s.Heard = e.network.heardAgo()
		for _, m := range n.Roster().Members {
			silent := int64(n.Standing(m.ID).Silent)
			if ago, ok := s.Heard[m.ID]; silent >= 0 && (!ok || silent < ago) {
				s.Heard[m.ID] = silent
			}
		}
		if !n.Leads() {
			return
		}
		s.Silent = map[uint64]int64{}
		for _, m := range n.Roster().Members {
			s.Silent[m.ID] = int64(n.Standing(m.ID).Silent)
		}
		s.Silent[e.id] = 0
	})
	return s, err
}

// Outlook returns who belongs to the cluster, and how each server is doing.
func (e *Engine) Outlook(ctx context.Context) (engine.Outlook, error) {
	roster := e.network.current()
	o := engine.Outlook{Cluster: e.network.dir.Cluster, Self: e.id}
	var read sync.WaitGroup
	read.Go(func() {
		o.Confirmed = e.confirmed(ctx, func(v core.View) { o.Quarantine, o.Quarantined = v.Quarantine() })
	})
	all := e.askAll(ctx, roster)
	read.Wait()
	own, err := e.status(ctx)
	if err != nil {
		return engine.Outlook{}, err
	}
	all[e.id] = own
	o.Leader, o.Term, o.Level = own.Leader, own.Term, e.Level()
	if odd := e.sums.odd.Load(); odd != nil {
		o.Differ = names(*odd)
	}
	said := e.network.healths()
	for _, m := range roster.Members {
		s := standing(m, all, said, own.Leader)
		s.LowRoom = s.LowRoom || !s.Answered && e.network.diedFull(m.ID)
		o.Servers = append(o.Servers, s)
	}
	return o, nil
}

// confirmed reports whether a majority confirms that there is a leader; if so, look has seen the state.
func (e *Engine) confirmed(ctx context.Context, look func(core.View)) bool {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	return e.Read(ctx, look) == nil
}

// standing combines what is known of a member: from itself, if it answered, and from what the
// servers that did answer have heard of it. So one broken link does not make a healthy server
// look dead.
func standing(m replica.Member, all map[uint64]status, said map[uint64]health, leader uint64) engine.Server {
	s := serverOf(m)
	told, ok := all[m.ID]
	if ok {
		s.Answered, s.Applied, s.LowRoom, s.Starting = true, told.Applied, told.LowRoom, told.Starting
	} else if h, ok := said[m.ID]; ok {
		s.Applied, s.LowRoom = h.applied, h.lowRoom
	}
	for _, by := range slices.Sorted(maps.Keys(all)) {
		ago, ok := all[by].Heard[m.ID]
		if by != m.ID && ok && (s.Heard < 0 || time.Duration(ago) < s.Heard) {
			s.HeardBy, s.Heard = by, time.Duration(ago)
		}
	}
	s.Reachable = s.Answered || s.Heard >= 0 && s.Heard <= heardFor
	if silent, ok := all[leader].Silent[m.ID]; ok {
		s.Silent = time.Duration(silent)
	}
	return s
}

// serverOf describes a member of which nothing else is known.
func serverOf(m replica.Member) engine.Server {
	return engine.Server{
		ID: m.ID, Name: m.Name, Peer: m.Peer, Client: m.Client, Voter: m.Voter, Version: m.Version, Silent: -1,
		Heard:  -1,
		Oldest: m.Levels.Oldest, Newest: m.Levels.Newest,
	}
}

// askAll asks all others how they are doing, and returns what came in time.
func (e *Engine) askAll(ctx context.Context, roster *replica.Roster) map[uint64]status {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	var mu sync.Mutex
	all := map[uint64]status{}
	var asked sync.WaitGroup
	for _, m := range roster.Members {
		if m.ID == e.id {
			continue
		}
		asked.Go(func() {
			s, err := askServer[struct{}, status](ctx, e.network, m.ID, askStatus, struct{}{})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				all[m.ID] = s
			}
		})
	}
	asked.Wait()
	return all
}
