package storage

import (
	"errors"
	"io"
	"os"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine"
)

// A valueReader reads a value and checks it against its digest. A caller that reads from
// beginning to end gets the last bytes only if everything was right, so it can tell a damaged
// value from a whole one; a caller that seeks waits until all of it has been read once.
type valueReader struct {
	store *Values
	file  *os.File
	large leasehold.Large
	at    int64
	sum   running // of what was read from the beginning on
	sure  int64   // how much that is
	err   error
}

// running is a digest that continues with what is written to it.
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

// check reads all of a value before a part of it is given out, unless that has been done since
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
	if _, err := io.CopyBuffer(struct{ io.Writer }{r.sum},
		struct{ io.Reader }{io.NewSectionReader(r.file, 0, r.large.Size)}, *buffer); err != nil {
		return r.store.unreadable(r.large, err)
	}
	r.sure = -1 // nothing is read on from here
	return r.end()
}

// unreadable is the error of a value that the disk does not give out. A file that is cut off is
// damaged, and set aside; any other error may pass.
func (s *Values) unreadable(large leasehold.Large, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return s.damaged(large, "it is cut off")
	}
	s.log.Error("a large value cannot be read", "value", large.SHA256.String(), "err", err)
	return engine.Unavailable("the server cannot read this value: its disk fails")
}
