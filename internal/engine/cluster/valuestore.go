package cluster

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
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

// A valueStore keeps large values as files beside the log:
//
//	values/ab/ab12…      the bytes whose SHA-256 that is
//	values/put-….tmp     bytes that are still coming
//	values/ab/….damaged  bytes that were found to be others than they should
//
// A file is durable before anybody can name it, and never changes. What nothing names is
// deleted after a while, in the background: whoever puts a value has that time to name it.
type valueStore struct {
	dir  string
	now  func() time.Duration
	full func() bool // the disk has no room for more
	log  *slog.Logger
	most int64                 // bytes of one value
	lost func(leasehold.Large) // hears of a value that is damaged; nil: nobody does

	mu       sync.Mutex // guards what follows, and is never held while the disk works
	idle     map[leasehold.Digest]time.Duration
	deleting map[leasehold.Digest]chan struct{} // closed when it is done
	pinned   int                                // those who need all that is there
	checked  map[leasehold.Digest]struct{}      // those whose bytes were read and found right
	spread   map[leasehold.Digest]sharing       // those that a majority has
}

// A sharing is when a majority was known to have a value, and of whom.
type sharing struct {
	at     time.Duration
	roster *Roster
}

// How values are looked after. What nothing has named for valueIdle goes; it is longer than
// was promised, so that a command that named it in the last moment is through.
const (
	valueIdle   = 2 * engine.ValueIdle
	sweepEvery  = time.Minute
	scanEvery   = 6 * time.Hour
	maxSwept    = 1000 // in one look at the state
	valueBuffer = 256 << 10
	damagedEnd  = ".damaged"
)

var valueBuffers = sync.Pool{New: func() any { b := make([]byte, valueBuffer); return &b }}

func openValues(dir string, now func() time.Duration, full func() bool, log *slog.Logger) (*valueStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("large values can not be kept: %w", err)
	}
	s := &valueStore{
		dir: dir, now: now, full: full, log: log, most: leasehold.MaxLarge,
		idle: map[leasehold.Digest]time.Duration{}, deleting: map[leasehold.Digest]chan struct{}{}, checked: map[leasehold.Digest]struct{}{}, spread: map[leasehold.Digest]sharing{},
	}
	unfinished, err := filepath.Glob(filepath.Join(dir, "put-*.tmp"))
	for _, name := range unfinished {
		err = errors.Join(err, os.Remove(name))
	}
	return s, err
}

func (s *valueStore) file(d leasehold.Digest) string {
	name := d.String()
	return filepath.Join(s.dir, name[:2], name)
}

// put keeps the bytes of r. They are durable when it returns.
func (s *valueStore) put(ctx context.Context, r io.Reader) (leasehold.Large, error) {
	if s.full() {
		return leasehold.Large{}, noRoom()
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
func (s *valueStore) copy(ctx context.Context, f *os.File, r io.Reader) (large leasehold.Large, err error) {
	buffer := valueBuffers.Get().(*[]byte)
	defer valueBuffers.Put(buffer)
	sum, w := sha256.New(), &gentle{file: f, stop: ctx.Done()}
	for {
		n, failure := readUntil(r, *buffer)
		b := (*buffer)[:n]
		large.Size += int64(n)
		switch {
		case large.Size > s.most:
			return large, engine.TooLarge()
		case s.full():
			return large, noRoom()
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

// readUntil reads until b is full or something is wrong. Unlike io.ReadFull it tells the end
// from a connection that broke.
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
func (s *valueStore) place(tmp string, large leasehold.Large) error {
	s.settle(large.SHA256)
	name := s.file(large.SHA256)
	folder := filepath.Dir(name)
	err := os.Mkdir(folder, 0o700)
	if err == nil {
		err = syncDir(s.dir)
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err == nil {
		err = syncDir(folder)
	}
	if err != nil {
		return s.unkept(err)
	}
	return nil
}

// settle waits until a value is not being deleted, and lets it stay for a while.
func (s *valueStore) settle(d leasehold.Digest) {
	for {
		s.mu.Lock()
		gone := s.deleting[d]
		if gone == nil {
			s.idle[d] = s.now()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		<-gone
	}
}

// nameable tells whether a value is here, and lets it stay for as long as a command that
// names it may take.
func (s *valueStore) nameable(large leasehold.Large) error {
	s.settle(large.SHA256)
	if !s.has(large) {
		return engine.Unnameable(large)
	}
	return nil
}

func (s *valueStore) has(large leasehold.Large) bool {
	info, err := os.Stat(s.file(large.SHA256))
	return err == nil && info.Size() == large.Size
}

// shared notes that a majority of a roster has a value.
func (s *valueStore) shared(d leasehold.Digest, roster *Roster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spread[d] = sharing{s.now(), roster}
}

// isShared tells whether a majority has a value, and keeps it for a while yet.
func (s *valueStore) isShared(d leasehold.Digest, roster *Roster) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.spread[d]
	return ok && known.roster == roster && s.now()-known.at < engine.ValueIdle
}

// pin lets everything stay that is there, until unpin is called.
func (s *valueStore) pin() (unpin func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pinned--
	}
}

// freed notes that nothing names some values any more.
func (s *valueStore) freed(list []leasehold.Large) {
	if len(list) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, large := range list {
		s.idle[large.SHA256] = s.now()
	}
}

// noRoom is what the engine says as well when the disk is nearly full.
func noRoom() error {
	return &leasehold.Error{Code: leasehold.Limited, Message: "the server's disk is nearly full: no large value is taken until there is room"}
}

// unkept is the error of a value that the disk did not take. Nobody was told that it is
// kept, so that the server can go on.
func (s *valueStore) unkept(err error) error {
	if isNoRoom(err) {
		return noRoom()
	}
	if errors.Is(err, errGaveUp) {
		return engine.Unavailable("the request ended before its value was kept")
	}
	s.log.Error("a large value can not be kept", "err", err)
	return engine.Unavailable("the server can not keep this value: its disk fails. Try again")
}

// open reads a value.
func (s *valueStore) open(large leasehold.Large) (*valueReader, error) {
	f, err := os.Open(s.file(large.SHA256))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, engine.NoValue(large)
	}
	if err != nil {
		s.log.Error("a large value can not be opened", "err", err)
		return nil, engine.Unavailable("the server can not read this value: its disk fails")
	}
	r := &valueReader{store: s, file: f, large: large, sum: sha256.New()}
	if info, err := f.Stat(); err != nil || info.Size() != large.Size {
		_ = f.Close()
		return nil, s.damaged(large, "it has another size")
	}
	return r, nil
}

// damaged takes a file away whose bytes are not those that its name says.
func (s *valueStore) damaged(large leasehold.Large, what string) error {
	name := s.file(large.SHA256)
	s.log.Error("a large value is damaged", "file", name, "what", what)
	s.mu.Lock()
	delete(s.checked, large.SHA256)
	s.mu.Unlock()
	if err := os.Rename(name, name+damagedEnd); err != nil {
		s.log.Error("a damaged value could not be set aside", "err", err)
	}
	if s.lost != nil {
		s.lost(large)
	}
	return &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf(
		"large value %v is damaged on this server's disk (%s); it was set aside as %s%s: put it again, or restore it from a backup", large.SHA256, what, filepath.Base(name), damagedEnd)}
}

// A valueReader reads a value and checks it. Whoever reads from the beginning to the end
// gets the last of it only if all was right; whoever jumps waits until all was read once.
type valueReader struct {
	store *valueStore
	file  *os.File
	large leasehold.Large
	at    int64
	sum   running // of what was read from the beginning on
	sure  int64   // how much that is
	err   error
}

// running is a digest that goes on with what is written to it.
type running interface {
	io.Writer
	Sum([]byte) []byte
	Reset()
}

func (r *valueReader) Close() error { return r.file.Close() }

// Seek never fails for a place within the value, since nothing is read yet.
func (r *valueReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.large.Size
	}
	if offset < 0 {
		return 0, errors.New("a value has nothing before its beginning")
	}
	r.at = offset
	return offset, nil
}

func (r *valueReader) Read(b []byte) (int, error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.at >= r.large.Size:
		return 0, io.EOF
	case r.at != r.sure:
		if r.err = r.check(); r.err != nil {
			return 0, r.err
		}
	}
	n, err := r.file.ReadAt(b[:min(int64(len(b)), r.large.Size-r.at)], r.at)
	if err != nil && n == 0 {
		r.err = r.store.unreadable(r.large, err)
		return 0, r.err
	}
	if r.at == r.sure {
		r.sum.Write(b[:n])
		if r.sure += int64(n); r.sure == r.large.Size {
			if r.err = r.end(); r.err != nil {
				return 0, r.err
			}
		}
	}
	r.at += int64(n)
	return n, nil
}

// end compares the digest of all that was read.
func (r *valueReader) end() error {
	if leasehold.Digest(r.sum.Sum(nil)) != r.large.SHA256 {
		return r.store.damaged(r.large, "it has another digest")
	}
	r.store.mu.Lock()
	r.store.checked[r.large.SHA256] = struct{}{}
	r.store.mu.Unlock()
	return nil
}

// check reads all of a value before a part of it is given out, unless that was done since
// the server started.
func (r *valueReader) check() error {
	r.store.mu.Lock()
	_, right := r.store.checked[r.large.SHA256]
	r.store.mu.Unlock()
	if right {
		return nil
	}
	buffer := valueBuffers.Get().(*[]byte)
	defer valueBuffers.Put(buffer)
	r.sum.Reset()
	r.sure = 0
	if _, err := io.CopyBuffer(struct{ io.Writer }{r.sum}, struct{ io.Reader }{io.NewSectionReader(r.file, 0, r.large.Size)}, *buffer); err != nil {
		return r.store.unreadable(r.large, err)
	}
	r.sure = -1 // nothing is read on from here
	return r.end()
}

func (s *valueStore) unreadable(large leasehold.Large, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return s.damaged(large, "it is cut off")
	}
	s.log.Error("a large value can not be read", "value", large.SHA256.String(), "err", err)
	return engine.Unavailable("the server can not read this value: its disk fails")
}

// verify reads a value to its end, to see whether it is right.
func (s *valueStore) verify(large leasehold.Large) error {
	r, err := s.open(large)
	if err != nil {
		return err
	}
	defer r.Close()
	buffer := valueBuffers.Get().(*[]byte)
	defer valueBuffers.Put(buffer)
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, *buffer)
	return err
}

// scan finds what is there, to be swept if nothing names it.
func (s *valueStore) scan() {
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
		s.log.Warn("large values can not be listed", "err", err)
	}
}

// due are values that nobody has put or freed for a while.
func (s *valueStore) due() (list []leasehold.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned > 0 {
		return nil
	}
	for d, since := range s.idle {
		if s.now()-since >= valueIdle && s.deleting[d] == nil {
			if list = append(list, d); len(list) == maxSwept {
				break
			}
		}
	}
	return list
}

// sweep deletes what is due and not named.
func (s *valueStore) sweep(named func([]leasehold.Digest) ([]bool, error)) {
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
func (s *valueStore) drop(d leasehold.Digest, named bool) {
	s.mu.Lock()
	since, idle := s.idle[d]
	if !idle || s.pinned > 0 || s.now()-since < valueIdle {
		s.mu.Unlock()
		return
	}
	delete(s.idle, d)
	delete(s.spread, d)
	if named {
		s.mu.Unlock()
		return
	}
	gone := make(chan struct{})
	s.deleting[d] = gone
	delete(s.checked, d)
	s.mu.Unlock()

	if err := os.Remove(s.file(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("a large value that nothing names could not be deleted", "err", err)
	}
	s.mu.Lock()
	delete(s.deleting, d)
	s.mu.Unlock()
	close(gone)
}

// sizes returns how many values there are, and their bytes, named or not.
func (s *valueStore) sizes() (n int, bytes int64) {
	_ = filepath.WalkDir(s.dir, func(path string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() || strings.HasSuffix(path, ".tmp") {
			return nil
		}
		if info, err := f.Info(); err == nil {
			n, bytes = n+1, bytes+info.Size()
		}
		return nil
	})
	return n, bytes
}
