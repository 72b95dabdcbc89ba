package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

var _ engine.Cluster = (*Engine)(nil)

// maxBackups is how many backups are written at a time: each keeps the state of its
// moment in memory, however slowly it is read.
const maxBackups = 2

// Backup writes the whole state, as it is at one place in the log, with everything that
// anybody was answered before. The server goes on meanwhile, however slow w is: what is
// written is frozen.
func (e *Engine) Backup(ctx context.Context, w io.Writer) error {
	defer e.backups.Add(-1)
	if e.backups.Add(1) > maxBackups {
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
			"%d backups of this server are already being taken: try again when one is done", maxBackups)}
	}
	// Before the state is captured: what it names must stay until it is written.
	defer e.values.Pin()()
	s, taken, err := e.capture(ctx)
	if err != nil {
		return err
	}
	return storage.WriteBackup(&interruptible{w, ctx, e.stopped}, s, taken,
		func(large leasehold.Large) (io.ReadCloser, error) {
			return e.OpenValue(ctx, large)
		})
}

// capture freezes a state that has everything that was answered before.
func (e *Engine) capture(ctx context.Context) (s replica.Snapshot, taken time.Time, err error) {
	if err = e.Read(ctx, func(core.View) {}); err != nil {
		return s, taken, err
	}
	var failed error
	err = e.inspect(ctx, func(n *replica.Node) { s, failed = n.Capture() })
	return s, e.clock.Wall(), errors.Join(err, failed)
}

// interruptible stops writing when the caller is gone or the server stops.
type interruptible struct {
	w       io.Writer
	ctx     context.Context
	stopped <-chan struct{}
}

func (i *interruptible) Write(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if isClosed(i.stopped) {
		return 0, engine.Unavailable("the server is stopping: try another one, or this one in a moment")
	}
	return i.w.Write(b)
}
