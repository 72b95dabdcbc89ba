package access

import (
	"context"
	"io"

	"github.com/leasehold/leasehold"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// values are large values. Their names come from records, which a door has read as the asker: no request names one by
// its digest alone.
type values struct {
	guard *Guard
	in    engine.Values
}

// Values keeps large values; nil: the engine keeps none.
func (g *Guard) Values() engine.Values {
	if in, ok := g.engine.(engine.Values); ok {
		return values{g, in}
	}
	return nil
}

// LetValue: whoever put it. The guard does that itself when the request is over.
func (v values) LetValue(ctx context.Context, large leasehold.Large, unneeded bool) bool {
	return v.in.LetValue(ctx, large, unneeded)
}

// PutValue: those who may write a record somewhere, as much as their quota allows to be without a name.
func (v values) PutValue(ctx context.Context, r io.Reader) (leasehold.Large, error) {
	permit, err := v.guard.Permit(ctx)
	switch {
	case err != nil:
		return leasehold.Large{}, err
	case !permit.MayAnywhere(policy.RecordWrite):
		return leasehold.Large{}, deny(permit, policy.RecordWrite, leasehold.DefaultNamespace, "")
	}
	return v.guard.unnamed.put(ctx, v.in, v.guard.mostUnnamed(ctx), r)
}

// OpenValue: those who may read a record somewhere, for as long as they may.
func (v values) OpenValue(ctx context.Context, large leasehold.Large) (io.ReadSeekCloser, error) {
	if err := v.mayRead(ctx); err != nil {
		return nil, err
	}
	r, err := v.in.OpenValue(ctx, large)
	if err != nil || v.guard.feed.Policy() == nil {
		return r, err
	}
	following, stop := context.WithCancel(ctx)
	v.guard.follow(following)
	return &checked{r, func() error { return v.mayRead(ctx) }, stop}, nil
}

func (v values) mayRead(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	permit, err := v.guard.fresh(ctx)
	switch {
	case err != nil:
		return err
	case !permit.MayAnywhere(policy.RecordRead):
		return deny(permit, policy.RecordRead, leasehold.DefaultNamespace, "")
	}
	return nil
}

// checked asks before each read whether its reader still may: a large value takes long on a slow line.
type checked struct {
	io.ReadSeekCloser
	may  func() error
	stop context.CancelFunc // it counts as a watch until then
}

func (c *checked) Close() error {
	c.stop()
	return c.ReadSeekCloser.Close()
}

func (c *checked) Read(p []byte) (int, error) {
	if err := c.may(); err != nil {
		return 0, err
	}
	return c.ReadSeekCloser.Read(p)
}
