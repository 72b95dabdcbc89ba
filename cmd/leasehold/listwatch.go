package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// listWatch shows the list again each time that it changes: on a terminal in place
// of the one before, elsewhere below it.
func (a *app) listWatch(ctx context.Context, c *conn, prefix string, all bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &listWatch{app: a, conn: c, prefix: prefix, all: all, live: a.terminal(a.stdout) && a.output != formatJSON && a.output != formatName}
	f := a.newFollower(c, prefix, all)
	var tick <-chan time.Time
	if w.live {
		f.every = renewalsEvery
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	follow := f.start(ctx)
	defer func() {
		cancel(nil)
		for range follow { // until it has stopped
		}
	}()
	for {
		var err error
		select {
		case n, more := <-follow:
			if !more {
				return context.Cause(ctx)
			}
			err = w.take(n)
		case <-tick:
			err = w.redraw()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

type listWatch struct {
	app    *app
	conn   *conn
	prefix string
	all    bool
	live   bool
	seen   *sight
	shown  []byte // what the last one looked like, without what only time changes
	away   error
}

func (w *listWatch) take(n news) error {
	switch {
	case n.lost != nil && (w.seen == nil || hopeless(n.lost)):
		return n.lost
	case n.lost != nil && w.away == nil:
		w.away = n.lost
		w.app.say("%v\ntrying again until it answers; ctrl-C ends it", n.lost)
	case n.sight != nil:
		return w.see(n.sight)
	}
	return nil
}

func (w *listWatch) see(s *sight) error {
	if w.away != nil {
		w.app.say("connected again")
		w.away = nil
	}
	w.seen = s
	if w.live {
		return w.redraw()
	}
	look, err := withoutTime(s.resources)
	if err != nil || bytes.Equal(look, w.shown) {
		return err
	}
	again := w.shown != nil
	w.shown = look
	return w.print(again)
}

// withoutTime is what a list looks like apart from what time alone changes.
func withoutTime(resources []v1.Resource) ([]byte, error) {
	still := make([]v1.Resource, len(resources))
	for i, r := range resources {
		r.Holders = append([]v1.Lease{}, r.Holders...)
		for n := range r.Holders {
			// A renewal moves the end; that there is one, and how it came to be, is no renewal.
			r.Holders[n].RemainingMS, r.Holders[n].Expires = nil, nil
		}
		still[i] = r
	}
	return json.Marshal(still)
}

func (w *listWatch) print(again bool) error {
	a := w.app
	if a.output == formatJSON {
		return a.printCompact(w.seen.resources)
	}
	if again {
		if _, err := fmt.Fprintln(a.stdout); err != nil {
			return written(err)
		}
	}
	switch {
	case a.output == formatName:
		return a.printNames(w.seen.resources)
	case len(w.seen.resources) == 0:
		a.sayNothingThere(w.conn, w.prefix, w.all)
		return nil
	}
	return a.printResources(w.seen.resources)
}

// The sequences that put the cursor into the corner and clear what is below it.
const home, clearBelow = "\x1b[H", "\x1b[J"

// redraw writes over what the screen shows, as much as fits.
func (w *listWatch) redraw() error {
	if w.seen == nil || w.away != nil {
		return nil // what is on the screen is the last that was known
	}
	a := w.app
	lines := []string{fmt.Sprintf("%s in namespace %s, %s; ctrl-C ends it", plural(len(w.seen.resources), "resource", "resources"), w.conn.client.Namespace, a.clock(a.now()))}
	if len(w.seen.resources) > 0 {
		table, err := a.tableOf(aged(w.seen.resources, a.now().Sub(w.seen.asked)))
		if err != nil {
			return err
		}
		lines = append(lines, table...)
	}
	if most := a.height() - 1; most > 1 && len(lines) > most {
		more := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("and %s: leasehold top scrolls", plural(more, "more line", "more lines")))
	}
	_, err := fmt.Fprint(a.stdout, home+clearBelow+strings.Join(lines, "\n")+"\n")
	return written(err)
}

// tableOf is the table as lines.
func (a *app) tableOf(resources []v1.Resource) ([]string, error) {
	var b bytes.Buffer
	copied := *a
	painter := &copied
	painter.stdout = &b
	painter.terminal = func(stream any) bool { return stream == any(&b) || a.terminal(stream) }
	if err := painter.printResources(resources); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n"), nil
}
