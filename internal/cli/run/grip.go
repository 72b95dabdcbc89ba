package run

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/client"
)

// A grip is all holds of a job: it lasts as long as the first of them that ends.
type grip struct {
	holds []*client.Hold
	done  <-chan struct{}
	let   func()
}

// gripOn ends with the first hold that does: the command needs all of them.
func gripOn(holds []*client.Hold) *grip {
	ctx, cancel := context.WithCancel(context.Background())
	for _, h := range holds {
		context.AfterFunc(h.Context(), cancel)
	}
	return &grip{holds, ctx.Done(), cancel}
}

func (g *grip) Lost() <-chan struct{} { return g.done }

// Remaining is that of the hold that ends first.
func (g *grip) Remaining() time.Duration {
	left := g.holds[0].Remaining()
	for _, h := range g.holds[1:] {
		left = min(left, h.Remaining())
	}
	return left
}

// err is how the first hold was lost that was, nil if none is.
func (g *grip) err() error {
	for _, h := range g.holds {
		if err := h.Err(); err != nil {
			return err
		}
	}
	return nil
}

// trouble is a log that remembers what went wrong last.
type trouble struct{ last atomic.Pointer[slog.Record] }

func (t *trouble) Enabled(context.Context, slog.Level) bool { return true }
func (t *trouble) WithAttrs([]slog.Attr) slog.Handler       { return t }
func (t *trouble) WithGroup(string) slog.Handler            { return t }

func (t *trouble) Handle(_ context.Context, r slog.Record) error {
	t.last.Store(&r)
	return nil
}

// since is the error of the last trouble, if that is no older.
func (t *trouble) since(moment time.Time) (text string) {
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
