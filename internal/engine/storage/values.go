package storage

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A Values keeps large values as files beside the log:
//
//	values/ab/ab12…      the bytes whose SHA-256 that is
//	values/put-….tmp     bytes that are still coming
//	values/ab/….damaged  bytes that were found to be others than they should
//
// A file is durable before anybody can name it, and never changes. What nothing names is
// deleted after a while, in the background: a caller that puts a value has that time to name it.
type Values struct {
	dir  string
	now  func() time.Duration
	full func() bool
	log  *slog.Logger
	most int64 // bytes of one value
	lost func(leasehold.Large)

	mu       sync.Mutex // guards what follows, and is never held while the disk works
	idle     map[leasehold.Digest]time.Duration
	deleting map[leasehold.Digest]chan struct{} // closed when it is done
	pinned   int                                // those who need all that is there
	checked  map[leasehold.Digest]struct{}      // those whose bytes were read and found right
	spread   map[leasehold.Digest]sharing       // those that a majority has
	held     map[leasehold.Digest]int           // by those who put or name them
}

// A sharing is when a majority was known to have a value, and of whom.
type sharing struct {
	at     time.Duration
	roster *replica.Roster
}

// What nothing has named for ValueIdle is deleted. That is twice what callers are promised, so
// that a command which names a value at the last moment is applied by then.
const (
	ValueIdle   = 2 * engine.ValueIdle
	valueBuffer = 256 << 10
	damagedEnd  = ".damaged"
)

var valueBuffers = sync.Pool{New: func() any { b := make([]byte, valueBuffer); return &b }}

// ValuesConfig says how large values are kept. Only Dir has to be set.
type ValuesConfig struct {
	Dir  string
	Now  func() time.Duration  // a monotonic clock
	Full func() bool           // reports whether the disk has no room for more
	Lost func(leasehold.Large) // hears of a value that is damaged
	Log  *slog.Logger
}

func (c ValuesConfig) withDefaults() ValuesConfig {
	if c.Now == nil {
		c.Now = func() time.Duration { return 0 }
	}
	if c.Full == nil {
		c.Full = func() bool { return false }
	}
	if c.Lost == nil {
		c.Lost = func(leasehold.Large) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// OpenValues returns the large values in a directory, which it makes if need be.
func OpenValues(c ValuesConfig) (*Values, error) {
	c = c.withDefaults()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("large values cannot be kept: %w", err)
	}
	s := &Values{
		dir: c.Dir, now: c.Now, full: c.Full, log: c.Log, lost: c.Lost, most: leasehold.MaxLarge,
		idle: map[leasehold.Digest]time.Duration{}, deleting: map[leasehold.Digest]chan struct{}{},
		checked: map[leasehold.Digest]struct{}{}, spread: map[leasehold.Digest]sharing{},
		held: map[leasehold.Digest]int{},
	}
	unfinished, err := filepath.Glob(filepath.Join(c.Dir, "put-*.tmp"))
	for _, name := range unfinished {
		err = errors.Join(err, os.Remove(name))
	}
	return s, err
}

// File returns the name of a value's file. Two digits of the digest are a folder, which keeps
// each folder small.
func (s *Values) File(d leasehold.Digest) string {
	name := d.String()
	return filepath.Join(s.dir, name[:2], name)
}

// Put keeps the bytes of r. They are durable when it returns, and held until Let is called.
func (s *Values) Put(ctx context.Context, r io.Reader) (leasehold.Large, error) {
	if s.full() {
		return leasehold.Large{}, fullError()
	}
	f, err := os.CreateTemp(s.dir, "put-*.tmp")
	if err != nil {
		return leasehold.Large{}, s.unkept(err)
	}
	defer os.Remove(f.Name()) // does nothing once it has its own name
	large, err := s.copy(ctx, f, r)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = s.unkept(cerr)
	}
	if err == nil {
		err = s.place(f.Name(), large)
	}
	if err != nil {
		return leasehold.Large{}, err
	}
	return large, nil
}

// copy writes what r has, and makes it durable.
func (s *Values) copy(ctx context.Context, f *os.File, r io.Reader) (large leasehold.Large, err error) {
	buffer := valueBuffers.Get().(*[]byte)
	defer valueBuffers.Put(buffer)
	sum, w := sha256.New(), &pacedWriter{file: f, stop: ctx.Done()}
	for {
		n, failure := readUntil(r, *buffer)
		b := (*buffer)[:n]
		large.Size += int64(n)
		switch {
		case large.Size > s.most:
			return large, engine.TooLarge()
		// The disk may fill up while a large value arrives.
		case s.full():
			return large, fullError()
		case failure != nil && failure != io.EOF:
			return large, engine.CutOff(failure)
		}
		sum.Write(b)
		if _, err := w.Write(b); err != nil {
			return large, s.unkept(err)
		}
		if failure == io.EOF {
			break
		}
	}
	sum.Sum(large.SHA256[:0])
	if err := f.Sync(); err != nil {
		return large, s.unkept(err)
	}
	return large, nil
}

// readUntil reads until b is full or something is wrong. Unlike io.ReadFull it returns the
// reader's own error, so that the end can be told from a connection that broke.
func readUntil(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = r.Read(b[n:])
		n += more
	}
	return n, err
}

// place gives a finished file its name. A file that is there already is replaced by the
// same bytes, which are known to be right.
func (s *Values) place(tmp string, large leasehold.Large) error {
	s.settle(large.SHA256, 1)
	name := s.File(large.SHA256)
	folder := filepath.Dir(name)
	err := os.Mkdir(folder, 0o700)
	if err == nil {
		err = SyncDir(s.dir)
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err == nil {
		err = SyncDir(folder)
	}
	if err != nil {
		s.Let(large.SHA256)
		return s.unkept(err)
	}
	return nil
}

// settle waits until a value is not being deleted, restarts its idle time, and holds it so many times.
func (s *Values) settle(d leasehold.Digest, holds int) {
	for {
		s.mu.Lock()
		gone := s.deleting[d]
		if gone == nil {
			s.idle[d] = s.now()
			if holds > 0 {
				s.held[d] += holds
			}
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		<-gone
	}
}

// Nameable returns an error if a value is not here, and otherwise keeps it for as long as a
// command that names it may take.
func (s *Values) Nameable(large leasehold.Large) error {
	s.settle(large.SHA256, 0)
	if !s.Has(large) {
		return engine.Unnameable(large)
	}
	return nil
}

// Hold keeps values from being dropped until LetAll is called.
func (s *Values) Hold(list []leasehold.Large) {
	for _, large := range list {
		s.settle(large.SHA256, 1)
	}
}

// LetAll lets go of what Hold held.
func (s *Values) LetAll(list []leasehold.Large) {
	for _, large := range list {
		s.Let(large.SHA256)
	}
}

// Let says that somebody who held a value is done with it.
func (s *Values) Let(d leasehold.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[d]--; s.held[d] <= 0 {
		delete(s.held, d)
	}
}

// Has reports whether a value is here, by its size alone: readers compare the digest.
func (s *Values) Has(large leasehold.Large) bool {
	info, err := os.Stat(s.File(large.SHA256))
	return err == nil && info.Size() == large.Size
}

// Shared notes that a majority of a roster has a value.
func (s *Values) Shared(d leasehold.Digest, roster *replica.Roster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spread[d] = sharing{s.now(), roster}
}

// IsShared reports whether a majority is known to have a value and to keep it for a while yet.
// It is asked with the roster of today: a majority of other members proves nothing.
func (s *Values) IsShared(d leasehold.Digest, roster *replica.Roster) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.spread[d]
	return ok && known.roster == roster && s.now()-known.at < engine.ValueIdle
}

// Pin keeps everything that is there until unpin is called.
func (s *Values) Pin() (unpin func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pinned--
	}
}

// Freed notes that nothing names some values now.
func (s *Values) Freed(list []leasehold.Large) {
	if len(list) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, large := range list {
		s.idle[large.SHA256] = s.now()
	}
}

// fullError is the same refusal that the engine gives when the disk is nearly full.
func fullError() error {
	return &leasehold.Error{Code: leasehold.Limited, Message: "the server's disk is nearly full: no large value is " +
		"taken until there is room"}
}

// unkept is the error of a value that the disk did not take. Unlike a failed log write it does
// not stop the server: nobody was told that the value is kept.
func (s *Values) unkept(err error) error {
	if isNoRoom(err) {
		return fullError()
	}
	if errors.Is(err, errGaveUp) {
		return engine.Unavailable("the request ended before its value was kept")
	}
	s.log.Error("a large value cannot be kept", "err", err)
	return engine.Unavailable("the server cannot keep this value: its disk fails. Try again")
}

// Open reads a value.
func (s *Values) Open(large leasehold.Large) (*valueReader, error) {
	f, err := os.Open(s.File(large.SHA256))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, engine.NoValue(large)
	}
	if err != nil {
		s.log.Error("a large value cannot be opened", "err", err)
		return nil, engine.Unavailable("the server cannot read this value: its disk fails")
	}
	r := &valueReader{store: s, file: f, large: large, sum: sha256.New()}
	if info, err := f.Stat(); err != nil || info.Size() != large.Size {
		_ = f.Close()
		return nil, s.damaged(large, "it has another size")
	}
	return r, nil
}

// damaged renames a file whose bytes do not match its digest. It is kept for diagnosis; under its
// own name it would count as present, and would never be fetched again.
func (s *Values) damaged(large leasehold.Large, what string) error {
	name := s.File(large.SHA256)
	s.log.Error("a large value is damaged", "file", name, "what", what)
	s.mu.Lock()
	delete(s.checked, large.SHA256)
	s.mu.Unlock()
	if err := os.Rename(name, name+damagedEnd); err != nil {
		s.log.Error("a damaged value could not be set aside", "err", err)
	}
	s.lost(large)
	return &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf(
		"large value %v is damaged on this server's disk (%s); it was set aside as %s%s: put it again, or restore it "+
			"from a backup", large.SHA256, what, filepath.Base(name), damagedEnd)}
}

// Verify reads a value to its end and returns an error if it is not what its name says.
func (s *Values) Verify(large leasehold.Large) error {
	r, err := s.Open(large)
	if err != nil {
		return err
	}
	defer r.Close()
	buffer := valueBuffers.Get().(*[]byte)
	defer valueBuffers.Put(buffer)
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, *buffer)
	return err
}
