package run

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/client"
)

// A holdSet is all holds of a job. It lasts only as long as the hold that ends first.
type holdSet struct {
	holds []*client.Hold
	done  <-chan struct{}
	let   func()
}

// newHoldSet returns a set that ends with the first hold that does: the command needs all of them.
func newHoldSet(holds []*client.Hold) *holdSet {
	ctx, cancel := context.WithCancel(context.Background())
	for _, h := range holds {
		context.AfterFunc(h.Context(), cancel)
	}
	return &holdSet{holds, ctx.Done(), cancel}
}

func (g *holdSet) Lost() <-chan struct{} { return g.done }

// Remaining returns that of the hold that ends first.
func (g *holdSet) Remaining() time.Duration {
	left := g.holds[0].Remaining()
	for _, h := range g.holds[1:] {
		left = min(left, h.Remaining())
	}
	return left
}

// err returns how a hold was lost; nil if none was.
func (g *holdSet) err() error {
	for _, h := range g.holds {
		if err := h.Err(); err != nil {
			return err
		}
	}
	return nil
}

// An errorLog is a log handler that keeps the last record. The client retries by itself and only
// logs what went wrong, so that is where the reason of a lost lease is found.
type errorLog struct{ last atomic.Pointer[slog.Record] }

func (t *errorLog) Enabled(context.Context, slog.Level) bool { return true }
func (t *errorLog) WithAttrs([]slog.Attr) slog.Handler       { return t }
func (t *errorLog) WithGroup(string) slog.Handler            { return t }

func (t *errorLog) Handle(_ context.Context, r slog.Record) error {
	t.last.Store(&r)
	return nil
}

// since returns the last error, if it is not older than a moment: an old one does not explain the
// end.
func (t *errorLog) since(moment time.Time) (text string) {
	r := t.last.Load()
	if r == nil || r.Time.Before(moment) {
		return ""
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			text = a.Value.String()
		}
		return true
	})
	return text
}
