package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// How long servers are given for what they are asked.
const (
	statusWithin   = 3 * time.Second
	changeWithin   = 15 * time.Second
	transferWithin = 5 * time.Second
	sumWithin      = time.Minute

	// healthFor is how long it counts what a server said of itself.
	healthFor = 5 * time.Second
	// heardFor is how long a server counts as up that does not answer. Each says every
	// second how it does.
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
	// Silent is how long a leader has not heard of others, in nanoseconds.
	Silent map[uint64]int64 `json:"silent,omitempty"`
	// Heard is how long ago this server heard of others, in nanoseconds.
	Heard map[uint64]int64 `json:"heard,omitempty"`
}

type changeAnswer struct {
	Member replica.Member `json:"member"`
	Index  uint64         `json:"index"`
}

// inspect calls fn in the node's goroutine, between two steps.
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

// status says how this server does.
func (e *Engine) status(ctx context.Context) (s status, err error) {
	err = e.inspect(ctx, func(n *replica.Node) {
		s = status{Applied: n.Applied(), Term: n.Term(), Leader: n.Leader(), LowRoom: e.disk.Full()}
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

// Outlook tells who belongs to the cluster, and how each of them does.
func (e *Engine) Outlook(ctx context.Context) (engine.Outlook, error) {
	roster := e.network.current()
	o := engine.Outlook{Cluster: e.network.dir.Cluster, Self: e.id}
	var read sync.WaitGroup
	read.Go(func() { o.Confirmed = e.confirmed(ctx) })
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

// confirmed tells whether a majority confirms that somebody leads.
func (e *Engine) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	return e.Read(ctx, func(core.View) {}) == nil
}

// standing puts together what is known of a member: by itself, if it answered, and by what
// all who did have heard of it.
func standing(m replica.Member, all map[uint64]status, said map[uint64]health, leader uint64) engine.Server {
	s := serverOf(m)
	told, ok := all[m.ID]
	if ok {
		s.Answered, s.Applied, s.LowRoom = true, told.Applied, told.LowRoom
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

func serverOf(m replica.Member) engine.Server {
	return engine.Server{
		ID: m.ID, Name: m.Name, Peer: m.Peer, Client: m.Client, Voter: m.Voter, Version: m.Version, Silent: -1, Heard: -1,
		Oldest: m.Levels.Oldest, Newest: m.Levels.Newest,
	}
}

// askAll asks all others how they do, and returns what came in time.
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

// Add takes in a server by its name and the address at which the others reach it.
func (e *Engine) Add(ctx context.Context, name, address string) (engine.Server, error) {
	if name == "" || address == "" {
		return engine.Server{}, &leasehold.Error{Code: leasehold.Invalid, Message: "a server has a name, and an address at which the others reach it"}
	}
	roster, err := e.freshRoster(ctx)
	if err != nil {
		return engine.Server{}, err
	}
	if m, ok := roster.Named(name); ok && m.Peer == address {
		return serverOf(m), nil
	}
	a, err := e.change(ctx, replica.Change{Kind: replica.Add, Member: replica.Member{Name: name, Peer: address}})
	return serverOf(a.Member), err
}

// Promote gives a server its vote.
func (e *Engine) Promote(ctx context.Context, name string) error {
	return e.changeNamed(ctx, replica.Promote, name)
}

// Remove ends a membership for good.
func (e *Engine) Remove(ctx context.Context, name string) error {
	return e.changeNamed(ctx, replica.Remove, name)
}

func (e *Engine) changeNamed(ctx context.Context, kind replica.ChangeKind, name string) error {
	m, err := e.named(ctx, name)
	if err == nil {
		_, err = e.change(ctx, replica.Change{Kind: kind, Member: replica.Member{ID: m.ID}})
	}
	return err
}

// Upgrade raises the level to the newest that all servers know. Some that know more than
// others are a rolling upgrade that is not over: it says so, rather than nothing.
func (e *Engine) Upgrade(ctx context.Context) (core.Level, error) {
	roster, err := e.freshRoster(ctx)
	if err != nil {
		return 0, err
	}
	newest := roster.Active()
	for _, m := range roster.Members {
		newest = max(newest, m.Levels.Newest)
	}
	if _, err = e.change(ctx, replica.Change{Kind: replica.Raise, Level: newest}); err != nil {
		return 0, err
	}
	// This server may not have come to it yet, and whoever asked goes on here.
	err = e.Read(ctx, func(core.View) {})
	return e.Level(), err
}

// freshRoster returns who belongs to the cluster by everything that anybody was told.
func (e *Engine) freshRoster(ctx context.Context) (*replica.Roster, error) {
	if err := e.Read(ctx, func(core.View) {}); err != nil {
		return nil, err
	}
	return e.network.current(), nil // which hears of each change as it is applied
}

func (e *Engine) named(ctx context.Context, name string) (replica.Member, error) {
	roster, err := e.freshRoster(ctx)
	if err != nil {
		return replica.Member{}, err
	}
	m, ok := roster.Named(name)
	if !ok {
		return replica.Member{}, &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf("the cluster has no server %q", name)}
	}
	return m, nil
}

// change has whoever leads change the members. A change that may have happened can be
// asked for again: it names a server by its id, or by name and data directory.
func (e *Engine) change(ctx context.Context, c replica.Change) (changeAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, changeWithin)
	defer cancel()
	var undecided error // what became of an earlier try
	for {
		a, err := e.changeOnce(ctx, c)
		switch {
		case errors.Is(err, leasehold.ErrUndecided):
			undecided = err
		case !errors.Is(err, leasehold.ErrUnavailable):
			return a, err
		}
		if e.waitForLead(ctx) {
			continue
		}
		if undecided != nil {
			err = undecided // that this try came to nothing says nothing of that one
		}
		return a, err
	}
}

func (e *Engine) changeOnce(ctx context.Context, c replica.Change) (changeAnswer, error) {
	switch leader := e.view.Load().leader; leader {
	case 0:
		return changeAnswer{}, errNoLeader
	case e.id:
		return e.changeHere(ctx, c)
	default:
		return askServer[replica.Change, changeAnswer](ctx, e.network, leader, askChange, c)
	}
}

// changeHere changes the members, if this server leads.
func (e *Engine) changeHere(ctx context.Context, c replica.Change) (changeAnswer, error) {
	type result struct {
		changeAnswer
		err error
	}
	done := make(chan result, 1)
	event := replica.Reconfigure{Change: c, Done: func(m replica.Member, index uint64, err error) { done <- result{changeAnswer{m, index}, err} }}
	select {
	case e.events <- event:
	case <-e.stopped:
		return changeAnswer{}, errStopping
	case <-ctx.Done():
		return changeAnswer{}, engine.Unavailable("the request ended before the members were changed")
	}
	select {
	case r := <-done:
		return r.changeAnswer, r.err
	case <-ctx.Done():
	case <-e.stopped:
	}
	return changeAnswer{}, engine.Undecided("the request ended before it was known whether the members changed: look at them")
}

// Transfer gives the lead to a server, or to whichever is best.
func (e *Engine) Transfer(ctx context.Context, name string) (string, error) {
	to := uint64(0)
	if name != "" {
		m, err := e.named(ctx, name)
		if err != nil {
			return "", err
		}
		if !m.Voter {
			return "", engine.Refused("server %s has no vote yet, and can not lead", name)
		}
		to = m.ID
	}
	ctx, cancel := context.WithTimeout(ctx, changeWithin)
	defer cancel()
	for {
		leader, err := e.transferOnce(ctx, to)
		if err == nil {
			return e.network.nameOf(leader), nil
		}
		if !errors.Is(err, leasehold.ErrUnavailable) && !errors.Is(err, leasehold.ErrUndecided) || !e.waitForLead(ctx) {
			return "", err
		}
	}
}

func (e *Engine) transferOnce(ctx context.Context, to uint64) (uint64, error) {
	switch leader := e.view.Load().leader; {
	case leader == 0:
		return 0, errNoLeader
	case leader == to:
		return to, nil
	case leader == e.id:
		return e.transferHere(ctx, to)
	default:
		return askServer[uint64, uint64](ctx, e.network, leader, askTransfer, to)
	}
}

// transferHere gives the lead away, if this server has it, and returns who leads then.
func (e *Engine) transferHere(ctx context.Context, to uint64) (uint64, error) {
	var err error
	if failed := e.inspect(ctx, func(n *replica.Node) {
		best := to
		if best == 0 {
			best = n.Successor()
		}
		switch {
		case !n.Serving():
			err = errNoLeader
		case best == 0:
			err = engine.Refused("there is nobody else who could lead at the moment")
		case best != e.id && !n.Reachable(best):
			err = engine.Refused("server %d has been silent for too long to lead", best)
		default:
			n.Step(replica.Transfer{To: best})
		}
	}); failed != nil {
		return 0, failed
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferWithin)
	defer cancel()
	for {
		v := e.view.Load()
		if v.leader != 0 && v.leader != e.id || to == e.id {
			return v.leader, nil
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return 0, engine.Unavailable("the lead could not be given away in time: try again")
		case <-e.stopped:
			return 0, errStopping
		}
	}
}

// sums are hashes of this server's state at some places of the log.
type sums struct {
	mu      sync.Mutex
	hashes  map[uint64]string
	changed chan struct{} // closed when there is another one

	working sync.Mutex   // one at a time: each takes all that a core can do
	pending atomic.Int64 // how many are to be made

	took      time.Duration                    // by the newest of them; guarded by mu
	comparing sync.Mutex                       // one at a time
	odd       atomic.Pointer[[]replica.Member] // whose states differed when they were last compared; nil: they were not
}

// maxSums is how many of them are kept, and how many may wait to be made.
const maxSums = 16

func (s *sums) add(index uint64, hash string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hashes[index], s.took = hash, took
	if len(s.hashes) > maxSums {
		delete(s.hashes, slices.Min(slices.Collect(maps.Keys(s.hashes))))
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// at waits for the hash at an index.
func (s *sums) at(ctx context.Context, index uint64) (string, error) {
	for {
		s.mu.Lock()
		hash, changed := s.hashes[index], s.changed
		s.mu.Unlock()
		if hash != "" {
			return hash, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", engine.Unavailable("the state was not summed up in time")
		}
	}
}

// summed hashes a frozen state in the background. Whoever asks for more of them than can be
// made goes without: each keeps the state of its moment in memory.
func (e *Engine) summed(index uint64, frozen *core.State) {
	if e.sums.pending.Add(1) > maxSums {
		e.sums.pending.Add(-1)
		e.log.Warn("the state is not summed up: too many ask for it", "index", index)
		return
	}
	e.network.workers.Go(func() {
		if hash := e.sumUp(index, frozen); hash != "" {
			e.compare(index, hash)
		}
	})
}

func (e *Engine) sumUp(index uint64, frozen *core.State) string {
	defer e.sums.pending.Add(-1)
	e.sums.working.Lock()
	defer e.sums.working.Unlock()
	if isClosed(e.stopped) {
		return ""
	}
	began, hash := time.Now(), sha256.New()
	if _, err := wire.WriteSnapshot(hash, frozen); err != nil {
		e.log.Error("the state can not be summed up", "err", err)
		return ""
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	e.sums.add(index, sum, time.Since(began))
	return sum
}

// Sums returns a hash of each server's state at one and the same place of the log.
func (e *Engine) Sums(ctx context.Context) (engine.Sums, error) {
	a, err := e.change(ctx, replica.Change{Kind: replica.Sum})
	if err != nil {
		return engine.Sums{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, sumWithin)
	defer cancel()
	return engine.Sums{Index: a.Index, Of: e.askSums(ctx, e.network.current(), a.Index)}, nil
}

func (e *Engine) sumOf(ctx context.Context, id, index uint64) (string, error) {
	if id == e.id {
		return e.sums.at(ctx, index)
	}
	return askServer[uint64, string](ctx, e.network, id, askSum, index)
}
