// Package enginetest is the contract of an engine: what is not in it is not
// promised. Every engine's own test runs it.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// An Engine under test can be closed.
type Engine interface {
	engine.Engine
	Close() error
}

// Run checks the contract on engines that start makes. Each test runs in a bubble
// of virtual time, so hours of lease life take milliseconds.
func Run(t *testing.T, start func(t *testing.T) Engine, without ...string) {
	all := maps.Clone(tests)
	maps.Copy(all, watchTests)
	maps.Copy(all, submitTests)
	for _, name := range without {
		if all[name] == nil {
			t.Errorf("the contract has no part %q", name)
		}
		delete(all, name)
	}
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has its own virtual time
			synctest.Test(t, func(t *testing.T) {
				e := start(t)
				defer func() {
					if err := e.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}()
				test(t, driver{t, e})
			})
		})
	}
}

var tests = map[string]func(*testing.T, driver){
	"a grant answers with the lease":                        grants,
	"a refusal is an error with its code":                   refuses,
	"a wrong command is refused before it costs anything":   invalid,
	"a read sees what was answered before":                  reads,
	"a lease ends at its TTL and never before":              expires,
	"a renewed lease does not end":                          renews,
	"a record ends with its session, and can still be read": keepsRecords,
	"an idle engine wakes up for each of many deadlines":    manyDeadlines,
	"a waiter gets the lease when it is released":           handsOver,
	"a waiter gets the lease when its holder's time is up":  handsOverByTime,
	"a waiter that waited long enough is told who holds it": waitsNoLonger,
	"a waiter behind a connection lives as long as that":    signsOfLife,
	"a request with a made id is withdrawn with its caller": withdraws,
	"a request with a proposed id outlives its connection":  keepsProposed,
	"a waiter's lease comes with its turn, without a read":  comesWithTheTurn,
	"a lease that ends as it is granted is lost":            endsAsGranted,
	"a request that is sent again may wait beside itself":   waitsTwice,
	"a retried acquire gets the same lease, not more time":  retries,
	"one of many who ask at once gets it":                   races,
	"history tells everything in order":                     tells,
	"the journal has what was answered, and who asked":      keepsJournal,
	"who asks is known where a command is decided":          asksWho,
	"a large value is kept while something names it":        keepsValues,
	"a value that is not there cannot be named":             refusesValues,
	"a value that breaks off leaves nothing behind":         cutsOffValues,
	"a closed engine says so":                               closes,
}

// driver makes tests short.
type driver struct {
	t *testing.T
	Engine
}

func (d driver) do(c core.Command) core.Answer {
	d.t.Helper()
	a, err := d.Do(d.t.Context(), c)
	if err != nil {
		d.t.Fatalf("%T: %v", c, err)
	}
	return a
}

func (d driver) refused(c core.Command, want error) {
	d.t.Helper()
	if _, err := d.Do(d.t.Context(), c); !errors.Is(err, want) {
		d.t.Fatalf("%T: error %v, want %v", c, err, want)
	}
}

func (d driver) status(path string) (status leasehold.Status) {
	d.t.Helper()
	err := d.Read(d.t.Context(), func(v core.View) { status = v.Status("default", path, 10) })
	if err != nil {
		d.t.Fatalf("read %s: %v", path, err)
	}
	return status
}

func (d driver) holder(path string) string {
	d.t.Helper()
	if holders := d.status(path).Holders; len(holders) == 1 {
		return holders[0].Holder
	}
	return ""
}

// acquire is the way of a door: it waits, with an id that the client proposed or
// not.
func (d driver) acquire(ctx context.Context, c *core.Acquire, proposed bool) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := engine.Acquire(ctx, d.Engine, c, proposed)
		done <- err
	}()
	synctest.Wait()
	return done
}

func ask(path, holder string) *core.Acquire {
	return &core.Acquire{Namespace: "default", Resource: path, ID: holder + "@" + path, Holder: holder,
		TTL: 10 * time.Second}
}

func waiting(c *core.Acquire, wait time.Duration) *core.Acquire {
	c.Wait = wait
	return c
}

func release(id string) *core.Release { return &core.Release{Namespace: "default", ID: id} }
func renew(id string) *core.Renew     { return &core.Renew{Namespace: "default", ID: id} }

func grants(t *testing.T, d driver) {
	l := d.do(ask("r", "ann")).Lease
	if l == nil || l.Token != 1 || l.Floor != 1 || l.Remaining != 10*time.Second || l.State != leasehold.Leased {
		t.Fatalf("got %+v", l)
	}
	d.do(release(l.ID))
	if again := d.do(ask("r", "bob")).Lease; again.Token != 2 {
		t.Fatalf("token %d after 1", again.Token)
	}
}

func refuses(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	_, err := d.Do(t.Context(), ask("r", "bob"))
	var e *leasehold.Error
	if !errors.As(err, &e) || e.Code != leasehold.Held || e.Lease == nil || e.Lease.Holder != "ann" {
		t.Fatalf("got %#v", err)
	}
	d.refused(renew("nobody"), leasehold.ErrNotFound)
}

func invalid(t *testing.T, d driver) {
	c := ask("r", "ann")
	c.TTL = time.Nanosecond
	d.refused(c, leasehold.ErrInvalid)
	if history, _, _ := d.Feed().History("default"); history.Revision != 0 {
		t.Fatalf("revision %d after nothing", history.Revision)
	}
}

func reads(t *testing.T, d driver) {
	for i := range 50 {
		path := fmt.Sprint("r", i)
		d.do(ask(path, "ann"))
		if got := d.holder(path); got != "ann" {
			t.Fatalf("%s is held by %q", path, got)
		}
	}
}

func expires(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	time.Sleep(10*time.Second - time.Millisecond)
	if got := d.holder("r"); got != "ann" {
		t.Fatalf("a moment before its end it is held by %q", got)
	}
	d.refused(ask("r", "bob"), leasehold.ErrHeld)
	time.Sleep(2 * time.Millisecond)
	synctest.Wait()
	if s := d.status("r"); s.State != leasehold.Expired || s.Last.Holder != "ann" {
		t.Fatalf("a moment after its end: %+v", s)
	}
	d.refused(renew("ann@r"), leasehold.ErrLost)
}

func keepsRecords(t *testing.T, d driver) {
	value := strings.Repeat("\xff\x00", leasehold.MaxValue/2)
	for _, c := range []core.Command{
		&core.OpenSession{Namespace: "default", ID: "s", TTL: 10 * time.Second},
		&core.PutRecord{Namespace: "default", Path: "a", Value: value, Session: "s"},
		&core.Txn{Namespace: "default", If: []core.Compare{{What: core.RecordMod, Is: core.Equal, Path: "a",
			Number: 2}},
			Then: []core.Op{{Do: core.Put, Path: "b", Value: value}}},
	} {
		if a, err := d.Do(t.Context(), c); err != nil || a.Txn != nil && !a.Txn.Succeeded {
			t.Fatalf("%T: %+v, %v", c, a, err)
		}
	}
	time.Sleep(11 * time.Second)
	err := d.Read(t.Context(), func(v core.View) {
		if r, failure := v.Record("default", "b", 0); failure != nil || r.Value != value {
			t.Errorf("the record is not as it was put: %v", failure)
		}
		if _, failure := v.Record("default", "a", 0); failure == nil {
			t.Error("the record outlived its session")
		}
		if r, failure := v.Record("default", "a", 3); failure != nil || r.Value != value {
			t.Errorf("what it was cannot be read: %v", failure)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func renews(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	for range 20 {
		time.Sleep(9 * time.Second)
		if l := d.do(renew("ann@r")).Lease; l.Remaining != 10*time.Second {
			t.Fatalf("renewed for %v", l.Remaining)
		}
	}
	if got := d.holder("r"); got != "ann" {
		t.Fatalf("after three minutes it is held by %q", got)
	}
}

func manyDeadlines(t *testing.T, d driver) {
	for i := range 200 {
		c := ask(fmt.Sprint("r", i), "ann")
		c.TTL = time.Duration(i+1) * time.Second
		d.do(c)
	}
	for i := range 200 {
		time.Sleep(time.Second)
		synctest.Wait()
		if got := d.holder(fmt.Sprint("r", i)); got != "" {
			t.Fatalf("r%d is held by %q after %d s", i, got, i+1)
		}
	}
}

func retries(t *testing.T, d driver) {
	first := d.do(ask("r", "ann")).Lease
	time.Sleep(4 * time.Second)
	again := d.do(ask("r", "ann")).Lease
	if again.Token != first.Token || again.Remaining != 6*time.Second {
		t.Fatalf("token %d, remaining %v", again.Token, again.Remaining)
	}
	d.do(release("ann@r"))
	d.do(release("ann@r"))
	d.refused(ask("r", "ann"), leasehold.ErrLost)
}

func races(t *testing.T, d driver) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	tokens := map[leasehold.Token]bool{}
	won := 0
	for i := range 64 {
		wg.Go(func() {
			_, err := d.Do(t.Context(), ask("r", fmt.Sprint("h", i)))
			own, oerr := d.Do(t.Context(), ask(fmt.Sprint("r", i), fmt.Sprint("h", i)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, leasehold.ErrHeld) {
				t.Errorf("%d: %v", i, err)
			}
			if oerr != nil || tokens[own.Lease.Token] {
				t.Errorf("%d: token %v twice, or %v", i, own.Lease, oerr)
				return
			}
			tokens[own.Lease.Token] = true
		})
	}
	wg.Wait()
	if won != 1 {
		t.Fatalf("%d of 64 got it", won)
	}
}

func tells(t *testing.T, d driver) {
	_, grew, _ := d.Feed().History("default")
	d.do(ask("r", "ann"))
	<-grew
	d.do(release("ann@r"))
	d.do(ask("r", "bob"))
	time.Sleep(11 * time.Second)
	synctest.Wait()
	history, _, _ := d.Feed().History("default")
	got := ""
	for _, e := range history.All() {
		got += fmt.Sprintf("%d.%d %v %v %s; ", e.Revision, e.N, e.Kind, e.How, e.Holder)
	}
	want := "1.0 acquired unknown ann; 2.0 ended released ann; 3.0 acquired unknown bob; " +
		"4.0 ended expired bob; 4.1 alarmed unknown bob; "
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if after, ok := history.After(2, 0); !ok || len(after) != 3 {
		t.Fatalf("after 2.0 there are %d, %v", len(after), ok)
	}
}

func closes(t *testing.T, d driver) {
	d.do(ask("r", "ann"))
	bob := d.acquire(t.Context(), waiting(ask("r", "bob"), time.Minute), true)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-bob; !errors.Is(err, leasehold.ErrUnavailable) && !errors.Is(err, leasehold.ErrUndecided) {
		t.Fatalf("bob: %v", err)
	}
	d.refused(ask("q", "cat"), leasehold.ErrUnavailable)
	if err := d.Read(t.Context(), func(core.View) {}); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Fatalf("read: %v", err)
	}
	if _, _, ok := d.Feed().History("default"); ok {
		t.Fatal("the feed is open")
	}
}

func keepsJournal(t *testing.T, d driver) {
	ann := engine.WithOrigin(t.Context(), leasehold.Origin{Actor: "ann@example.com", Address: "10.0.0.1:1",
		Door: "native"})
	for _, c := range []core.Command{ask("r", "ann"), &core.Renew{Namespace: "default", ID: "ann@r"},
		waiting(ask("r", "bob"), time.Hour)} {
		if _, err := d.Do(ann, c); err != nil {
			t.Fatal(err)
		}
	}
	d.refused(ask("r", "cyd"), leasehold.ErrHeld)
	time.Sleep(11 * time.Second) // ann's time is up, and bob gets it
	synctest.Wait()

	d.journalHas(audit.Query{Kind: audit.Operation},
		"acquire ok ann@example.com 10.0.0.1:1 native ann", "acquire queued ann@example.com 10.0.0.1:1 native bob",
		"acquire held cyd   cyd",
		"expire ok time   ann", "grant ok time   bob")
	d.journalHas(audit.Query{Kind: audit.Hold, Holder: "ann"}, "10s expired ann")

	long := engine.WithOrigin(t.Context(), leasehold.Origin{Actor: strings.Repeat("a", leasehold.MaxName+1)})
	if _, err := d.Do(long, ask("other", "ann")); !errors.Is(err, leasehold.ErrInvalid) || d.holder("other") != "" {
		t.Errorf("of an actor with a name that is too long: %v", err)
	}
}

// journalHas checks what is found, oldest first.
func (d driver) journalHas(q audit.Query, want ...string) {
	d.t.Helper()
	q.Namespace, q.Limit, q.Oldest = "default", 100, true
	page, err := d.Journal().Find(d.t.Context(), q)
	if err != nil {
		d.t.Fatal(err)
	}
	var got []string
	for _, l := range page.Lines {
		if l.Kind == audit.Hold {
			got = append(got, fmt.Sprintf("%v %v %s", l.Until.Sub(l.Since), l.How, l.Holder))
			continue
		}
		got = append(got, strings.Join([]string{l.Verb, l.Outcome, l.Actor, l.Address, l.Door, l.Holder}, " "))
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("the journal has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
