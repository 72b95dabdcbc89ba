package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

var _ engine.Values = (*Engine)(nil)

// A value is the bytes of a large value, and when it was last put or named.
type value struct {
	bytes []byte
	seen  time.Duration
}

// PutValue keeps the bytes of r.
func (e *Engine) PutValue(ctx context.Context, r io.Reader) (leasehold.Large, error) {
	b, err := io.ReadAll(io.LimitReader(r, leasehold.MaxLarge+1))
	switch {
	case err != nil:
		return leasehold.Large{}, engine.CutOff(err)
	case len(b) > leasehold.MaxLarge:
		return leasehold.Large{}, engine.TooLarge()
	}
	large := leasehold.Large{SHA256: sha256.Sum256(b), Size: int64(len(b))}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return leasehold.Large{}, stopping()
	}
	e.forgetValues()
	e.values[large.SHA256] = value{b, e.clock.Monotonic()}
	return large, nil
}

// LetValue deletes what is not needed and has no name.
func (e *Engine) LetValue(ctx context.Context, large leasehold.Large, unneeded bool) (gone bool) {
	named := false
	if !unneeded || e.Read(ctx, func(v core.View) { named = v.NamesLarge(large.SHA256) }) != nil {
		return false
	}
	if !named {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.values, large.SHA256)
	}
	return true
}

// OpenValue reads a value.
func (e *Engine) OpenValue(ctx context.Context, large leasehold.Large) (io.ReadSeekCloser, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, stopping()
	}
	v, ok := e.values[large.SHA256]
	if !ok {
		return nil, engine.NoValue(large)
	}
	return reader{bytes.NewReader(v.bytes)}, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

// nameable refuses a command that names a value which is not there, and keeps the ones that it
// names.
func (e *Engine) nameable(command core.Command) error {
	for _, large := range core.LargeOf(command) {
		v, ok := e.values[large.SHA256]
		if !ok || int64(len(v.bytes)) != large.Size {
			return engine.Unnameable(large)
		}
		e.see(large)
	}
	return nil
}

// see notes that somebody named a value just now.
func (e *Engine) see(large leasehold.Large) {
	if v, ok := e.values[large.SHA256]; ok {
		e.values[large.SHA256] = value{v.bytes, e.clock.Monotonic()}
	}
}

// forgetValues drops what nothing has named for a while. It runs when a value is put, so that
// no goroutine is needed.
func (e *Engine) forgetValues() {
	for digest, v := range e.values {
		if e.clock.Monotonic()-v.seen > engine.ValueIdle && !e.state.NamesLarge(digest) {
			delete(e.values, digest)
		}
	}
}
