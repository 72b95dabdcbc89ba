//go:build linux

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
)

// A role's own level must not matter: at REPEATABLE READ, who waited for a lock would fail.
func TestARoleWithAnotherIsolationLevel(t *testing.T) {
	s := newStore(t)
	p := theServer(t)
	for _, level := range []string{"repeatable read", "serializable"} {
		role := "r" + strings.ReplaceAll(level, " ", "")
		p.SQL("create role " + role + " login superuser")
		p.SQL("alter role " + role + " set default_transaction_isolation = '" + level + "'")
		p.SQL("alter role " + role + " set synchronous_commit = off")
		other := openStore(t, Config{URL: p.URLOf(role), Schema: s.listener.channel})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 5 {
					r := request("a", fmt.Sprint(role, i, j))
					r.Wait = time.Minute
					acquire(t, other, r)
					release(t, other, r.Resource, r.ID)
				}
			})
		}
		all.Wait()
	}
}

// A role's settings change how PostgreSQL writes and reads values.
func TestARoleWithOddSettings(t *testing.T) {
	s := newStore(t)
	p := theServer(t)
	p.SQL("create role odd login superuser")
	for _, setting := range []string{"datestyle = 'German, DMY'", "bytea_output = escape", "timezone = 'Asia/Kolkata'",
		"intervalstyle = iso_8601", "standard_conforming_strings = off", "search_path = information_schema",
		"client_encoding = latin1", "lc_numeric = 'C'", "extra_float_digits = -15", "plpgsql.variable_conflict = use_column"} {
		p.SQL("alter role odd set " + setting)
	}
	other := openStore(t, Config{URL: p.URLOf("odd"), Schema: s.listener.channel, Migrate: true})
	r := request("räume\\'1", "\\x00")
	r.Holder, r.Value = "漢字", []byte("\\x00\x00")
	g := acquire(t, other, r)
	if d := time.Until(g.Expires); d > r.TTL || d < r.TTL-10*time.Second {
		t.Errorf("it expires in %v", d)
	}
	state, err := other.Read(t.Context(), r.Resource)
	if err != nil || state.Holders[0].Holder != r.Holder || state.Holders[0].ID != r.ID || string(state.Value) != string(r.Value) {
		t.Errorf("read %+v, %v", state, err)
	}
	list, err := other.Renew(t.Context(), store.Ref{Resource: r.Resource, ID: r.ID})
	if err != nil || list[0].Remaining != r.TTL {
		t.Errorf("renewed %+v, %v", list, err)
	}
	release(t, other, r.Resource, r.ID)
	if page, err := other.List(t.Context(), store.Query{}); err != nil || len(page.Items) != 0 {
		t.Errorf("listed %+v, %v", page, err)
	}
	openStore(t, Config{URL: p.URLOf("odd"), Schema: newSchema(), Migrate: true})
}

// The setting must last until the commit, which a SET of the function would not.
func TestCommitsAreSynchronous(t *testing.T) {
	s := newStore(t)
	tx := begin(t, "read committed")
	var setting string
	s.execute(t, tx, "set local synchronous_commit = off")
	s.execute(t, tx, "select @.acquire('default', 'a', 'one', 60000000, false, 0, '{}', null, 1)")
	if err := tx.QueryRow(t.Context(), "show synchronous_commit").Scan(&setting); err != nil || setting != "on" {
		t.Errorf("synchronous_commit is %s, %v", setting, err)
	}
}

func TestAnotherServer(t *testing.T) {
	s := newStore(t, func(c *Config) { c.MaxTTL = 300 * time.Millisecond })
	conn := connect(t, theServer(t).URL())
	r := store.Request{Resource: "held", ID: "one", TTL: 300 * time.Millisecond}
	acquire(t, s, r)
	for _, change := range []string{"update @.witness set timeline = '00000007'", "update @.witness set system = 7",
		"delete from @.witness"} {
		time.Sleep(300 * time.Millisecond)
		s.execute(t, conn, change)
		r.Resource, r.ID = change, "one"
		_, err := s.Acquire(t.Context(), r)
		if code(err) != leasehold.Unavailable || !strings.Contains(err.Error(), "failover") {
			t.Errorf("after %q: %v", change, err)
		}
		waitFor(t, func() bool { _, err := s.Acquire(t.Context(), r); return err == nil })
	}
	s.execute(t, conn, "update @.witness set timeline = '00000009'")
	s.lossless = true
	r.Resource = "lossless"
	acquire(t, s, r)
}

// A synchronous standby is gone: the commit waits for it. Cancelled, it succeeds with a warning.
func TestTheSynchronousStandbyIsGone(t *testing.T) {
	t.Parallel()
	p := peer.StartPostgres(t, peer.PostgresConfig{})
	p.SQL("alter role test set client_min_messages = error") // which hides warnings
	s := openStore(t, Config{URL: p.URL(), Migrate: true})
	p.Set("synchronous_standby_names", "nobody")
	admin := connect(t, p.URL())
	waitFor(t, func() bool {
		var names string
		err := admin.QueryRow(t.Context(), "show synchronous_standby_names").Scan(&names)
		return err == nil && names == "nobody"
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, request("a", "one"))
	if !store.Transient(err) || errors.Is(err, leasehold.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without an answer: %v", err)
	}
	// Whoever asks again finds the grant, and only reads it. It is confirmed no sooner for that.
	again, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if _, err := s.Acquire(again, request("a", "one")); !store.Transient(err) {
		t.Errorf("asked again without the standby: %v", err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), request("b", "one"))
		result <- err
	}()
	waitFor(t, func() bool {
		_, err := admin.Exec(t.Context(), "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
		if err != nil {
			t.Error(err)
		}
		return len(result) > 0
	})
	if err := <-result; code(err) != leasehold.Undecided {
		t.Errorf("after a cancel: %v", err)
	}
	p.Set("synchronous_standby_names", "")
	for _, resource := range []string{"a", "b"} {
		if g := acquire(t, s, request(resource, "one")); g.Token == 0 {
			t.Errorf("asked again: %+v", g)
		}
	}
}

func TestThroughPgBouncer(t *testing.T) {
	p := theServer(t)
	b := peer.StartPgBouncer(t, p.Address)
	c := Config{URL: b.URL(), Schema: newSchema(), Migrate: true}
	s := openStore(t, c)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for j := range 10 {
				r := request(fmt.Sprint(i), fmt.Sprint(j))
				acquire(t, s, r)
				if list, err := s.Renew(t.Context(), store.Ref{Resource: r.Resource, ID: r.ID}); err != nil || list[0].Ended != nil {
					t.Errorf("renewed %+v, %v", list, err)
				}
				release(t, s, r.Resource, r.ID)
			}
		})
	}
	all.Wait()
	c.Listen = p.URL()
	direct := openStore(t, c)
	c.Listen = Off
	for name, s := range map[string]*Store{"by asking again": s, "told at once": direct, "off": openStore(t, c)} {
		acquire(t, s, request(name, "one"))
		r := request(name, "two")
		r.Wait = time.Minute
		time.AfterFunc(500*time.Millisecond, func() { release(t, s, name, "one") })
		began := time.Now()
		acquire(t, s, r)
		t.Logf("%s: granted %v after the release", name, time.Since(began)-500*time.Millisecond)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

// The server's clock jumps: tokens grow all the same, and the jump is reported.
func TestTheServersClockJumps(t *testing.T) {
	t.Parallel()
	clock := peer.NewClock(t)
	p := peer.StartPostgres(t, peer.PostgresConfig{Clock: clock})
	var log syncBuffer
	s := openStore(t, Config{URL: p.URL(), Migrate: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	var last leasehold.Token
	for i, step := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Hour} {
		clock.Step(step)
		id := fmt.Sprint(i)
		if step < 0 { // nobody has been there for long
			p.SQL("select leasehold.clean(10, '-3 hours')")
		}
		g := acquire(t, s, request("a", id))
		if g.Token <= last {
			t.Errorf("after a step of %v: token %d after %d", step, g.Token, last)
		}
		last = g.Token
		release(t, s, "a", id)
	}
	if !strings.Contains(log.String(), "has stepped") {
		t.Errorf("logged %q", log.String())
	}
}

// An answer gets lost on the way. The one who asks again finds the lease.
func TestLostReplies(t *testing.T) {
	p := theServer(t)
	link := peer.StartProxy(t, p.Address)
	c := Config{URL: strings.Replace(p.URL(), p.Address, link.Address, 1), Schema: newSchema(), Migrate: true}
	s := openStore(t, c)
	link.DropReplies()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, request("a", "one"))
	if code(err) == leasehold.Unavailable || !store.Transient(err) {
		t.Errorf("without an answer: %v", err)
	}
	link.Forward()
	c.URL = p.URL()
	if _, err := openStore(t, c).Acquire(t.Context(), request("a", "two")); code(err) != leasehold.Held {
		t.Errorf("it was not granted: %v", err)
	}
	waitFor(t, func() bool { _, err := s.Acquire(t.Context(), request("a", "one")); return err == nil })
	link.Cut()
	waitFor(t, func() bool {
		_, err := s.Acquire(t.Context(), request("a", "one"))
		return code(err) == leasehold.Unavailable
	})
}

// A syncBuffer may be written to by several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
