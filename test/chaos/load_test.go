//go:build linux

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
)

// How much there is to do it with. So few calls run at the same time that Porcupine
// comes to an end.
const (
	records       = 4
	larges        = 2
	resources     = 4
	elections     = 3
	recordWorkers = 4
	largeWorkers  = 2
	leaseWorkers  = 5
	holders       = 6
	watchers      = 3
)

// answerWithin is how long a client waits for an answer.
const answerWithin = 5 * time.Second

// A load is clients that do everything there is to do, in a namespace of its own, and
// note what they were told.
type load struct {
	cluster   *cluster
	namespace string
	report    *report
	hop       int // in how many of a hundred calls a client goes to another server
	giveUp    time.Duration
	start     time.Time
	history   history

	stop    context.CancelFunc
	workers sync.WaitGroup
	unwatch context.CancelFunc
	watches sync.WaitGroup
	watched []*watcher

	mu     sync.Mutex // guards what follows
	guards map[string]uint64
	holds  map[string]map[*client.Hold]bool // by resource
	puts   map[string]bool                  // path@revision of what was acknowledged
}

// A loadConfig says what a load is like.
type loadConfig struct {
	namespace string
	seed      uint64
	hop       int
	giveUp    time.Duration // 0: giveUp
}

// startLoad lets clients loose.
func startLoad(c *cluster, r *report, config loadConfig) *load {
	l := &load{
		cluster: c, namespace: config.namespace, report: r, hop: config.hop, giveUp: cmp.Or(config.giveUp, giveUp), start: time.Now(),
		guards: map[string]uint64{}, holds: map[string]map[*client.Hold]bool{}, puts: map[string]bool{},
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	r.writing()
	watching, unwatch := context.WithCancel(context.Background())
	l.unwatch = unwatch
	n := 0
	spawn := func(count int, name string, do func(*party, context.Context)) {
		for i := range count {
			n++
			p := l.party(fmt.Sprint(name, i), n, config.seed)
			l.workers.Go(func() {
				for ctx.Err() == nil {
					do(p, ctx)
				}
			})
		}
	}
	for i := range watchers {
		w := &watcher{party: l.party(fmt.Sprint("watch", i), i, config.seed)}
		l.watched = append(l.watched, w)
		l.watches.Go(func() { w.run(watching) })
	}
	spawn(recordWorkers, "record", (*party).useRecord)
	spawn(largeWorkers, "large", (*party).useLarge)
	spawn(leaseWorkers, "lease", (*party).useLease)
	for i := range holders {
		n++
		p := l.party(fmt.Sprint("holder", i), n, config.seed)
		l.workers.Go(func() { p.holdOn(ctx) })
	}
	return l
}

func (l *load) clock() time.Duration { return time.Since(l.start) }

// A party is a client, with a way to each server.
type party struct {
	load    *load
	name    string
	group   string
	random  *rand.Rand
	callers []*v1.Caller
	at      int
	made    int
	last    map[string]string // what it saw last, by record
}

func (l *load) party(name string, n int, seed uint64) *party {
	p := &party{
		load: l, name: name, group: groups[n%len(groups)], random: rand.New(rand.NewPCG(seed, uint64(n))), at: n, last: map[string]string{},
	}
	for _, address := range l.cluster.addresses(p.group) {
		caller, err := v1.NewCaller(v1.CallerConfig{Server: address, Namespace: l.namespace, Timeout: answerWithin})
		if err != nil {
			panic(err) // the address is ours
		}
		p.callers = append(p.callers, caller)
	}
	return p
}

// caller is the way to the server that the client talks to.
func (p *party) caller() *v1.Caller {
	if p.random.IntN(100) < p.load.hop {
		p.at += 1 + p.random.IntN(max(1, len(p.callers)-1))
	}
	return p.callers[p.at%len(p.callers)]
}

func (p *party) newID() string {
	p.made++
	return fmt.Sprint(p.name, ".", p.made)
}

func (p *party) between(least, most time.Duration) time.Duration {
	return least + time.Duration(p.random.Int64N(int64(most-least)))
}

// think pauses between two calls.
func (p *party) think(ctx context.Context, most time.Duration) {
	pause(ctx, p.between(0, most))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// An ending is what a call came to.
type ending int

const (
	answered ending = iota // with yes or no
	refused                // nothing happened
	unknown                // it may have happened
)

// ended notes how a call ended. Who got no answer goes to another server.
func (p *party) ended(verb string, err error) ending {
	name := "ok"
	var known *leasehold.Error
	if errors.As(err, &known) {
		name = known.Code.String()
	} else if err != nil {
		name = "strange"
	}
	p.load.report.called(verb, name)
	switch {
	case errors.Is(err, leasehold.ErrUndecided):
		p.at++
		return unknown
	case errors.Is(err, leasehold.ErrUnavailable), errors.Is(err, leasehold.ErrLimited):
		p.at++
		return refused
	case errors.Is(err, leasehold.ErrInvalid), errors.Is(err, leasehold.ErrDenied), errors.Is(err, leasehold.ErrRefused), name == "strange":
		p.load.report.violated(strange, "%s: %v", verb, err)
		return refused
	}
	return answered
}

// useRecord reads, puts or swaps a record.
func (p *party) useRecord(ctx context.Context) {
	p.think(ctx, 80*time.Millisecond)
	c := &recordCall{key: fmt.Sprint("record/", p.random.IntN(records))}
	switch p.random.IntN(10) {
	case 0, 1, 2, 3:
		p.read(c)
	case 4, 5, 6:
		c.write = p.newID()
		p.put(c)
	default:
		c.write, c.swap, c.expect = p.newID(), true, p.last[c.key]
		p.exchange(c)
	}
}

// note keeps a call for the judges, if it can have happened.
func (p *party) note(c *recordCall, e ending) {
	switch {
	case e == refused:
		return
	case e == unknown:
		c.returned = never
	default:
		c.returned = p.load.clock()
	}
	p.load.history.addRecord(c)
	if c.wrote() {
		p.load.acknowledgedPut(c)
	}
	if value, ok := c.saw(); ok {
		p.last[c.key] = value
	}
	if c.wrote() {
		p.last[c.key] = c.write
	}
}

func (l *load) acknowledgedPut(c *recordCall) {
	l.report.acknowledged()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.puts[fmt.Sprintf("%s@%d", c.key, c.revision)] = true
}

func (p *party) read(c *recordCall) {
	caller := p.caller()
	c.called = p.load.clock()
	record, err := caller.Record(context.Background(), c.key, 0)
	c.seen, c.revision = string(record.Value), record.Mod
	p.note(c, p.ended("read", err))
}

func (p *party) put(c *recordCall) {
	caller := p.caller()
	c.called = p.load.clock()
	record, err := caller.PutRecord(context.Background(), v1.PutRequest{Path: c.key, Value: []byte(c.write)})
	c.revision = record.Mod
	p.note(c, p.ended("put", err))
}

// exchange puts a value in a transaction, if what the client saw last is still there.
func (p *party) exchange(c *recordCall) {
	compare := v1.Compare{Record: c.key, Field: "value", Value: []byte(c.expect)}
	if c.expect == "" {
		compare = v1.Compare{Record: c.key, Field: "version", Number: 0}
	}
	caller := p.caller()
	c.called = p.load.clock()
	txn, err := caller.Txn(context.Background(), v1.TxnRequest{
		If:   []v1.Compare{compare},
		Then: []v1.Op{{Do: "put", Path: c.key, Value: []byte(c.write)}},
		Else: []v1.Op{{Do: "get", Path: c.key}},
	})
	if err == nil {
		c.swapped = txn.Succeeded
		switch result := txn.Results[0]; {
		case txn.Succeeded:
			c.revision = result.Record.Mod
		case len(result.Items) == 1:
			c.seen, c.revision = string(result.Items[0].Value), result.Items[0].Mod
		}
	}
	p.note(c, p.ended("txn", err))
}

// guard is what a lease protects: it refuses tokens below the largest that it saw. Whom
// it refuses must know by itself that it is late.
func (l *load) guard(resource string, token uint64, believes func() bool) {
	l.mu.Lock()
	largest := l.guards[resource]
	l.guards[resource] = max(largest, token)
	l.mu.Unlock()
	if token >= largest {
		l.report.count("guarded writes", 1)
		return
	}
	l.report.count("guarded writes refused", 1)
	if believes() {
		l.report.violated(refusedHolder, "%s: token %d is refused after %d, and its holder believes", resource, token, largest)
	}
}

// settle ends the load when the trouble is over, and has everything checked.
func (l *load) settle() {
	l.stop()
	l.workers.Wait()
	l.report.wrote()
	finals := l.party("final", 0, 0)
	for n := range records {
		for i := range finals.callers {
			l.readFinally(finals, i, fmt.Sprint("record/", n))
		}
	}
	for n := range larges {
		for i := range finals.callers {
			l.readLargeFinally(finals, i, fmt.Sprint("large/", n))
		}
	}
	l.everythingEnds(finals)
	l.everythingIsGranted(finals)
	l.watchesAgree(finals)
	l.report.tell("judging %d calls", len(l.history.records)+len(l.history.leases))
	l.history.check(l.report)
	l.report.count("grants", len(slices.DeleteFunc(slices.Clone(l.history.leases), func(c *leaseCall) bool { return c.verb != acquire || c.outcome != yes })))
}

// giveUp is how long a thing may take that must happen. It is long because nothing here
// is about speed.
const giveUp = 2 * time.Minute

// insist does something until it is answered, by one server alone.
func (l *load) insist(what string, do func() error) bool {
	until := time.Now().Add(l.giveUp)
	for {
		err := do()
		if err == nil {
			return true
		}
		if time.Now().After(until) {
			l.report.violated(stuck, "%s: %v", what, err)
			return false
		}
		time.Sleep(50 * time.Millisecond) // a server that is not ready tells so at once
	}
}

func (l *load) readFinally(p *party, server int, key string) {
	l.insist(fmt.Sprintf("server %d reads %s", server+1, key), func() error {
		c := &recordCall{key: key, final: true, called: l.clock()}
		record, err := p.callers[server].Record(context.Background(), key, 0)
		if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
		c.seen, c.revision, c.returned = string(record.Value), record.Mod, l.clock()
		l.history.addRecord(c)
		return nil
	})
}

// everythingEnds waits until nobody holds anything, since nobody renews now.
func (l *load) everythingEnds(p *party) {
	l.insist("everything ends that nobody renews", func() error {
		page, err := p.caller().ResourcePage(context.Background(), v1.ResourceQuery{})
		if err != nil {
			p.at++
			return err
		}
		for _, r := range page.Items {
			if len(r.Holders) > 0 || r.Waiting > 0 {
				return fmt.Errorf("%s is held by %v, and %d wait", r.Resource, r.Holders, r.Waiting)
			}
		}
		return nil
	})
}

// everythingIsGranted has each server grant each resource, and give it back.
func (l *load) everythingIsGranted(p *party) {
	l.mu.Lock()
	named := slices.Sorted(maps.Keys(l.guards))
	l.mu.Unlock()
	for i, caller := range p.callers {
		for _, resource := range named {
			id := p.newID()
			l.insist(fmt.Sprintf("server %d grants %s", i+1, resource), func() error {
				lease, err := caller.Acquire(context.Background(), v1.AcquireRequest{
					Resource: resource, Holder: "final", ID: id, TTL: v1.TTL{Duration: v1.Duration(time.Minute)},
				})
				if errors.Is(err, leasehold.ErrLost) {
					id = p.newID()
				}
				if err == nil {
					l.guard(resource, lease.Token, func() bool { return true })
				}
				return err
			})
			l.insist(fmt.Sprintf("server %d releases %s", i+1, resource), func() error {
				return caller.Release(context.Background(), v1.ReleaseRequest{ID: id})
			})
		}
	}
}

// abandon ends the load without a look at it.
func (l *load) abandon() {
	l.stop()
	l.workers.Wait()
	l.unwatch()
	l.watches.Wait()
}
