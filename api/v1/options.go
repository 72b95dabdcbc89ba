package v1

import (
	"net/http"
	"strconv"
)

// An Option is something that few requests need.
type Option func(http.Header)

// WithKey names a request, so that sending it again does it once.
func WithKey(key string) Option {
	return func(h http.Header) { h.Set(KeyHeader, key) }
}

// WithSequence numbers a request within a session, so that sending it again does
// it once. Numbers count up from 1.
func WithSequence(session string, number uint64) Option {
	return func(h http.Header) {
		h.Set(SessionHeader, session)
		h.Set(KeyHeader, strconv.FormatUint(number, 10))
	}
}
