//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/access/upkeep"
)

// A right that was taken away must be gone within the servers' own bound, and what a machine that has much else to do
// needs to tell the client. What was measured is logged.
const (
	bound     = time.Second
	slack     = 500 * time.Millisecond
	effective = bound + slack
)

// A tenancy is a cluster with access on, and people who may do something below a/.
type tenancy struct {
	*cluster
	*testing.T
	secrets map[string]string // of people, by name
}

// startTenancy starts three servers with access on.
func startTenancy(t *testing.T) *tenancy {
	c := startNamed(t, clusterConfig{servers: 3, access: true})
	w := &tenancy{c, t, map[string]string{"admin": c.secret()}}
	admin := w.as(c.servers()[0], "admin")
	w.must(admin.Acquire(t.Context(), v1.AcquireRequest{Resource: "a/held", Holder: "admin", ID: "held", TTL: ttl(time.Hour)}))
	w.must(admin.PutRecord(t.Context(), v1.PutRequest{Path: "a/large", Body: io.LimitReader(zeros{}, tooMuch)}))
	return w
}

// tooMuch is more than what lies on its way between a server and a reader that does not read.
const tooMuch = 48 << 20

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (w *tenancy) must(_ any, err error) {
	w.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// as returns a caller of one server for somebody.
func (w *tenancy) as(s *server, who string) *v1.Caller {
	w.Helper()
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://" + s.listen, Timeout: answerWithin,
		Token: func(context.Context) (string, error) { return w.secrets[who], nil }})
	if err != nil {
		w.T.Fatal(err)
	}
	w.Cleanup(caller.CloseIdle)
	return caller
}

// person makes somebody with a token, a role and a binding of that name.
func (w *tenancy) person(who string, ends time.Duration) {
	w.Helper()
	admin := w.as(w.someLeader(), "admin")
	verbs := "read list watch acquire renew:own release:own record-read audit"
	w.must(admin.PutRole(w.Context(), v1.AccessRole{Name: who, Verbs: strings.Fields(verbs)}, v1.Intent{}))
	w.must(admin.PutBinding(w.Context(), v1.AccessBinding{Name: who, Role: who, Principal: who, Prefix: "a"}, v1.Intent{}))
	made, err := admin.CreateToken(w.Context(), v1.TokenRequest{ID: who, Principal: who, TTL: v1.Duration(ends)})
	w.must(made, err)
	w.secrets[who] = made.Secret
}

// A stay is something that somebody has open at a server.
type stay struct {
	what string
	over chan struct{} // closed when it has ended
	at   time.Time     // when that was
	err  error
}

// stays runs something until it ends.
func stays(what string, run func() error) *stay {
	s := &stay{what: what, over: make(chan struct{})}
	go func() {
		defer close(s.over)
		s.err = run()
		s.at = time.Now()
	}()
	return s
}

// read reads the rest of a value.
func read(value io.ReadCloser) error {
	defer value.Close()
	_, err := io.Copy(io.Discard, value)
	return err
}

// opened is all that somebody has open at a server.
type opened struct {
	stays []*stay
	value io.ReadCloser // of which the first part was sent
}

// open opens at a server all that stays open.
func (w *tenancy) open(s *server, who string) opened {
	w.Helper()
	id := who + "-" + s.name
	caller := w.as(s, who)
	w.must(caller.OpenSession(w.Context(), v1.SessionRequest{ID: id, TTL: ttl(time.Hour)}))
	begun := make(chan struct{})
	watch := stays("watch", func() (err error) {
		for _, err = range caller.Watch(w.Context(), v1.WatchQuery{Once: true, Started: func(v1.Hello) { close(begun) }}) {
		}
		return err
	})
	select {
	case <-begun:
	case <-watch.over:
		w.T.Fatalf("%s cannot watch at %s: %v", who, s.name, watch.err)
	}
	wait := stays("wait", func() error {
		_, err := caller.Acquire(w.Context(), v1.AcquireRequest{Resource: "a/held", Holder: who, ID: id, TTL: ttl(time.Hour),
			Wait: v1.Duration(time.Minute)})
		return err
	})
	w.until(id+" waits", func() error {
		_, err := w.as(s, "admin").Move(w.Context(), v1.MoveRequest{ID: id, Priority: 1})
		return err
	})
	value, err := caller.OpenRecord(w.Context(), "a/large", 0)
	w.must(value, err)
	return opened{[]*stay{watch, wait}, value}
}

// ended wants everything to end because it had to, in time after a moment; a value ends when somebody reads it.
func (w *tenancy) ended(where string, o opened, since time.Time) {
	w.Helper()
	for _, s := range o.stays {
		<-s.over
		took := s.at.Sub(since)
		w.T.Logf("%s: the %s ended after %v: %v", where, s.what, took.Round(time.Millisecond), s.err)
		if s.err == nil || took > effective {
			w.T.Errorf("%s: the %s ended after %v with %v", where, s.what, took, s.err)
		}
	}
	if err := read(o.value); err == nil {
		w.T.Errorf("%s: the value could be read to its end", where)
	}
}

// refused wants every request to be refused from now on, and returns why the last one was.
func (w *tenancy) refused(s *server, who string) (last error) {
	w.Helper()
	caller, ctx := w.as(s, who), w.Context()
	for what, ask := range map[string]func() error{
		"acquire": func() error {
			_, err := caller.Acquire(ctx, v1.AcquireRequest{Resource: "a/new", Holder: who, ID: who + "-new", TTL: ttl(time.Hour)})
			return err
		},
		"read":  func() error { _, err := caller.Resource(ctx, "a/held", 1); return err },
		"list":  func() error { _, err := caller.ResourcePage(ctx, v1.ResourceQuery{Prefix: "a/"}); return err },
		"audit": func() error { _, err := caller.AuditPage(ctx, v1.JournalQuery{Prefix: "a/"}); return err },
		"history": func() error {
			page, err := caller.History(ctx, v1.HistoryQuery{Resource: "a/held"})
			if err == nil && len(page.Items) == 0 {
				err = leasehold.ErrDenied // what is hidden is left out
			}
			return err
		},
		"record": func() error { _, err := caller.Record(ctx, "a/large", 0); return err },
		"session": func() error {
			_, err := caller.RenewSession(ctx, who+"-"+s.name)
			if errors.Is(err, leasehold.ErrNotFound) {
				err = leasehold.ErrDenied // it was there: see open
			}
			return err
		},
		"watch": func() error {
			within, cancel := context.WithTimeout(ctx, answerWithin)
			defer cancel()
			for _, err := range caller.Watch(within, v1.WatchQuery{Once: true}) {
				return err
			}
			return nil
		},
	} {
		err := ask()
		if !errors.Is(err, leasehold.ErrDenied) && !v1.Transient(err) {
			w.T.Errorf("%s at %s: %s is answered %v", who, s.name, what, err)
		}
		last = err
	}
	return last
}

// takes are the ways in which a right ends. Each returns from when on.
func (w *tenancy) takes() map[string]func(admin *v1.Caller, who string) (time.Time, error) {
	ctx := w.Context()
	return map[string]func(*v1.Caller, string) (time.Time, error){
		"token": func(admin *v1.Caller, who string) (time.Time, error) {
			return time.Now(), admin.RevokeToken(ctx, who, v1.Intent{})
		},
		"role": func(admin *v1.Caller, who string) (time.Time, error) {
			_, err := admin.PutRole(ctx, v1.AccessRole{Name: who, Verbs: []string{"ask"}}, v1.Intent{})
			return time.Now(), err
		},
		"binding": func(admin *v1.Caller, who string) (time.Time, error) {
			return time.Now(), admin.DeleteBinding(ctx, who, v1.Intent{})
		},
		"expiry": func(admin *v1.Caller, who string) (time.Time, error) {
			list, err := admin.AccessTokens(ctx, v1.AccessQuery{Prefix: who})
			if err != nil || len(list.Items) != 1 || list.Items[0].Expires.IsZero() {
				return time.Time{}, fmt.Errorf("%+v, %v", list, err)
			}
			end := list.Items[0].Expires.Time
			time.Sleep(time.Until(end))
			return end, nil
		},
	}
}

// What was taken away is gone on all servers, for what is open too.
func TestRevocationOnThreeServers(t *testing.T) {
	w := startTenancy(t)
	for how, take := range w.takes() {
		ends := time.Hour
		if how == "expiry" {
			ends = 6 * time.Second
		}
		w.person(how, ends)
		open := map[*server]opened{}
		for _, s := range w.servers() {
			open[s] = w.open(s, how)
		}
		since, err := take(w.as(w.follower(), "admin"), how)
		if err != nil {
			t.Fatal(err)
		}
		for s, o := range open {
			w.ended(how+" at "+s.name, o, since)
			if err := w.refused(s, how); !errors.Is(err, leasehold.ErrDenied) {
				t.Errorf("%s at %s: at last %v", how, s.name, err)
			}
		}
	}
}

// The same if the leader dies as soon as it has said that the right is gone, also where one server has not heard of it.
func TestRevocationAcrossAFailover(t *testing.T) {
	w := startTenancy(t)
	for _, how := range []string{"token", "role", "binding"} {
		w.person(how, time.Hour)
		open, leader := map[*server]opened{}, w.someLeader()
		for _, s := range w.servers() {
			open[s] = w.open(s, how)
		}
		if how == "binding" {
			w.isolate(w.follower(), condition{cut: true})
		}
		since, err := w.takes()[how](w.as(leader, "admin"), how)
		if err != nil {
			t.Fatal(err)
		}
		leader.kill()
		w.network.heal()
		for s, o := range open {
			w.ended(how+" at "+s.name, o, since)
			if s != leader {
				w.refused(s, how)
			}
		}
		w.someLeader()
		w.start(leader)
		w.ready()
		for _, s := range w.servers() {
			if err := w.refused(s, how); !errors.Is(err, leasehold.ErrDenied) {
				t.Errorf("%s at %s: at last %v", how, s.name, err)
			}
		}
	}
}

// A server that is cut off does not know whose right is gone by now: what is open there ends, and it shows nothing.
func TestAServerThatIsCutOffShowsNothing(t *testing.T) {
	w := startTenancy(t)
	w.person("ann", time.Hour)
	leader, alone := w.someLeader(), w.follower()
	open := w.open(alone, "ann")
	since := time.Now()
	w.isolate(alone, condition{held: true})
	w.must(nil, w.as(leader, "admin").RevokeToken(t.Context(), "ann", v1.Intent{}))
	w.ended("cut off", open, since)
	w.refused(alone, "ann")
	w.network.heal()
	w.until("it knows", func() error {
		if err := w.refused(alone, "ann"); !errors.Is(err, leasehold.ErrDenied) {
			return err
		}
		return nil
	})
}

// A wait at a server that is cut off goes on at another one, in the same place: it is granted first, as what it was.
func TestAWaitGoesOnElsewhere(t *testing.T) {
	w := startTenancy(t)
	w.person("ann", time.Hour)
	leader, alone := w.someLeader(), w.follower()
	servers := []string{"http://" + alone.listen}
	for _, s := range w.servers() {
		if s != alone {
			servers = append(servers, "http://"+s.listen)
		}
	}
	ann, err := client.Dial(t.Context(), client.Config{Servers: servers, Holder: "ann", TTL: time.Minute,
		Token: func(context.Context) (string, error) { return w.secrets["ann"], nil }})
	w.must(ann, err)
	defer ann.Close()
	var hold *client.Hold
	wait := stays("wait", func() (err error) {
		hold, err = ann.Acquire(t.Context(), "a/held")
		return err
	})
	admin := w.as(leader, "admin")
	queue := func(want int) []v1.Waiter {
		var r v1.Resource
		w.until(fmt.Sprint(want, " wait"), func() (err error) {
			if r, err = admin.Resource(t.Context(), "a/held", 10); err == nil && len(r.Queue) != want {
				err = fmt.Errorf("%+v", r.Queue)
			}
			return err
		})
		return r.Queue
	}
	first := queue(1)[0].ID
	second := stays("second wait", func() error {
		_, err := admin.Acquire(t.Context(), v1.AcquireRequest{Resource: "a/held", Holder: "admin", ID: "second", TTL: ttl(time.Hour),
			Wait: v1.Duration(time.Minute)})
		return err
	})
	queue(2)
	w.isolate(alone, condition{cut: true})
	w.must(nil, admin.Release(t.Context(), v1.ReleaseRequest{ID: "held"}))
	<-wait.over
	if wait.err != nil {
		t.Fatal(wait.err)
	}
	if hold.ID() != first {
		t.Errorf("it waited as %s, and holds %s", first, hold.ID())
	}
	w.network.heal()
	w.must(nil, hold.Release(t.Context()))
	if <-second.over; second.err != nil {
		t.Error(second.err)
	}
}

// isolate puts all ways between a server and the others into a condition.
func (c *cluster) isolate(alone *server, as condition) {
	for _, s := range c.servers() {
		if s != alone {
			c.network.set(pair{s.name, alone.name}, as)
			c.network.set(pair{alone.name, s.name}, as)
		}
	}
}

// secret returns the token of the first admin, which one server has.
func (c *cluster) secret() string {
	for _, s := range c.servers() {
		if b, err := os.ReadFile(upkeep.TokenFile(s.data())); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}
