package consul

import (
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// grown says how many bytes an answer has by now, of keys and values. It waits until there is room for so many, or
// returns an error if there is not.
func (c *call) grown(what string, size int) error {
	err := c.answer.Grow(c.ctx, c.door.backend, size, what, "ask for less, or for ?keys")
	if size > door.MaxAnswer {
		return failed(leasehold.Limited, "%v", err) // which is not 429: to ask again is no use
	}
	return err
}

func listOf(prefix string) string { return "of the keys below " + strconv.Quote(prefix) }
