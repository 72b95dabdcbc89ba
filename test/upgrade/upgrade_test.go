//go:build linux

// Package upgrade runs servers of the newest release beside those of this tree, as they are
// while a cluster is upgraded.
package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
)

const (
	leases = 30 // by plain HTTP, which nobody renews
	holds  = 20 // by the client library of this tree

	// The newest level that the release knows, and that this tree knows.
	oldLevel, newLevel = 1, 2
)

// A cluster is three servers, and what was granted by them.
type cluster struct {
	t         *testing.T
	old, tree string // binaries
	servers   []*server

	tokens map[string]uint64 // of leases that last for the whole test, by id and resource
	holds  []*client.Hold
	churn  churn
}

// startCluster starts three servers of the release, has them grant leases, and goes on
// granting one more all the time.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, tokens: map[string]uint64{}}
	c.old, c.tree = build(t)
	var members []string
	for _, name := range []string{"n1", "n2", "n3"} {
		s := newServer(t, name)
		c.servers = append(c.servers, s)
		members = append(members, name+"="+s.peer)
	}
	for _, s := range c.servers {
		s.args = []string{"--name", s.name, "--peer-listen", s.peer, "--peer-advertise", s.peer,
			"--initial-cluster", strings.Join(members, ",")}
		s.start(c.old)
	}
	for _, s := range c.servers {
		s.ready()
	}
	c.isAt(oldLevel)
	c.grant()
	c.churn.start(c)
	return c
}

// grant has leases granted that must not be lost from here on.
func (c *cluster) grant() {
	c.t.Helper()
	for n := range leases {
		id := fmt.Sprint("plain/", n)
		var lease struct{ Token uint64 }
		c.granted(c.servers[n%3], id, &lease)
		c.tokens[id] = lease.Token
	}
	d, err := client.Dial(c.t.Context(), client.Config{Servers: urls(c.servers), Holder: "library", TTL: 30 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = d.Close() })
	for n := range holds {
		h, err := d.Acquire(c.t.Context(), fmt.Sprint("library/", n))
		if err != nil {
			c.t.Fatal(err)
		}
		c.holds = append(c.holds, h)
	}
}

// granted asks a server for a lease, as a program without a library does.
func (c *cluster) granted(s *server, id string, lease any) {
	c.t.Helper()
	until(c.t, id+" is granted", func() error {
		status, answer := post(c.t, s, "/v1/acquire", map[string]any{"resource": id, "id": id, "holder": "plain", "ttl": "1h"})
		if status != http.StatusOK {
			return fmt.Errorf("%d: %s", status, answer)
		}
		return json.Unmarshal(answer, lease)
	})
}

// post sends a body that no code of this tree has made.
func post(t *testing.T, s *server, path string, body map[string]any) (int, []byte) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(s.url()+path, "application/json", bytes.NewReader(b))
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return response.StatusCode, answer
}

// A churn acquires and releases one resource, at one server after the other, and remembers
// the largest token.
type churn struct {
	stop  context.CancelFunc
	works sync.WaitGroup

	mu     sync.Mutex // guards what follows
	token  uint64
	grants int
}

func (w *churn) start(c *cluster) {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = sync.OnceFunc(func() {
		stop()
		w.works.Wait()
	})
	c.t.Cleanup(w.stop)
	var callers []*v1.Caller
	for _, s := range c.servers {
		callers = append(callers, s.caller())
	}
	w.works.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			w.once(ctx, c.t, callers[n%len(callers)], fmt.Sprint("churn", n))
		}
	})
}

// once is one grant; a server that is away is no mistake, a token that is not larger is one.
func (w *churn) once(ctx context.Context, t *testing.T, caller *v1.Caller, id string) {
	lease, err := caller.Acquire(ctx, v1.AcquireRequest{Resource: "churn", Holder: "churn", ID: id, TTL: ttl(time.Second)})
	switch {
	case err == nil:
	case errors.Is(err, leasehold.ErrUnavailable), errors.Is(err, leasehold.ErrUndecided), errors.Is(err, leasehold.ErrHeld),
		ctx.Err() != nil:
		return
	default:
		t.Errorf("VIOLATION: an acquire is refused: %v", err)
		return
	}
	w.mu.Lock()
	if lease.Token <= w.token {
		t.Errorf("VIOLATION: token %d was granted after %d", lease.Token, w.token)
	}
	w.token = lease.Token
	w.grants++
	w.mu.Unlock()
	_ = caller.Release(ctx, v1.ReleaseRequest{ID: id}) // else it ends within a second
}

// granted returns how many grants there were.
func (w *churn) granted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grants
}

func ttl(d time.Duration) v1.TTL { return v1.TTL{Duration: v1.Duration(d)} }

func level(n int) string { return fmt.Sprint("level ", n) }

// formatAt is the format of a data directory whose state is at a level.
func formatAt(level int) int { return level + 3 }

// isAt wants every server that runs to say that the cluster is at a level.
func (c *cluster) isAt(want uint64) {
	c.t.Helper()
	for _, s := range c.servers {
		if !s.runs() {
			continue
		}
		until(c.t, s.name+" says the level", func() error {
			level, err := s.level()
			if err == nil && level != want {
				c.t.Fatalf("%s says level %d, and it should be %d", s.name, level, want)
			}
			return err
		})
	}
}

// nothingIsLost asks each server for everything that was granted, wants the servers to have
// the same state, and something new to be granted.
func (c *cluster) nothingIsLost() {
	c.t.Helper()
	held := map[string]uint64{}
	for id, token := range c.tokens {
		held[id] = token
	}
	for _, h := range c.holds {
		held[h.Resource()] = uint64(h.Token())
		if !h.Valid() {
			c.t.Errorf("VIOLATION: %s is lost: %v", h.Resource(), h.Err())
		}
	}
	for _, s := range c.servers {
		c.holdsAll(s, held)
	}
	c.agree()
	grants := c.churn.granted()
	until(c.t, "something new is granted", func() error {
		if c.churn.granted() == grants {
			return errors.New("nothing is")
		}
		return nil
	})
}

func (c *cluster) holdsAll(s *server, tokens map[string]uint64) {
	c.t.Helper()
	seen := map[string]uint64{}
	until(c.t, s.name+" lists what is held", func() error {
		clear(seen)
		for r, err := range s.caller().Resources(c.t.Context(), v1.ResourceQuery{Limit: v1.MaxLimit}) {
			if err != nil {
				return err
			}
			if len(r.Holders) > 1 {
				c.t.Errorf("VIOLATION: %s has %d holders", r.Resource, len(r.Holders))
			}
			if len(r.Holders) > 0 {
				seen[r.Resource] = r.Holders[0].Token
			}
		}
		return nil
	})
	for id, token := range tokens {
		if seen[id] != token {
			c.t.Errorf("VIOLATION: %s was granted with token %d, and %s has %d", id, token, s.name, seen[id])
		}
	}
}

// agree wants the same state of all servers at one place of the log, whatever they run.
func (c *cluster) agree() {
	c.t.Helper()
	for _, s := range c.servers {
		until(c.t, "all servers sum up what they know", func() error {
			sums, err := s.caller().CheckCluster(c.t.Context())
			if err != nil {
				return err
			}
			for _, each := range sums.Items {
				if each.Hash == "" {
					return fmt.Errorf("%s does not: %s", each.Name, each.Error)
				}
			}
			if !sums.Same || len(sums.Items) != len(c.servers) {
				c.t.Errorf("VIOLATION: the servers differ at %d: %+v", sums.Index, sums.Items)
			}
			return nil
		})
	}
}

// An ending is how a server is ended before it is started with the other version.
type ending struct {
	signal syscall.Signal
	pause  bool // another server is stopped and goes on meanwhile
}

// swap ends a server, has both versions replay its data, and starts one of them on them.
func (c *cluster) swap(s *server, to string, how ending) {
	c.t.Helper()
	code := s.end(how.signal)
	if how.signal == syscall.SIGTERM && code != 0 {
		c.t.Errorf("%s ends with %d:\n%s", s.name, code, s.said)
	}
	sameReplay(c.t, c.old, c.tree, s.data)
	s.start(to)
	if how.pause {
		other := c.servers[(slices.Index(c.servers, s)+1)%len(c.servers)]
		other.process.Signal(syscall.SIGSTOP)
		time.Sleep(1500 * time.Millisecond) // longer than an election
		other.process.Signal(syscall.SIGCONT)
	}
	s.ready()
}

// swapAll swaps one server after the other, in any order, and looks in between.
func (c *cluster) swapAll(to string) {
	c.t.Helper()
	endings := []ending{{signal: syscall.SIGTERM}, {signal: syscall.SIGKILL}, {signal: syscall.SIGTERM, pause: true}}
	for n, i := range rand.Perm(len(c.servers)) {
		c.t.Logf("%s to %s, by %+v", c.servers[i].name, filepath.Base(to), endings[n])
		c.swap(c.servers[i], to, endings[n])
		c.isAt(oldLevel)
		c.nothingIsLost()
		if c.mixed() {
			c.upgradeIsRefused()
		}
	}
}

// mixed reports whether servers of both versions run.
func (c *cluster) mixed() bool {
	return slices.ContainsFunc(c.servers, func(s *server) bool { return s.binary != c.servers[0].binary })
}

// upgradeIsRefused wants the level to stay while servers of both versions run.
func (c *cluster) upgradeIsRefused() {
	c.t.Helper()
	for _, binary := range []string{c.old, c.tree} {
		out, ok := run(c.t, binary, "cluster", "upgrade", "--server", strings.Join(urls(c.servers), ","))
		if ok || !strings.Contains(out, level(newLevel)) && !strings.Contains(out, fmt.Sprint("raised to ", newLevel)) {
			c.t.Errorf("cluster upgrade of two versions should be refused because of level %d: %s", newLevel, out)
		}
	}
	c.isAt(oldLevel)
}

// Servers are upgraded to this tree one after the other, go back, and are upgraded again:
// nothing is lost, whatever the servers run, and the level stays until it is raised.
func TestUpgradeAndBack(t *testing.T) {
	c := startCluster(t)
	c.swapAll(c.tree)

	c.swap(c.servers[0], c.old, ending{signal: syscall.SIGTERM})
	c.nothingIsLost()
	c.swapAll(c.old)

	c.swapAll(c.tree)
	late := c.servers[2]
	late.end(syscall.SIGKILL)
	c.raise()
	c.oldIsRefused(late)
	late.start(c.tree)
	late.ready()
	c.isAt(newLevel)
	c.nothingIsLost()
	c.oldRefusesTheData(late)
	c.oldCannotJoin()
	c.nothingIsLost()
	c.churn.stop()
	t.Logf("%d grants meanwhile", c.churn.granted())
}

// raise raises the level while one server is away, which has said that it knows it.
func (c *cluster) raise() {
	c.t.Helper()
	status, _ := run(c.t, c.tree, "cluster", "status", "--server", c.servers[0].url())
	if !strings.Contains(status, "cluster upgrade") {
		c.t.Errorf("cluster status does not say that the level can be raised:\n%s", status)
	}
	out, ok := run(c.t, c.tree, "cluster", "upgrade", "--server", strings.Join(urls(c.servers[:2]), ","))
	if !ok || !strings.Contains(out, level(newLevel)) {
		c.t.Fatalf("cluster upgrade: %s", out)
	}
	c.isAt(newLevel)
}

// oldIsRefused starts the release on data from before the raise: the others refuse it.
func (c *cluster) oldIsRefused(s *server) {
	c.t.Helper()
	if is := format(c.t, s.data); is != formatAt(oldLevel) {
		c.t.Errorf("the data of %s have format %d before the raise came to them", s.name, is)
	}
	s.start(c.old)
	s.says("the cluster is at " + level(newLevel))
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	if _, err := s.caller().Ready(ctx); err == nil {
		c.t.Errorf("%s is ready, and should be refused by the others:\n%s", s.name, s.said)
	}
	s.end(syscall.SIGKILL)
	sameReplay(c.t, c.old, c.tree, s.data)
}

// oldRefusesTheData starts the release on data from after the raise.
func (c *cluster) oldRefusesTheData(s *server) {
	c.t.Helper()
	s.end(syscall.SIGTERM)
	if is := format(c.t, s.data); is != formatAt(newLevel) {
		c.t.Errorf("the data of %s have format %d after the raise", s.name, is)
	}
	why := fmt.Sprintf("has format %d, and this version knows formats up to %d: use the newer version",
		formatAt(newLevel), formatAt(oldLevel))
	s.start(c.old)
	s.endsWith(why)
	if out, ok := run(c.t, c.old, "check", "--data", s.data); ok || !strings.Contains(out, why) {
		c.t.Errorf("the release checks data of level %d: %s", newLevel, out)
	}
	s.start(c.tree)
	s.ready()
}

// oldCannotJoin has a server of the release come to a place that was prepared for it.
func (c *cluster) oldCannotJoin() {
	c.t.Helper()
	s := newServer(c.t, "n4")
	out, ok := run(c.t, c.tree, "cluster", "add", "n4", s.peer, "--server", strings.Join(urls(c.servers), ","))
	if !ok {
		c.t.Fatalf("cluster add: %s", out)
	}
	var peers []string
	for _, other := range c.servers {
		peers = append(peers, other.peer)
	}
	s.args = []string{"--name", "n4", "--peer-listen", s.peer, "--peer-advertise", s.peer, "--join", strings.Join(peers, ",")}
	s.start(c.old)
	s.says("the cluster is at " + level(newLevel))
	if s.runs() {
		s.end(syscall.SIGKILL)
	}
	if out, ok := run(c.t, c.tree, "cluster", "remove", "n4", "--yes", "--server", strings.Join(urls(c.servers), ",")); !ok {
		c.t.Fatalf("cluster remove: %s", out)
	}
}
