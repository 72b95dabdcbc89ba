package redis

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
	"github.com/redis/rueidis"
)

// short is the largest TTL where a test waits until it has passed.
const short = 3 * time.Second

func shortConfig(address string) Config {
	c := config(address)
	c.MaxTTL, c.Init = short, false
	return c
}

// A replica that lags behind is promoted, as in the suite, and its clock is wrong. It knows nothing of a grant
// that was confirmed, so it must not grant the resource to anybody else while that lease may be alive; and
// its tokens must be larger, even if its clock is behind.
func TestALaggingReplicaIsPromoted(t *testing.T) {
	for _, skew := range []time.Duration{5 * time.Second, -5 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			clock := peer.NewClock(t)
			clock.Step(skew)
			primary := peer.StartRedis(t, peer.RedisConfig{})
			replica := primary.StartReplica(t, peer.RedisConfig{Clock: clock})
			a := openWith(t, func() Config { c := shortConfig(primary.Address); c.Init = true; return c }())
			known := mustAcquire(t, a, "known", "k")
			replicated(t, a, replica, "known", "k")

			replica.Link.Hang()
			sent := time.Now()
			lost := mustAcquire(t, a, "r", "a")
			replica.Promote()

			b := openWith(t, shortConfig(replica.Address))
			if _, err := acquire(t, b, "r", "b"); !errors.Is(err, leasehold.ErrUnavailable) {
				t.Fatalf("the promoted replica answers %v while the lost lease is alive", err)
			}
			// What the replica knows goes on, unless its clock says that it has ended.
			renewals, err := b.Renew(t.Context(), store.Ref{Resource: "known", ID: "k"})
			if alive := err == nil && renewals[0].Ended == nil; alive != (skew <= 0) {
				t.Errorf("a lease that the replica knows: alive %v, %v", alive, err)
			}
			// The caller has seen a token of the old primary. Without that, the clock may be too far back.
			grant, err := b.Acquire(t.Context(), store.Request{
				Resource: "r", ID: "c", Holder: "c", TTL: testTTL, Wait: 20 * time.Second, Floor: lost.Token,
			})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(sent); took < short {
				t.Errorf("granted again after %v: leases may last %v", took, short)
			}
			if grant.Token <= lost.Token || grant.Token <= known.Token {
				t.Errorf("the token is %d, and there were %d and %d", grant.Token, known.Token, lost.Token)
			}
		})
	}
}

// replicated waits until a replica has a lease.
func replicated(t testing.TB, s *Store, replica *peer.Redis, resource, id string) {
	t.Helper()
	for range 1000 {
		if replica.Do("HGET", s.names.lease(resource), "id") == id {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("the replica never got the lease %s", id)
}

// The old primary goes on after a promotion. Its tokens stay below those of callers that have seen the
// new one.
func TestTheOldPrimaryStillServes(t *testing.T) {
	t.Parallel()
	primary := peer.StartRedis(t, peer.RedisConfig{})
	replica := primary.StartReplica(t, peer.RedisConfig{})
	c := shortConfig(primary.Address)
	c.Init = true
	old := openWith(t, c)
	held := mustAcquire(t, old, "r", "a")
	replicated(t, old, replica, "r", "a")
	replica.Link.Hang()
	replica.Promote()
	next := openWith(t, shortConfig(replica.Address))
	until := time.Now().Add(20 * time.Second)
	var grant store.Grant
	for err := error(leasehold.ErrHeld); err != nil; {
		if time.Now().After(until) {
			t.Fatalf("the new primary never grants: %v", err)
		}
		// The holder is still at the old primary, which renews it.
		if renewals, err := old.Renew(t.Context(), store.Ref{Resource: "r", ID: "a"}); err != nil || renewals[0].Ended != nil {
			t.Fatalf("the old primary renews: %+v, %v", renewals, err)
		}
		time.Sleep(testTTL / 5)
		grant, err = acquire(t, next, "r", "b")
	}
	// Two believe now: nothing that the store does can prevent it. The token tells them apart.
	if grant.Token <= held.Token {
		t.Errorf("the new primary gave token %d, and the old one %d", grant.Token, held.Token)
	}
}

// Strict mode does not confirm what a replica lacks, so a holder at the old primary loses its lease.
func TestStrictModeConfirmsNothingThatAReplicaLacks(t *testing.T) {
	t.Parallel()
	aof := peer.RedisConfig{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}}
	primary := peer.StartRedis(t, aof)
	first, second := primary.StartReplica(t, aof), primary.StartReplica(t, aof)
	c := config(primary.Address)
	c.Strict, c.Replicas = true, 2
	s := openWith(t, c)
	s.waitTimeout = 300 * time.Millisecond
	mustAcquire(t, s, "r", "a")
	for _, r := range []*peer.Redis{first, second} {
		if got := r.Do("HGET", s.names.lease("r"), "id"); got != "a" {
			t.Errorf("a replica does not have the lease: %q", got)
		}
	}
	second.Link.Hang()
	ref := store.Ref{Resource: "r", ID: "a"}
	if _, err := s.Renew(t.Context(), ref); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("a renewal that one of two replicas lacks: %v", err)
	}
	if _, err := acquire(t, s, "other", "b"); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("a grant that one of two replicas lacks: %v", err)
	}
	// Whoever asks again, while it lasts, finds the grant. WAIT confirms what its connection wrote, since Redis 7.2 no more than that.
	before := written(primary)
	if _, err := acquire(t, s, "other", "b"); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("the same grant, asked for again: %v", err)
	}
	if written(primary) == before {
		t.Error("it was asked for again without a write, which WAIT would confirm at once")
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Leases: []store.Ref{ref}}); !errors.Is(err, leasehold.ErrUndecided) {
		t.Errorf("a release that one of two replicas lacks: %v", err)
	}
	for _, attempt := range []string{"a break", "the same break"} {
		before := written(primary)
		_, err := s.Break(t.Context(), store.BreakRequest{Ref: store.Ref{Resource: "other", ID: "b"}, By: "op"})
		if !errors.Is(err, leasehold.ErrUndecided) {
			t.Errorf("%s that one of two replicas lacks: %v", attempt, err)
		}
		if written(primary) == before {
			t.Errorf("%s writes nothing, and WAIT would confirm it at once", attempt)
		}
	}
	second.Link.Forward()
	s.waitTimeout = 20 * time.Second
	mustAcquire(t, s, "another", "d")

	third := primary.StartReplica(t, aof)
	_ = third
	if _, err := acquire(t, s, "more", "c"); !errors.Is(err, leasehold.ErrUndecided) || !strings.Contains(err.Error(), "replicas=3") {
		t.Errorf("with a replica that strict mode does not know: %v", err)
	}
}

// written counts the writes of a server.
func written(r *peer.Redis) string {
	return field(r.Do("INFO", "persistence"), "rdb_changes_since_last_save")
}

func TestStrictModeRefusesWhatItCannotVerify(t *testing.T) {
	t.Parallel()
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	for _, test := range []struct {
		name     string
		args     []string
		replicas int
		user     []string
		say      string
	}{
		{"no append-only file", nil, 0, nil, "appendonly yes"},
		{"synced every second", []string{"--appendonly", "yes"}, 0, nil, "appendfsync always"},
		{"a replica is missing", always, 1, nil, "has 0 replicas"},
		{"CONFIG is not allowed", always, 0, []string{"ACL", "SETUSER", "default", "-config"}, "cannot be verified"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := peer.StartRedis(t, peer.RedisConfig{Args: test.args})
			if test.user != nil {
				server.Do(test.user...)
			}
			c := config(server.Address)
			c.Strict, c.Replicas = true, test.replicas
			if _, err := Open(t.Context(), c); !errors.Is(err, leasehold.ErrRefused) || !strings.Contains(err.Error(), test.say) {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

// A crash without the append-only file loses everything, and with it nothing. Either way nobody gets a
// lease that somebody may still hold.
func TestKillAndRestart(t *testing.T) {
	for _, aof := range []string{"no", "yes"} {
		t.Run("appendonly "+aof, func(t *testing.T) {
			t.Parallel()
			server := peer.StartRedis(t, peer.RedisConfig{Args: []string{"--appendonly", aof, "--save", ""}})
			c := shortConfig(server.Address)
			c.Init = true
			s := openWith(t, c)
			before := mustAcquire(t, s, "r", "a")
			sent := time.Now()
			server.Kill()
			if _, err := acquire(t, s, "r", "b"); !store.Transient(err) {
				t.Fatalf("without a server: %v", err)
			}
			server.Restart()
			grant, err := waitOut(t, s, store.Request{Resource: "r", ID: "c", Holder: "c", TTL: testTTL, Wait: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(sent); took < short || grant.Token <= before.Token {
				t.Errorf("granted after %v with token %d; before, it had %d", took, grant.Token, before.Token)
			}
			renewals, err := s.Renew(t.Context(), store.Ref{Resource: "r", ID: "a"})
			if err != nil || renewals[0].Ended == nil {
				t.Fatalf("the lost lease is renewed: %+v, %v", renewals, err)
			}
			if how := renewals[0].Ended.How; aof == "yes" && how != leasehold.ByTTL || aof == "no" && how != 0 {
				t.Errorf("it ended as %v", how)
			}
		})
	}
}

// Waiters keep their order over a restart, although nothing is granted for longer than they last without
// asking.
func TestTheQueueSurvivesARestart(t *testing.T) {
	t.Parallel()
	server := peer.StartRedis(t, peer.RedisConfig{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	c := shortConfig(server.Address)
	c.Init = true
	s := openWith(t, c)
	r := store.Request{Resource: "r", ID: "a", TTL: short, Holder: "a"}
	if _, err := s.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 3)
	for i, id := range []string{"b", "c", "d"} {
		go func() {
			_, err := waitOut(t, s, store.Request{Resource: "r", ID: id, Holder: id, TTL: short / 2, Wait: time.Minute})
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
			order <- id
		}()
		for waiting := 0; waiting <= i; time.Sleep(5 * time.Millisecond) {
			shown, err := s.Read(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			waiting = shown.Waiting
		}
	}
	server.Kill()
	server.Restart()
	for _, want := range []string{"b", "c", "d"} {
		if got := <-order; got != want {
			t.Errorf("%s was granted, and %s is next", got, want)
		}
	}
}

// waitOut repeats what may be repeated, as the client does.
func waitOut(t testing.TB, s *Store, r store.Request) (grant store.Grant, err error) {
	t.Helper()
	for until := time.Now().Add(r.Wait); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if grant, err = s.Acquire(t.Context(), r); !store.Transient(err) {
			break
		}
	}
	return grant, err
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := peer.StartRedisCluster(t, peer.RedisConfig{})
	var wg sync.WaitGroup
	for i := range 8 {
		c := config("")
		c.Options = rueidis.ClientOption{InitAddress: cluster.Addresses()}
		c.Namespace = fmt.Sprintf("ns {%d} }", i)
		s := openWith(t, c)
		wg.Go(func() {
			grant, err := acquire(t, s, "r", "a")
			if err != nil || grant.Holder != "a" {
				t.Errorf("%s: %+v, %v", c.Namespace, grant, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := s.Acquire(ctx, store.Request{Resource: "r", ID: "b", TTL: testTTL, Wait: 20 * time.Second}); err != nil {
				t.Errorf("a wait: %v", err)
			}
			if page, err := s.List(ctx, store.Query{}); err != nil || len(page.Items) != 1 {
				t.Errorf("listed %+v, %v", page, err)
			}
		})
	}
	wg.Wait()
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	primary := peer.StartRedis(t, peer.RedisConfig{})
	replica := primary.StartReplica(t, peer.RedisConfig{})
	sentinels := peer.StartSentinels(t, primary)
	addresses := sentinels.Addresses()
	opened, err := store.Open(t.Context(), fmt.Sprintf("redis+sentinel://%s/%s?addr=%s&addr=%s&max-ttl=%v&init=true",
		addresses[0], peer.SentinelName, addresses[1], addresses[2], short), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*Store)
	t.Cleanup(func() { _ = s.Close() })
	before := mustAcquire(t, s, "r", "a")
	replicated(t, s, replica, "r", "a")
	primary.Kill()
	grant, err := waitOut(t, s, store.Request{Resource: "r", ID: "b", Holder: "b", TTL: testTTL, Wait: time.Minute})
	if err != nil || grant.Token <= before.Token {
		t.Fatalf("after the failover: %+v, %v", grant, err)
	}
	if got := replica.Do("HGET", s.names.lease("r"), "id"); got != "b" {
		t.Errorf("the replica has %q", got)
	}
}

// A step of the server's clock cannot be prevented, but is reported.
func TestAStepOfTheClockIsLogged(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{40 * time.Second, -60 * time.Second} {
		clock := peer.NewClock(t)
		server := peer.StartRedis(t, peer.RedisConfig{Clock: clock})
		var log bytes.Buffer
		c := config(server.Address)
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		s := openWith(t, c)
		mustAcquire(t, s, "r", "a")
		clock.Step(step)
		_, _ = acquire(t, s, "r", "b")
		if !strings.Contains(log.String(), "the clock of Redis has stepped") {
			t.Errorf("after %v the log says %q", step, log.String())
		}
	}
}
