package load

import (
	"context"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A cycler acquires and releases its resources, one after the other. Nobody else
// wants them.
type cycler struct {
	client
	mine []int
	next int
}

func (c *cycler) prepare(context.Context) error { return nil }
func (c *cycler) clear(context.Context) int     { return 0 }

func (c *cycler) step(ctx context.Context) (sample, error) {
	resource, id := c.mine[c.next%len(c.mine)], c.newID()
	c.next++
	began := time.Now()
	_, err := c.Acquire(ctx, c.request(resource, id))
	if err == nil {
		err = c.Release(ctx, v1.ReleaseRequest{ID: id})
	}
	if err != nil {
		// No answer is no proof that nothing was granted; left alone, the lease would be in the way
		// of the next round.
		c.drop(id)
		return sample{}, err
	}
	return sample{began, time.Since(began)}, nil
}
