package consul

import (
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// What an answer may have, in bytes of keys and values.
const (
	maxAnswer = 64 << 20

	// smallAnswer is what an answer has that is not counted.
	smallAnswer = 64 << 10

	// maxLarge is how many answers may be larger than that at a time, from when they are read until they are sent:
	// what a slow reader has not taken yet is in memory too.
	maxLarge = 64

	// turnTime is how long one of them waits for its turn. Many read the same change at once, and clients take an error
	// for the loss of their lock.
	turnTime = 10 * time.Second
)

// grown says how many bytes an answer has by now. It waits until there is room for so many, or returns an error if
// there is not.
func (c *call) grown(what string, size int) error {
	switch {
	case size > maxAnswer:
		return failed(leasehold.Limited, "the answer, %s, has more than %d bytes: ask for less, or for ?keys", what,
			maxAnswer)
	case size <= smallAnswer || c.left != nil:
		return nil
	}
	for until := time.Now().Add(turnTime); ; {
		left, err := c.door.answers.Enter()
		if err == nil {
			c.left = left
			return nil
		}
		if time.Now().After(until) || !c.door.backend.Pause(c.ctx, door.Pause) {
			return err
		}
	}
}

// leave says that the request is answered.
func (c *call) leave() {
	if c.left != nil {
		c.left()
	}
}

func listOf(prefix string) string { return "of the keys below " + strconv.Quote(prefix) }
