package cluster

import (
	"context"
	"io"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

var _ engine.Values = (*Engine)(nil)

// PutValue keeps the bytes of r in a file.
func (e *Engine) PutValue(ctx context.Context, r io.Reader) (leasehold.Large, error) {
	if isClosed(e.stopped) {
		return leasehold.Large{}, engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	}
	return e.values.put(ctx, r)
}

// OpenValue reads the bytes of a file.
func (e *Engine) OpenValue(ctx context.Context, large leasehold.Large) (io.ReadSeekCloser, error) {
	r, err := e.values.open(large)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// nameable refuses a command that names a value which is not here.
func (e *Engine) nameable(command core.Command) error {
	for _, large := range core.LargeOf(command) {
		if err := e.values.nameable(large); err != nil {
			return err
		}
	}
	return nil
}

// applied sees each entry as it takes effect.
func (e *Engine) applied(a Applied) { e.values.freed(a.Result.Freed) }

// valueLoop deletes what nothing names.
func (e *Engine) valueLoop() {
	e.values.scan()
	sweep, scan := time.NewTicker(sweepEvery), time.NewTicker(scanEvery)
	defer sweep.Stop()
	defer scan.Stop()
	for {
		select {
		case <-sweep.C:
			e.values.sweep(e.named)
		case <-scan.C:
			// A state that another server sent says nothing of what it does not name any more.
			e.values.scan()
		case <-e.stopped:
			return
		}
	}
}

// named tells which values the state names. It has everything that was answered: who names
// a value that was not swept yet has its answer, or will get it from a log that is not.
func (e *Engine) named(list []leasehold.Digest) ([]bool, error) {
	is := make([]bool, len(list))
	ctx, stop := context.WithTimeout(context.Background(), sweepEvery)
	defer stop()
	err := e.Read(ctx, func(v core.View) {
		for i, d := range list {
			is[i] = v.NamesLarge(d)
		}
	})
	return is, err
}
