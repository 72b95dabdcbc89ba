// Package id makes ids that nobody has to propose.
package id

import (
	"crypto/rand"
	"time"
)

// alphabet keeps the order of numbers in text.
const alphabet = "234567abcdefghijklmnopqrstuvwxyz"

const (
	length = 26
	timed  = 9 // characters: 45 bits of milliseconds last a thousand years
)

// New returns an id of 26 lower-case letters and digits: 9 for the time in milliseconds, then 85 bits of
// chance. Ids made one after the other sort together, so what an index touches for them is in the
// processor's cache. Nothing relies on the time being right.
func New() string { return at(time.Now()) }

func at(now time.Time) string {
	var b [length]byte
	_, _ = rand.Read(b[timed:]) // it never fails
	for i := timed; i < length; i++ {
		b[i] = alphabet[b[i]%32]
	}
	for i, ms := timed-1, uint64(now.UnixMilli()); i >= 0; i-- {
		b[i] = alphabet[ms%32]
		ms /= 32
	}
	return string(b[:])
}
