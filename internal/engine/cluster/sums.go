package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// Sums are hashes of the whole state at one place in the log, for comparing servers: see
// diverge.go.

// sums are hashes of this server's state at some places in the log.
type sums struct {
	mu      sync.Mutex
	hashes  map[uint64]string
	changed chan struct{} // closed when there is another one

	working sync.Mutex   // one at a time: each takes all that a core can do
	pending atomic.Int64 // how many are still to do

	took      time.Duration                    // by the newest of them; guarded by mu
	comparing atomic.Int64                     // how many comparisons are under way
	judged    uint64                           // place of the newest comparison that came to an end; guarded by mu
	odd       atomic.Pointer[[]replica.Member] // whose states differed when they were last compared; nil: they were not
}

// maxSums is how many of them are kept, and how many may wait to be made.
const maxSums = 16

// add keeps a hash, and wakes those who wait for it.
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
			return "", engine.Unavailable("the state was not hashed in time")
		}
	}
}

// summed hashes a frozen state in the background. If too many are asked for, some are skipped:
// each keeps the state of its moment in memory.
func (e *Engine) summed(index uint64, frozen *core.State) {
	if e.sums.pending.Add(1) > maxSums {
		e.sums.pending.Add(-1)
		e.log.Warn("the state is not hashed: too many requests for that", "index", index)
		return
	}
	e.network.workers.Go(func() {
		if hash := e.sumUp(index, frozen); hash != "" {
			e.compare(index, hash)
		}
	})
}

// sumUp hashes a state, one at a time.
func (e *Engine) sumUp(index uint64, frozen *core.State) string {
	defer e.sums.pending.Add(-1)
	e.sums.working.Lock()
	defer e.sums.working.Unlock()
	if isClosed(e.stopped) {
		return ""
	}
	began, hash := time.Now(), sha256.New()
	if _, err := wire.WriteSnapshot(hash, frozen); err != nil {
		e.log.Error("the state cannot be hashed", "err", err)
		return ""
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	e.sums.add(index, sum, time.Since(began))
	return sum
}

// Sums returns a hash of each server's state at one and the same place in the log.
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

// askSums returns the hashes of all members at an index, as far as they come in time.
func (e *Engine) askSums(ctx context.Context, roster *replica.Roster, index uint64) []engine.Sum {
	all := make([]engine.Sum, 0, len(roster.Members))
	for s := range e.eachSum(ctx, roster, index) {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b engine.Sum) int { return cmp.Compare(a.Server, b.Server) })
	return all
}

// eachSum brings the hashes of all members at an index as they come, or why they do not.
func (e *Engine) eachSum(ctx context.Context, roster *replica.Roster, index uint64) <-chan engine.Sum {
	all := make(chan engine.Sum, len(roster.Members))
	var asked sync.WaitGroup
	for _, m := range roster.Members {
		asked.Go(func() {
			s := engine.Sum{Server: m.ID, Name: m.Name}
			hash, err := e.sumOf(ctx, m.ID, index)
			if s.Hash = hash; err != nil {
				s.Err = err.Error()
			}
			all <- s
		})
	}
	go func() {
		asked.Wait()
		close(all)
	}()
	return all
}
