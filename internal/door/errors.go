package door

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/leasehold/leasehold"
)

// ErrCut is the error of an answer that cannot be finished, although its beginning is sent. The
// door then panics with http.ErrAbortHandler, so that nobody takes the part for the whole.
var ErrCut = errors.New("the answer could not be finished")

// Invalid returns the error of a request that is wrong in itself.
func Invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// Invalidly returns the error of a request that is wrong in a way for which HTTP has a status.
func Invalidly(status int, format string, args ...any) error {
	return &Fault{Err: Invalid(format, args...), Status: status}
}

// Coded returns the error as one with a code. What nobody foresaw is Undecided: the log has it,
// and the caller can only ask again.
func Coded(err error) *leasehold.Error {
	var e *leasehold.Error
	if errors.As(err, &e) && e.Code != 0 && int(e.Code) <= len(leasehold.Codes) {
		return e
	}
	return &leasehold.Error{Code: leasehold.Undecided, Message: "the server cannot tell whether this happened: " +
		"ask again with the same id"}
}

// StatusOf returns the status that HTTP has for an error, if it has one of its own.
func StatusOf(err error, otherwise int) int {
	var f *Fault
	if errors.As(err, &f) {
		return f.Status
	}
	return otherwise
}

// First returns the first error that is one.
func First(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Brief keeps what a caller sent short enough, and clean enough, to repeat it in an error.
func Brief(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// SetDefault gives a setting its default if nobody set it.
func SetDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}
