//go:build linux

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/bench/report"
	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/bench/system"
)

// A Workload is one thing to do and to measure.
type Workload struct {
	Name    string
	Title   func(Size) string
	Nodes   []int           // how many each server has
	Fresh   bool            // each measurement has a server of its own, and there is one round
	Systems []string        // that are measured unless others are asked for
	Columns []report.Column // of its table; nil: those of growth
	run     func(context.Context, *Trial) (report.Metrics, error)
}

// A Trial is one measurement of one system.
type Trial struct {
	System system.System
	Server *system.Server
	Size   Size
	Say    func(format string, args ...any) // tells how it goes

	clients []system.Client
	note    string
}

// A Size says how large the workloads are.
type Size struct {
	Time     time.Duration // of a measurement
	WarmUp   time.Duration // before it
	Clients  int           // most of the workloads have this many
	Many     int           // cycle-512
	Group    int           // leases of a session in renew-session
	Takers   int           // in a hand-over
	Dead     int           // leases of the holder that is killed
	TTL      time.Duration // of these
	Storm    int           // leases that end at once
	Patience time.Duration // how long something that takes too long is waited for
	Growth   []int         // numbers of leases
	Waiters  int
	Watchers int
	Events   int // a second
	Beats    int // a second, of nodes
	Sessions int
	Keepers  int // clients that keep them
	KeepTTL  time.Duration
	KeepFor  time.Duration
}

// Full is what is asked of the systems; Quick only tries whether the benchmark works.
var (
	Full = Size{
		Time: time.Second, WarmUp: 300 * time.Millisecond, Clients: 64, Many: 512, Group: 1000, Takers: 8,
		Dead: 50, TTL: 4 * time.Second, Storm: 100000, Patience: 15 * time.Second,
		Growth: []int{1000, 10000, 100000, 1000000}, Waiters: 10000, Watchers: 1000, Events: 50, Beats: 1500,
		Sessions: 90000, Keepers: 300, KeepTTL: 12 * time.Second, KeepFor: 15 * time.Second,
	}
	Quick = Size{
		Time: 200 * time.Millisecond, WarmUp: 50 * time.Millisecond, Clients: 8, Many: 16, Group: 20, Takers: 3,
		Dead: 3, TTL: time.Second, Storm: 200, Patience: 3 * time.Second,
		Growth: []int{100, 1000}, Waiters: 20, Watchers: 5, Events: 50, Beats: 100,
		Sessions: 50, Keepers: 5, KeepTTL: time.Second, KeepFor: time.Second,
	}
)

// ttl is that of leases which last for the whole of a measurement.
const ttl = time.Minute

// Named returns the workloads with these names, in their own order. The first part of a name, as in
// "cycle", stands for all that begin with it.
func Named(names []string) (found []Workload, err error) {
	matches := func(w Workload, name string) bool { return w.Name == name || strings.HasPrefix(w.Name, name+"-") }
	for _, name := range names {
		if !slices.ContainsFunc(All, func(w Workload) bool { return matches(w, name) }) {
			return nil, fmt.Errorf("there is no workload %q: choose from %s", name, strings.Join(Names(), ", "))
		}
	}
	for _, w := range All {
		if slices.ContainsFunc(names, func(name string) bool { return matches(w, name) }) {
			found = append(found, w)
		}
	}
	return found, nil
}

// Names returns the names of all workloads.
func Names() (names []string) {
	for _, w := range All {
		names = append(names, w.Name)
	}
	return names
}

// Figures returns the columns of its table.
func (w Workload) Figures(s Size) []report.Column {
	if w.Columns == nil {
		return growthColumns(s)
	}
	return w.Columns
}

// ErrCannot is the error if a system has nothing of the kind.
var ErrCannot = errors.New("it has nothing of the kind")

// Run measures once. The note is for the reader of the figures.
func (w Workload) Run(ctx context.Context, t *Trial) (m report.Metrics, note string, err error) {
	defer t.closeClients()
	m, err = w.run(ctx, t)
	if errors.Is(err, errors.ErrUnsupported) {
		err = ErrCannot
	}
	return m, t.note, err
}

// dial connects a number of clients, several at a time.
func (t *Trial) dial(ctx context.Context, n int, d system.Dialing) ([]system.Client, error) {
	clients := make([]system.Client, n)
	err := atOnce(n, 16, func(i int) (err error) {
		d := d
		d.Index = i
		clients[i], err = t.System.Dial(ctx, t.Server, d)
		return err
	})
	for _, c := range clients {
		if c != nil {
			t.clients = append(t.clients, c)
		}
	}
	return clients, err
}

// closeClients closes what dial opened.
func (t *Trial) closeClients() {
	_ = atOnce(len(t.clients), 64, func(i int) error {
		t.clients[i].Close()
		return nil
	})
	t.clients = nil
}

// as returns a client that can do something that not all can.
func as[T any](c system.Client) (T, error) {
	able, ok := c.(T)
	if !ok {
		return able, ErrCannot
	}
	return able, nil
}

// resident returns the memory of the server in MB.
func (t *Trial) resident() float64 { return float64(stage.Resident(t.Server.Pids())) / 1e6 }
