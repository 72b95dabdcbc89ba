package cluster

import (
	"context"
	"io"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

var _ engine.Values = (*Engine)(nil)

// PutValue keeps the bytes of r in a file here, and on enough other servers to make a majority.
func (e *Engine) PutValue(ctx context.Context, r io.Reader) (leasehold.Large, error) {
	if isClosed(e.stopped) {
		return leasehold.Large{}, errStopping
	}
	large, err := e.values.Put(ctx, r)
	if err != nil {
		return leasehold.Large{}, err
	}
	if err := e.spread(ctx, large); err != nil {
		e.values.Let(large.SHA256)
		return leasehold.Large{}, err
	}
	return large, nil
}

// LetValue deletes what is not needed, where this server is alone: with others, a majority may count on it.
func (e *Engine) LetValue(ctx context.Context, large leasehold.Large, unneeded bool) (gone bool) {
	e.values.Let(large.SHA256)
	if !unneeded || len(e.network.current().Voters()) > 1 {
		return false
	}
	named, err := e.names(ctx, large)
	return err == nil && (named || e.values.Drop(large.SHA256))
}

// OpenValue reads the bytes of a value. A value that should be here and is not is fetched from
// another server first. NotFound is for what nothing names: what is named and cannot be had now
// exists all the same, and the error must not say otherwise.
func (e *Engine) OpenValue(ctx context.Context, large leasehold.Large) (io.ReadSeekCloser, error) {
	r, err := e.values.Open(large)
	if err == nil {
		return r, nil
	}
	named, failure := e.names(ctx, large)
	switch {
	case failure != nil:
		return nil, failure
	case !named:
		return nil, err
	case e.fetch(ctx, large) != nil:
		return nil, engine.Unavailable(
			"the value is missing or damaged on this server, and no other could send it: try again, or another server")
	}
	if r, err = e.values.Open(large); err != nil {
		return nil, err
	}
	return r, nil
}

// names reports whether anything names a value.
func (e *Engine) names(ctx context.Context, large leasehold.Large) (is bool, err error) {
	err = e.Read(ctx, func(v core.View) { is = v.NamesLarge(large.SHA256) })
	return is, err
}

// nameable refuses a command that names a value which is not here. A value that is here may not
// have reached a majority, or was put so long ago that the others are about to delete it: then
// a majority gets it before it is named.
func (e *Engine) nameable(ctx context.Context, command core.Command) error {
	for _, large := range core.LargeOf(command) {
		if err := e.values.Nameable(large); err != nil {
			return err
		}
		if e.values.IsShared(large.SHA256, e.network.current()) {
			continue
		}
		if err := e.spread(ctx, large); err != nil {
			return err
		}
	}
	return nil
}

// applied sees each entry as it takes effect.
func (e *Engine) applied(a replica.Applied) {
	if a.Entry != nil && !a.Empty {
		// The journal first: those who learn of this in another way find it there.
		e.journal.Append(audit.Entry{
			Index: a.Index, Wall: a.Entry.Wall, Size: len(a.Data), Commands: a.Entry.Commands, From: a.Entry.From,
			Result: a.Result,
		})
	}
	e.values.Freed(a.Result.Freed)
	e.fetcher.want(a.Result.Named...)
	if a.Entry != nil && slices.ContainsFunc(a.Entry.Commands, storage.NeedsRoom) {
		e.disk.Applied(len(a.Data))
	}
}

// areNamed reports which values the state names, with everything that was answered before.
func (e *Engine) areNamed(ctx context.Context, list []leasehold.Digest) ([]bool, error) {
	is := make([]bool, len(list))
	err := e.Read(ctx, func(v core.View) {
		for i, d := range list {
			is[i] = v.NamesLarge(d)
		}
	})
	return is, err
}
