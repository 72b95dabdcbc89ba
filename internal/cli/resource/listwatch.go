package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/follow"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// watchList prints the list again each time it changes: on a terminal in place of the one before,
// in a pipe below it.
func watchList(ctx context.Context, a *cli.App, c *cli.Conn, query v1.ResourceQuery) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &listWatch{app: a, conn: c, query: query, live: a.Terminal(a.Stdout) &&
		a.Output != cli.FormatJSON && a.Output != cli.FormatName}
	f := follow.New(a, c, query)
	var tick <-chan time.Time
	if w.live {
		f.Every = follow.RenewalsEvery
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	follow := f.Start(ctx)
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
	app     *cli.App
	conn    *cli.Conn
	query   v1.ResourceQuery
	live    bool
	seen    *follow.Snapshot
	Setting []byte // what the last one looked like, without what only time changes
	away    error
}

func (w *listWatch) take(n follow.Update) error {
	switch {
	case n.Lost != nil && (w.seen == nil || follow.Permanent(n.Lost)):
		return n.Lost
	case n.Lost != nil && w.away == nil:
		w.away = n.Lost
		w.app.Say("%v\ntrying again until it answers; ctrl-C ends it", n.Lost)
	case n.Snapshot != nil:
		return w.see(n.Snapshot)
	}
	return nil
}

func (w *listWatch) see(s *follow.Snapshot) error {
	if w.away != nil {
		w.app.Say("connected again")
		w.away = nil
	}
	w.seen = s
	if w.live {
		return w.redraw()
	}
	look, err := withoutTime(s.Resources)
	if err != nil || bytes.Equal(look, w.Setting) {
		return err
	}
	again := w.Setting != nil
	w.Setting = look
	return w.print(again)
}

// withoutTime returns a list without what time alone changes. Otherwise every renewal would print
// the whole list again.
func withoutTime(resources []v1.Resource) ([]byte, error) {
	still := make([]v1.Resource, len(resources))
	for i, r := range resources {
		r.Holders = append([]v1.Lease{}, r.Holders...)
		for n := range r.Holders {
			// A renewal moves the end and is no news.
			r.Holders[n].RemainingMS, r.Holders[n].Expires = nil, nil
		}
		still[i] = r
	}
	return json.Marshal(still)
}

func (w *listWatch) print(again bool) error {
	a := w.app
	if a.Output == cli.FormatJSON {
		return a.PrintCompact(w.seen.Resources)
	}
	if again {
		if _, err := fmt.Fprintln(a.Stdout); err != nil {
			return cli.Written(err)
		}
	}
	switch {
	case a.Output == cli.FormatName:
		return printNames(a, w.seen.Resources)
	case len(w.seen.Resources) == 0:
		sayNothingThere(a, w.conn, w.query)
		return nil
	}
	return printResources(a, w.seen.Resources)
}

// The sequences that put the cursor into the corner and clear what is below it.
const home, clearBelow = "\x1b[H", "\x1b[J"

// redraw writes over what the screen shows, as much as fits.
func (w *listWatch) redraw() error {
	if w.seen == nil || w.away != nil {
		return nil // what is on the screen is the last that was known
	}
	a := w.app
	lines := []string{fmt.Sprintf("%s in namespace %s, %s; ctrl-C ends it",
		cli.Plural(len(w.seen.Resources), "resource", "resources"), w.conn.Client.Namespace, a.Clock(a.Now()))}
	if len(w.seen.Resources) > 0 {
		table, err := tableOf(a, cli.Aged(w.seen.Resources, a.Now().Sub(w.seen.Asked)))
		if err != nil {
			return err
		}
		lines = append(lines, table...)
	}
	if most := a.Height() - 1; most > 1 && len(lines) > most {
		more := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("and %s: leasehold top scrolls",
			cli.Plural(more, "more line", "more lines")))
	}
	_, err := fmt.Fprint(a.Stdout, home+clearBelow+strings.Join(lines, "\n")+"\n")
	return cli.Written(err)
}

// tableOf returns the table as lines.
func tableOf(a *cli.App, resources []v1.Resource) ([]string, error) {
	var b bytes.Buffer
	copied := *a
	painter := &copied
	painter.Stdout = &b
	painter.Terminal = func(stream any) bool { return stream == any(&b) || a.Terminal(stream) }
	if err := printResources(painter, resources); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n"), nil
}
