package kubernetes

import (
	"crypto/rand"
	"fmt"
)

// newUID returns an id as Kubernetes has them: a random UUID.
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// suffixLetters are those of generated names: without vowels, which could make words.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// generateName returns a name that begins with a base.
func generateName(base string) string {
	const most, length = 63, 5
	if len(base) > most-length {
		base = base[:most-length]
	}
	var b [length]byte
	_, _ = rand.Read(b[:])
	for i := range b {
		b[i] = suffixLetters[int(b[i])%len(suffixLetters)]
	}
	return base + string(b[:])
}
