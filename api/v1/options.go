package v1

import (
	"net/http"
	"strconv"
)

// An Option adds something to a request.
type Option func(http.Header)

// WithKey makes a request idempotent: the server answers repetitions with the first answer.
func WithKey(key string) Option {
	return func(h http.Header) { h.Set(KeyHeader, key) }
}

// WithSequence makes a request idempotent by its number within a session. Numbers count up from
// 1.
func WithSequence(session string, number uint64) Option {
	return func(h http.Header) {
		h.Set(SessionHeader, session)
		h.Set(KeyHeader, strconv.FormatUint(number, 10))
	}
}
