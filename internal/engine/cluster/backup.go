package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
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
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf("%d backups of this server are being taken already: try again when one is done", maxBackups)}
	}
	// What the state names at that moment stays until it is written, whatever happens to it.
	defer e.values.pin()()
	s, taken, err := e.capture(ctx)
	if err != nil {
		return err
	}
	return writeBackup(&interruptible{w, ctx, e.stopped}, s, taken, func(large leasehold.Large) (io.ReadCloser, error) {
		return e.OpenValue(ctx, large)
	})
}

// capture freezes a state that has everything that was answered before.
func (e *Engine) capture(ctx context.Context) (s Snapshot, taken time.Time, err error) {
	var failed error
	err = e.Read(ctx, func(core.View) { s, failed = e.node.capture() })
	if err == nil {
		err = failed
	}
	return s, e.node.Clock.Wall(), err
}

// capture freezes the state with its place in the log.
func (n *Node) capture() (Snapshot, error) {
	term, err := n.Storage.Term(n.applied)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Index: n.applied, Term: term, Members: n.members, Roster: n.roster, State: n.State.Freeze()}, nil
}

// interruptible stops writing when nobody wants it any more.
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
