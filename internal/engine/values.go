package engine

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/leasehold/leasehold"
)

// Values is an engine that keeps large values: an Engine may be one. A value is put first,
// and then named by a command. Its name is the digest of its bytes, so that to put it
// twice is to put it once.
type Values interface {
	// PutValue keeps the bytes of r, to its end, and returns their name once they cannot
	// be lost. It holds a part of them at a time. What no command has named for ValueIdle
	// may be forgotten. An error is always a *leasehold.Error, and nothing is kept then;
	// Invalid is r's own failure, or that it has more than MaxLarge bytes.
	PutValue(ctx context.Context, r io.Reader) (leasehold.Large, error)

	// LetValue says that a caller of PutValue is done with what it put. Unneeded says that no command of its names it:
	// then it is deleted at once, if nothing else does and no other server has it. Gone reports whether it takes no
	// room now that nothing answers for.
	LetValue(ctx context.Context, large leasehold.Large, unneeded bool) (gone bool)

	// OpenValue reads a value. What is read is checked: who comes to the end without an
	// error has the bytes that were put. NotFound if nothing names it.
	OpenValue(ctx context.Context, large leasehold.Large) (io.ReadSeekCloser, error)
}

// Sized is what PutValue reads if it is known how many bytes come.
type Sized interface {
	io.Reader
	Size() int64
}

// ValueIdle is how long a value is kept, at least, that no command has named yet.
const ValueIdle = 10 * time.Minute

// NoValue is the error of a read of a value that is not there.
func NoValue(large leasehold.Large) error {
	return &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf(
		"large value %v is no longer kept: nothing names it", large.SHA256)}
}

// Unnameable is the error of a command that names a value which is not there, or is not so
// long.
func Unnameable(large leasehold.Large) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
		"large value %v of %d bytes is not here: put its bytes first, and name them within %v", large.SHA256,
		large.Size, ValueIdle)}
}

// TooLarge is the error of PutValue when there is no end in sight.
func TooLarge() error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
		"value has more than %d bytes, which is the most that are allowed", leasehold.MaxLarge)}
}

// CutOff is the error of PutValue when the bytes could not be read to their end.
func CutOff(err error) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf("value cannot be read to its end: %v", err)}
}
