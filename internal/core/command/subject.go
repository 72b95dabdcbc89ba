package command

import (
	"fmt"
	"hash/fnv"

	"github.com/leasehold/leasehold/internal/core/tagged"
)

// Subject identifies what a request is about: a key that is sent again with another request is
// refused, instead of being answered as if it were the first. It covers everything that changes
// what is done.
func Subject(c Command) string {
	w := tagged.Codec{Writing: true, Essence: true}
	Describe(c, w.Message())
	hash := fnv.New64a()
	_, _ = hash.Write(w.B)
	return fmt.Sprintf("%s#%016x", c.subject(), hash.Sum64())
}

// hashed is how many bytes a hash takes at the end of a subject, behind its "#".
const hashed = 16

// ReadableSubject returns a subject as people read it, without its hash.
func ReadableSubject(subject string) string {
	if end := len(subject) - hashed - 1; end >= 0 && subject[end] == '#' {
		return subject[:end]
	}
	return subject
}
