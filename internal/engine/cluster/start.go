package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/engine/storage"
)

// A Server is an Engine for the package that starts and stops it. It is an interface so that this package is the last
// one that has to name what leads to the state: see core.View.
type Server interface {
	engine.Engine
	Opened()
	Failed() <-chan struct{}
	Failure() error
	Close() error
}

// Open returns what Start does. Inlined it would name the Engine to who calls it.
//
//go:noinline
func Open(ctx context.Context, c Config) (Server, error) {
	e, err := Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Start recovers a data directory, or makes a new one, finds the cluster that it belongs to,
// and returns once it can be read and written there: it waits for as long as no majority of the
// servers is up. Call Close when done.
func Start(ctx context.Context, c Config) (*Engine, error) {
	c = c.withDefaults()
	dir, err := storage.OpenDirUpTo(c.known().Newest, c.Dir, true)
	if err != nil {
		return nil, err
	}
	if err := dir.Diverged(); err != nil {
		dir.Close()
		return nil, err
	}
	n, err := openNetwork(c, dir)
	if err != nil {
		dir.Close()
		return nil, err
	}
	e, err := open(ctx, c, n)
	if err != nil {
		n.close()
		dir.Close()
		return nil, err
	}
	e.start()
	n.watch(c.Metrics)
	if err := e.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	// After the cluster is ready: a change of the members needs a leader.
	n.workers.Go(e.announce)
	return e, nil
}

// open finds the cluster of a server, and recovers what the server knew of it.
func open(ctx context.Context, c Config, n *network) (*Engine, error) {
	if err := n.find(ctx, c); err != nil {
		return nil, err
	}
	found, err := storage.Recover(onDisk(c), n.dir)
	if err != nil {
		return nil, err
	}
	e := newEngine(c, n, found)
	if err = e.openFiles(c, found); err == nil {
		err = e.makeNode(c, found)
	}
	if err != nil {
		_ = errors.Join(e.journal.Close(), found.Log.Close())
		return nil, err
	}
	return e, nil
}

// awaitReady returns when a read succeeds: then there is a leader, and this server has caught
// up with what was answered before.
func (e *Engine) awaitReady(ctx context.Context) error {
	for {
		err := e.Read(ctx, e.warnOfQuarantine)
		switch {
		case err == nil:
			return nil
		case isClosed(e.failed):
			return e.failure
		case ctx.Err() != nil:
			return ctx.Err()
		case isClosed(e.stopped):
			return err
		}
		e.log.Info("waiting for a majority of the servers", "not_connected", e.network.missing(), "err", err)
	}
}

// warnOfQuarantine logs that nothing is granted yet after a restore. It needs the state as the log has
// it: that of the last snapshot may be in a quarantine that is long over.
func (e *Engine) warnOfQuarantine(v core.View) {
	if q, ok := v.Quarantine(); ok {
		e.log.Warn("this cluster was restored from a backup: nothing is granted until its quarantine ends",
			"remaining", q.Left.Round(time.Millisecond), "backup", q.Backup,
			"end_early", `leasehold cluster end-quarantine --reason "all holders were stopped"`)
	}
}

// announce tells the leader what is new about this server, such as its address or version.
func (e *Engine) announce() {
	for {
		roster, err := e.freshRoster(e.network.ctx)
		if err == nil {
			m := e.self
			if len(roster.Members) > 1 {
				m.Name = "" // the others know its certificate by it
			}
			if known, ok := roster.Member(e.id); !ok || known.Announced(m) == known {
				return
			}
			if _, err = e.change(e.network.ctx, replica.Change{Kind: replica.Announce, Member: m}); err == nil {
				return
			}
		}
		if e.network.ctx.Err() != nil {
			return
		}
		e.log.Warn("the addresses of this server could not be announced yet", "err", err)
		e.network.sleep(time.Second)
	}
}

// newEngine makes an engine without a node. The disk and the node need its channels.
func newEngine(c Config, network *network, found *storage.Recovered) *Engine {
	e := &Engine{
		id: network.dir.Node, feed: engine.NewFeed(), clock: c.Clock, log: c.Log, network: network,
		carrier: &transport{network: network},
		// Room for what the disk's goroutines send while the node is busy.
		events: make(chan replica.Event, 16), looks: make(chan func(*replica.Node), 16),
		failed: make(chan struct{}), stopped: make(chan struct{}), arrived: make(chan struct{}, 1),
		sums:    sums{hashes: map[uint64]string{}, changed: make(chan struct{})},
		fetcher: newFetcher(), watch: newMetrics(c.Metrics),
	}
	e.self = network.member(c)
	e.self.ID = e.id
	e.view.Store(&view{changed: make(chan struct{})})
	disk := onDisk(c)
	disk.Events, disk.Done, disk.Written = e.events, e.stopped, e.written
	e.disk = storage.NewDisk(disk, network.dir, found)
	return e
}

// openFiles opens what lies beside the log: large values, and the journal if one is kept.
func (e *Engine) openFiles(c Config, found *storage.Recovered) (err error) {
	e.values, err = storage.OpenValues(storage.ValuesConfig{
		Dir: e.network.dir.Values(), Now: c.Clock.Monotonic, Full: e.disk.Full, Log: c.Log,
		Lost: func(large leasehold.Large) { e.fetcher.want(large) },
	})
	if err != nil || c.JournalBytes == 0 {
		return err
	}
	end, err := found.Storage.LastIndex()
	if err != nil {
		return err
	}
	e.journal, err = e.disk.StartJournal(c.JournalBytes, c.Clock.Wall, end)
	return err
}

// makeNode makes the node that continues from what was found.
func (e *Engine) makeNode(c Config, found *storage.Recovered) (err error) {
	e.feed.PublishAll(found.State.View(0))
	e.node, err = replica.New(replica.Config{
		ID: e.id, Storage: found.Storage, State: found.State, Applied: found.Applied, Roster: found.Roster,
		Begin: e.beginWith(found), Nonce: rand.Uint64(),
		Clock: c.Clock, Disk: e.disk, Transport: e.carrier, Feed: e.feed, Log: c.Log,
		SnapshotEvery: c.SnapshotEvery, SnapshotSize: found.Size, Caps: firstCaps(c.Caps),
		Changed: e.network.changed, Leveled: e.leveled, Compare: true, Summed: e.summed, Watch: e.applied,
		Complete: e.network.complete, Levels: c.known(),
	})
	if err == nil {
		e.leveled(found.State.Level())
	}
	return err
}

// firstCaps returns the caps to propose from the settings: none if the settings are the
// defaults, so that servers which differ only in spelling them out do not write to the log.
func firstCaps(settings leasehold.Caps) leasehold.Caps {
	if settings.Or(leasehold.DefaultCaps()) == leasehold.DefaultCaps() {
		return leasehold.Caps{}
	}
	return settings
}

// beginWith returns the members of a cluster that begins; nil: it continues. A server that
// joins begins with an empty log, which the others fill: one of its own would contradict
// theirs.
func (e *Engine) beginWith(found *storage.Recovered) []replica.Member {
	dir := e.network.dir
	switch {
	case !found.Fresh || dir.Joined:
		return nil
	case dir.Begin != nil:
		return dir.Begin
	}
	return []replica.Member{e.self}
}

// start leaves goroutines behind. The mesh is attached last: what it brings needs all the
// others.
func (e *Engine) start() {
	e.disk.Start(&e.workers)
	e.workers.Go(func() { e.values.Tend(e.stopped, e.areNamed) })
	e.workers.Go(e.fetchLoop)
	e.fetcher.notify()
	e.network.attach(e)
	go e.loop()
}
