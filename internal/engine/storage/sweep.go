package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold"
)

// Large values are deleted when no record names them, in the background. A value that is
// deleted although a record names it is data loss, so the order matters: first a value must
// have been idle for long enough that no command that names it can still be on its way; then
// the state is asked, with a linearizable read; then it is checked that nobody has put it again
// in the meantime. A value that stays too long only takes room.

// How often unnamed values are looked for: among those known in memory, and on disk. The disk
// has to be scanned too, since a snapshot from another server does not say what it no longer
// names.
const (
	SweepEvery = time.Minute
	scanEvery  = 6 * time.Hour
	maxSwept   = 1000 // in one look at the state
)

// Tend deletes values that nothing names, until done is closed. The function named says which
// values the state names; it must know of everything that was answered.
func (s *Values) Tend(done <-chan struct{}, named func(context.Context, []leasehold.Digest) ([]bool, error)) {
	s.scan()
	sweep, scan := time.NewTicker(SweepEvery), time.NewTicker(scanEvery)
	defer sweep.Stop()
	defer scan.Stop()
	inTime := func(list []leasehold.Digest) ([]bool, error) {
		ctx, stop := context.WithTimeout(context.Background(), SweepEvery)
		defer stop()
		return named(ctx, list)
	}
	for {
		select {
		case <-sweep.C:
			s.sweep(inTime)
		case <-scan.C:
			s.scan()
		case <-done:
			return
		}
	}
}

// scan marks every file as idle from now on, unless it is known already. sweep then asks
// whether anything names it.
func (s *Values) scan() {
	folders, err := os.ReadDir(s.dir)
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		files, failure := os.ReadDir(filepath.Join(s.dir, folder.Name()))
		err = errors.Join(err, failure)
		s.mu.Lock()
		for _, f := range files {
			d, ok := leasehold.ParseDigest(f.Name())
			if _, known := s.idle[d]; ok && !known {
				s.idle[d] = s.now()
			}
		}
		s.mu.Unlock()
	}
	if err != nil {
		s.log.Warn("large values cannot be listed", "err", err)
	}
}

// due returns values that nobody has put or freed for a while. A pin stops all deletion: a
// backup that is being written needs values which the live state may no longer name.
func (s *Values) due() (list []leasehold.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned > 0 {
		return nil
	}
	for d, since := range s.idle {
		if s.now()-since >= ValueIdle && s.deleting[d] == nil {
			if list = append(list, d); len(list) == maxSwept {
				break
			}
		}
	}
	return list
}

// sweep deletes what is due and not named.
func (s *Values) sweep(named func([]leasehold.Digest) ([]bool, error)) {
	for {
		due := s.due()
		if len(due) == 0 {
			return
		}
		is, err := named(due)
		if err != nil {
			return // nobody can tell: the next time will do
		}
		for i, d := range due {
			s.drop(d, is[i])
		}
		if len(due) < maxSwept {
			return
		}
	}
}

// drop deletes a value, unless it is named, or somebody put it in the meantime.
func (s *Values) drop(d leasehold.Digest, named bool) {
	s.mu.Lock()
	since, idle := s.idle[d]
	if !idle || s.pinned > 0 || s.now()-since < ValueIdle {
		s.mu.Unlock()
		return
	}
	// Named values leave the list as well: Freed puts them back when the last name goes.
	delete(s.idle, d)
	delete(s.spread, d)
	if named {
		s.mu.Unlock()
		return
	}
	s.remove(d)
}

// Drop deletes a value at once that nothing names, unless somebody holds it. It reports whether it is gone.
func (s *Values) Drop(d leasehold.Digest) bool {
	s.mu.Lock()
	if s.held[d] > 0 || s.pinned > 0 || s.deleting[d] != nil {
		s.mu.Unlock()
		return false
	}
	delete(s.idle, d)
	delete(s.spread, d)
	s.remove(d)
	return true
}

// remove deletes the file of a value. mu is held when it is called, and not when it returns.
func (s *Values) remove(d leasehold.Digest) {
	// From here on a Put of the same bytes waits in settle. Without that, its new file could be
	// removed by the call below, after Put had reported it durable.
	gone := make(chan struct{})
	s.deleting[d] = gone
	delete(s.checked, d)
	s.mu.Unlock()

	if err := os.Remove(s.File(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("a large value that nothing names could not be deleted", "err", err)
	}
	s.mu.Lock()
	delete(s.deleting, d)
	s.mu.Unlock()
	close(gone)
}
