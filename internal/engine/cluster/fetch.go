package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Several servers keep the same large values. The server that takes a value from a caller gives
// it to others until a majority has it, and only then may a command name it: an entry in the
// log must never name bytes that a failure of a minority could lose. A server that finds a
// value named which it lacks, because it was away, is new, or its file was damaged, asks the
// others for it.

// giveWithin is generous: a large value takes its time. What counts is whether bytes still
// move, and the mesh looks after that.
const (
	giveWithin  = 30 * time.Minute
	fetchPause  = time.Second
	lookThrough = time.Minute // how often a server looks whether it has all that it should

	maxGiving = 16 // values that are on their way to one server at a time
)

// errEnough is why a value was not sent.
var errEnough = errors.New("a majority has it already")

// valueName is how servers name a value to each other.
type valueName struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

func nameOf(large leasehold.Large) valueName { return valueName{large.SHA256.String(), large.Size} }

func (v valueName) large() (leasehold.Large, error) {
	d, ok := leasehold.ParseDigest(v.SHA256)
	if !ok {
		return leasehold.Large{}, &leasehold.Error{Code: leasehold.Invalid,
			Message: "that is not the digest of a large value"}
	}
	return leasehold.Large{SHA256: d, Size: v.Size}, nil
}

// A fetcher knows which values a server may lack.
type fetcher struct {
	wake chan struct{} // has one element while there is something to look for

	mu      sync.Mutex // guards what follows
	wanted  map[leasehold.Digest]leasehold.Large
	unsure  bool   // the whole state has to be looked through
	since   uint64 // how far it has to have come for that
	flights map[leasehold.Digest]*flight
	giving  map[uint64]chan struct{} // by server: has an element for each value on its way there
}

// A flight is a value on its way here.
type flight struct {
	done chan struct{}
	err  error // set before done is closed
}

func newFetcher() *fetcher {
	return &fetcher{wake: make(chan struct{}, 1), wanted: map[leasehold.Digest]leasehold.Large{}, unsure: true,
		flights: map[leasehold.Digest]*flight{}, giving: map[uint64]chan struct{}{}}
}

// giveTo returns where who sends a value to a server takes its turn.
func (h *fetcher) giveTo(id uint64) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.giving[id] == nil {
		h.giving[id] = make(chan struct{}, maxGiving)
	}
	return h.giving[id]
}

// want notes values that are named now.
func (h *fetcher) want(list ...leasehold.Large) {
	if len(list) == 0 {
		return
	}
	h.mu.Lock()
	for _, large := range list {
		h.wanted[large.SHA256] = large
	}
	h.mu.Unlock()
	h.notify()
}

// recheck notes that the state will be replaced, and has to be looked through once it has
// reached an index. Entries name what they add; a snapshot does not.
func (h *fetcher) recheck(since uint64) {
	h.mu.Lock()
	h.unsure, h.since = true, max(h.since, since)
	h.mu.Unlock()
	h.notify()
}

// notify wakes the loop that fetches.
func (h *fetcher) notify() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// lacks reports whether something may be missing here. In doubt it says yes: a server gets a
// vote only if it lacks nothing.
func (h *fetcher) lacks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unsure || len(h.wanted) > 0
}

func (h *fetcher) list() (all []leasehold.Large, unsure bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, large := range h.wanted {
		all = append(all, large)
	}
	return all, h.unsure
}

func (h *fetcher) found(d leasehold.Digest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.wanted, d)
}

// fetchLoop fetches what this server lacks.
func (e *Engine) fetchLoop() {
	ctx := e.network.ctx
	again := time.NewTicker(lookThrough)
	defer again.Stop()
	for {
		select {
		case <-e.fetcher.wake:
		case <-again.C:
			if len(e.others()) > 0 {
				e.fetcher.recheck(0)
			}
		case <-e.stopped:
			return
		}
		for !e.fetchMissing(ctx) {
			pause(ctx, fetchPause)
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// fetchMissing looks for all that is wanted, and reports whether it is done.
func (e *Engine) fetchMissing(ctx context.Context) bool {
	list, unsure := e.fetcher.list()
	if unsure {
		if !e.lookThrough(ctx) {
			return false
		}
		list, _ = e.fetcher.list()
	}
	done := true
	for _, large := range list {
		// What is no longer named need not be fetched, and the others may have deleted it.
		if e.values.Has(large) || !e.namesHere(ctx, large.SHA256) {
			e.fetcher.found(large.SHA256)
			continue
		}
		if err := e.fetch(ctx, large); err != nil {
			if len(e.others()) == 0 {
				// Nobody else could have it. A caller that wants it gets an error, and so does
				// leasehold check.
				e.log.Error("a large value that records refer to is missing", "value", large.SHA256.String())
				e.fetcher.found(large.SHA256)
				continue
			}
			e.log.Warn("a large value is missing on this server, and no other could send it yet", "value",
				large.SHA256.String(), "err", err)
			done = false
			continue
		}
		e.fetcher.found(large.SHA256)
	}
	return done
}

// lookThrough finds what of the whole state is missing, and reports whether the state has come
// as far as it should. It works on a frozen copy, so that the node does not wait.
func (e *Engine) lookThrough(ctx context.Context) bool {
	var frozen *core.State
	var applied uint64
	if err := e.inspect(ctx, func(n *replica.Node) { frozen, applied = n.State().Freeze(), n.Applied() }); err != nil {
		return isClosed(e.stopped)
	}
	var missing []leasehold.Large
	frozen.Larges(func(large leasehold.Large) bool {
		if !e.values.Has(large) {
			missing = append(missing, large)
		}
		return ctx.Err() == nil
	})
	e.fetcher.mu.Lock()
	defer e.fetcher.mu.Unlock()
	for _, large := range missing {
		e.fetcher.wanted[large.SHA256] = large
	}
	if applied < e.fetcher.since {
		return false
	}
	e.fetcher.unsure = false
	return true
}

// namesHere reports whether this server's state names a value, however far it has come. If it
// cannot be asked, the value counts as named: an unneeded fetch does no harm.
func (e *Engine) namesHere(ctx context.Context, d leasehold.Digest) (is bool) {
	err := e.inspect(ctx, func(n *replica.Node) { is = n.State().NamesLarge(d) })
	return is || err != nil
}

// others returns the ids of the other members.
func (e *Engine) others() (ids []uint64) {
	for _, m := range e.network.current().Members {
		if m.ID != e.id {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// fetch gets a value from another server. Callers that want the same value wait for the same transfer, which none of
// them ends by going away: this server should have the value anyway.
func (e *Engine) fetch(ctx context.Context, large leasehold.Large) error {
	e.fetcher.mu.Lock()
	f := e.fetcher.flights[large.SHA256]
	first := f == nil
	if first {
		f = &flight{done: make(chan struct{})}
		e.fetcher.flights[large.SHA256] = f
	}
	e.fetcher.mu.Unlock()
	if first && !e.spawn(func() { e.fly(f, large) }) {
		return errStopping
	}
	select {
	case <-f.done:
		return f.err
	case <-e.stopped:
		return errStopping
	case <-ctx.Done():
		return engine.Unavailable("the request ended before the value arrived")
	}
}

// fly carries out a transfer.
func (e *Engine) fly(f *flight, large leasehold.Large) {
	f.err = e.fetchFrom(e.network.ctx, large)
	e.fetcher.mu.Lock()
	delete(e.fetcher.flights, large.SHA256)
	e.fetcher.mu.Unlock()
	close(f.done)
}

// fetchFrom asks the others in turn to send a value. They send it over their own connection;
// what counts is that the file is here afterwards.
func (e *Engine) fetchFrom(ctx context.Context, large leasehold.Large) error {
	err := engine.NoValue(large)
	for _, id := range e.others() {
		has, failure := askServer[valueName, bool](ctx, e.network, id, askValue, nameOf(large))
		switch {
		case failure != nil:
			err = failure
		case has && e.values.Has(large):
			e.log.Info("a missing large value arrived", "value", large.SHA256.String(), "by",
				e.network.nameOf(id))
			return nil
		}
	}
	return err
}

// sendValue sends a value to a server that asked for it, and reports whether it was here.
func (e *Engine) sendValue(ctx context.Context, to uint64, v valueName) (bool, error) {
	large, err := v.large()
	if err != nil {
		return false, err
	}
	err = e.streamValue(ctx, to, large)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// streamValue sends the file of a value. The receiver sees by the digest whether it is right.
func (e *Engine) streamValue(ctx context.Context, to uint64, large leasehold.Large) error {
	head, err := json.Marshal(nameOf(large))
	if err != nil {
		return err
	}
	f, err := os.Open(e.values.File(large.SHA256))
	if err != nil {
		return err
	}
	defer f.Close()
	return e.network.mesh.Stream(ctx, to, streamValue, head, f)
}

// takeValue keeps a value that another server sends.
func (e *Engine) takeValue(ctx context.Context, from peer.Identity, head []byte, body io.Reader) error {
	var v valueName
	if err := json.Unmarshal(head, &v); err != nil {
		return errMessage
	}
	want, err := v.large()
	if err != nil {
		return err
	}
	got, err := e.values.Put(ctx, body)
	if err == nil {
		e.values.Let(got.SHA256)
	}
	if err == nil && got != want {
		err = fmt.Errorf("server %s sent %d bytes that are not the large value %s", from.Name, got.Size, v.SHA256)
		e.log.Error("a large value arrived damaged", "err", err)
	}
	return err
}

// hasValue tells another server whether a value is here, and keeps it for a while: the other is
// about to name it.
func (e *Engine) hasValue(v valueName) (bool, error) {
	large, err := v.large()
	if err != nil {
		return false, err
	}
	return e.values.Nameable(large) == nil, nil
}

// spread gives a value to others until a majority of the voters has it. Transfers to the rest
// go on in the background, and a server that lacks the value later asks for it.
func (e *Engine) spread(ctx context.Context, large leasehold.Large) error {
	roster := e.network.current()
	voters := roster.Voters()
	need := len(voters)/2 + 1
	if i := slices.Index(voters, e.id); i >= 0 {
		voters = slices.Delete(slices.Clone(voters), i, i+1)
		need--
	}
	results := make(chan error, len(voters))
	enough := make(chan struct{})
	defer close(enough)
	for _, id := range voters {
		if !e.spawn(func() { results <- e.give(id, large, enough) }) {
			return errStopping
		}
	}
	if err := e.enough(ctx, results, need, len(voters)); err != nil {
		return err
	}
	e.values.Shared(large.SHA256, roster)
	return nil
}

// enough waits until need of the servers that were given a value have it, or too few are left.
func (e *Engine) enough(ctx context.Context, results <-chan error, need, left int) error {
	for ; need > 0; left-- {
		if need > left {
			return engine.Unavailable("the value could not be kept by a majority of the servers: try again in a moment")
		}
		select {
		case err := <-results:
			if err == nil {
				need--
			} else {
				e.log.Warn("a large value could not be sent to another server", "err", err)
			}
		case <-ctx.Done():
			return engine.Unavailable("the request ended before its value was kept by a majority")
		case <-e.stopped:
			return errStopping
		}
	}
	return nil
}

// give makes sure that another server has a value. If that has not begun when there are enough without it, it is not
// sent.
func (e *Engine) give(to uint64, large leasehold.Large, enough <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(e.network.ctx, giveWithin)
	defer cancel()
	turn := e.fetcher.giveTo(to)
	select {
	case turn <- struct{}{}:
	default:
		select {
		case turn <- struct{}{}:
		case <-enough:
			return errEnough
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-turn }()
	has, err := askServer[valueName, bool](ctx, e.network, to, askHasValue, nameOf(large))
	if err != nil || has {
		return err
	}
	return e.streamValue(ctx, to, large)
}

// spawn does something in the background, unless the server stops.
func (e *Engine) spawn(fn func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if isClosed(e.stopped) {
		return false
	}
	e.network.workers.Go(fn)
	return true
}

// complete reports whether another server said lately that it has all values that its state
// names, and has come nearly as far as this one.
func (n *network) complete(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, ok := n.health[id]
	return ok && time.Since(h.at) <= healthFor && !h.lacks && h.applied+replica.PromoteLag >= n.applied.Load()
}
