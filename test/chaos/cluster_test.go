//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/test/process"
)

// groups are of clients: each reaches the servers through gates of its own, so that a
// server can be out of reach for some and not for others.
var groups = []string{"east", "west"}

// A cluster is some servers and the ways to them.
type cluster struct {
	t       testing.TB
	binary  string
	network *network
	report  *report
	named   bool // for a test about one thing, which ends at the first thing that does not happen
	access  bool // there are rules who may do what

	clients []*client.Client // of named tests
	stalls  atomic.Int64     // pauses of this process that its holders noticed

	mu    sync.Mutex // guards what follows
	slots []*slot
	made  int // servers, which have numbers
}

// A slot is where clients find a server; which one that is can change.
type slot struct {
	server *server
	gates  map[string]string // by group: the address
}

// A clusterConfig says what a cluster is like.
type clusterConfig struct {
	servers int
	apart   bool // they are not one, and only pose as it
	named   bool
	access  bool   // there are rules who may do what, and one admin
	binary  string // what they run; empty: that of this tree
}

// tight are sizes so small that logs are cut and snapshots taken all the time.
var tight = []string{"--segment-size", "1MiB", "--snapshot-every", "1MiB", "--min-free", "8MiB", "--drain-timeout", "2s"}

// startCluster starts servers, and returns when each of them answers.
func startCluster(t testing.TB, r *report, config clusterConfig) *cluster {
	t.Helper()
	if config.binary == "" {
		config.binary = build(t)
	}
	c := &cluster{t: t, binary: config.binary, network: newNetwork(), report: r, named: config.named,
		access: config.access}
	t.Cleanup(c.network.close)
	for range config.servers {
		c.slots = append(c.slots, &slot{server: c.newServer(), gates: map[string]string{}})
	}
	for i := range c.slots {
		for _, group := range groups {
			c.openGate(i, group)
		}
	}
	if config.servers > 1 && !config.apart {
		c.begin()
	}
	r.Servers = config.servers
	for _, s := range c.servers() {
		c.start(s)
	}
	c.ready()
	return c
}

// openGate opens the gate of a slot for a group of clients.
func (c *cluster) openGate(i int, group string) {
	address, err := c.network.open(gate{to: c.party(i), who: always(group), target: func() string { return c.at(i).listen }})
	if err != nil {
		c.t.Fatal(err)
	}
	c.slots[i].gates[group] = "http://" + address
}

// newServer makes a server with a gate for the others.
func (c *cluster) newServer() *server {
	c.made++
	return newServer(c.t, fmt.Sprint("n", c.made), c.binary)
}

// begin tells all servers of each other.
func (c *cluster) begin() {
	var members []string
	for _, s := range c.servers() {
		members = append(members, s.name+"="+c.peerGate(s))
	}
	for _, s := range c.servers() {
		s.args = append(s.args, "--initial-cluster", strings.Join(members, ","))
	}
}

// peerGate opens the gate at which other servers reach one.
func (c *cluster) peerGate(s *server) string {
	address, err := c.network.open(gate{to: s.name, who: c.whoComes, target: func() string { return s.peer }})
	if err != nil {
		c.t.Fatal(err)
	}
	s.args = append(s.args, "--name", s.name, "--peer-listen", s.peer, "--peer-advertise", address)
	s.gate = address
	return address
}

// whoComes tells which server made a connection.
func (c *cluster) whoComes(conn net.Conn) string {
	pids := map[int]string{}
	for _, s := range c.servers() {
		if pid := s.pid(); pid != 0 {
			pids[pid] = s.name
		}
	}
	return processOf(conn, pids)
}

func (c *cluster) servers() (all []*server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slots {
		all = append(all, s.server)
	}
	return all
}

// at is the server that is in a slot now.
func (c *cluster) at(i int) *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slots[i].server
}

// put puts a server into a slot.
func (c *cluster) put(i int, s *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[i].server = s
}

// slotOf is where a server is.
func (c *cluster) slotOf(s *server) int {
	return slices.Index(c.servers(), s)
}

// addresses are where a group of clients finds the servers.
func (c *cluster) addresses(group string) (urls []string) {
	for _, s := range c.slots {
		urls = append(urls, s.gates[group])
	}
	return urls
}

// start starts a server.
func (c *cluster) start(s *server) {
	args := append(slices.Clone(tight), s.args...)
	if c.access {
		args = append(args, "--access")
	}
	if err := s.start(args); err != nil {
		c.report.violated(stuck, "%s cannot be started: %v", s.name, err)
	}
}

// direct asks a server without a gate between.
func (c *cluster) direct(s *server) *v1.Caller {
	config := v1.CallerConfig{Server: "http://" + s.listen, Timeout: answerWithin}
	if c.access {
		config.Token = func(context.Context) (string, error) { return c.secret(), nil }
	}
	caller, err := v1.NewCaller(config)
	if err != nil {
		panic(err) // the address is ours
	}
	return caller
}

// until waits for something that must come to be, and reports whether it did.
func (c *cluster) until(what string, is func() error) bool {
	end := time.Now().Add(giveUp)
	for {
		err := is()
		if err == nil {
			return true
		}
		if time.Now().After(end) {
			c.report.violated(stuck, "%s: %v", what, err)
			if c.named {
				c.t.FailNow()
			}
			return false
		}
		time.Sleep(20 * time.Millisecond) // a server answers at once
	}
}

// ready waits until every server is, and starts those that do not run.
func (c *cluster) ready() bool {
	ok := true
	for _, s := range c.servers() {
		caller, deaths := c.direct(s), 0
		ok = c.until(s.name+" gets ready", func() error {
			if !s.runs() && deaths < 3 {
				if s.died() {
					deaths += c.mourn(s)
				}
				c.start(s)
			}
			if deaths == 3 {
				return nil // that has been told
			}
			_, err := caller.Ready(context.Background())
			return err
		}) && deaths == 0 && ok
		caller.CloseIdle()
	}
	if !ok && c.named {
		c.t.FailNow()
	}
	return ok
}

// mourn notes a server that ended without our doing, and returns 1 if that is a mistake
// of its own. A machine on which a write takes five seconds is none.
func (c *cluster) mourn(s *server) int {
	if s.said.has("a write has not returned for") {
		c.report.count("servers that ended because this machine was slow", 1)
		return 0
	}
	c.report.violated(died, "%s: %s", s.name, s.said)
	return 1
}

// heal makes everything well: network, disks, and processes.
func (c *cluster) heal() bool {
	c.network.heal()
	for _, s := range c.servers() {
		s.calm()
		s.signal(cont)
	}
	return c.ready()
}

// watchDeaths notes servers that end without our doing, until ctx ends.
func (c *cluster) watchDeaths(ctx context.Context) {
	told := map[*process.Process]bool{}
	for ctx.Err() == nil {
		for _, s := range c.servers() {
			if p := s.current(); s.died() && !told[p] {
				told[p] = true
				c.mourn(s)
			}
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// party is what the network calls a slot when clients come.
func (c *cluster) party(i int) string { return fmt.Sprint("slot", i) }

// leader asks around who leads; nil: nobody knows.
func (c *cluster) leader() *server {
	votes := map[string]int{}
	for _, s := range c.servers() {
		if !s.runs() {
			continue
		}
		caller := c.direct(s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if known, err := caller.Cluster(ctx); err == nil {
			votes[known.Leader]++
		}
		cancel()
		caller.CloseIdle()
	}
	all := c.servers()
	for _, s := range all {
		if votes[s.name] > len(all)/2 {
			return s
		}
	}
	return nil
}

// someLeader waits until somebody leads.
func (c *cluster) someLeader() *server {
	var s *server
	c.until("somebody leads", func() error {
		if s = c.leader(); s == nil {
			return errors.New("nobody does")
		}
		return nil
	})
	return s
}

// leadMoves waits until another one leads.
func (c *cluster) leadMoves(from *server) {
	c.until("another one leads", func() error {
		if s := c.leader(); s == nil || s == from {
			return errors.New("none does")
		}
		return nil
	})
}

// follower is a server that does not lead.
func (c *cluster) follower() *server {
	leader := c.someLeader()
	all := c.servers()
	return all[slices.IndexFunc(all, func(s *server) bool { return s != leader })]
}

// ask has any server that can do something for the cluster.
func (c *cluster) ask(what string, do func(context.Context, *v1.Caller) error) bool {
	all, n := c.servers(), 0
	return c.until(what, func() error {
		caller := c.direct(all[n%len(all)])
		defer caller.CloseIdle()
		n++
		return do(context.Background(), caller)
	})
}

// agree wants the same state of all servers.
func (c *cluster) agree() {
	if len(c.servers()) == 1 {
		return
	}
	c.ask("all servers say what they have", func(ctx context.Context, caller *v1.Caller) error {
		sums, err := caller.CheckCluster(ctx)
		if err != nil {
			return err
		}
		for _, s := range sums.Items {
			if s.Hash == "" {
				return fmt.Errorf("%s does not: %s", s.Name, s.Error)
			}
		}
		if len(sums.Items) != len(c.servers()) {
			return fmt.Errorf("there are %d", len(sums.Items))
		}
		if !sums.Same {
			c.report.violated(disagree, "at %d: %v", sums.Index, sums.Items)
		}
		c.report.count("times all servers had the same state", 1)
		return nil
	})
}

// replace removes the server in a slot for good, and has a new one take its place.
func (c *cluster) replace(i int) {
	old := c.at(i)
	old.doom()
	c.ask(old.name+" is removed", func(ctx context.Context, caller *v1.Caller) error {
		err := caller.RemoveServer(ctx, old.name)
		if errors.Is(err, leasehold.ErrNotFound) {
			return nil // an earlier try did it
		}
		return err
	})
	old.kill()
	c.join(i)
	if err := old.dispose(); err != nil {
		c.report.violated(stuck, "%s: %v", old.name, err)
	}
}

// join has a new server join, in a slot.
func (c *cluster) join(i int) {
	s := c.joiner(c.at(i))
	c.put(i, s)
	c.start(s)
}

// grow has one more server join.
func (c *cluster) grow() {
	s := c.joiner(nil)
	c.mu.Lock()
	i := len(c.slots)
	c.slots = append(c.slots, &slot{server: s, gates: map[string]string{}})
	c.mu.Unlock()
	for _, group := range groups {
		c.openGate(i, group)
	}
	c.start(s)
}

// joiner makes a server that joins all but one.
func (c *cluster) joiner(but *server) *server {
	var others []string
	for _, s := range c.servers() {
		if s != but {
			others = append(others, s.gate)
		}
	}
	s := c.newServer()
	c.peerGate(s)
	s.args = append(s.args, "--join", strings.Join(others, ","))
	c.ask(s.name+" gets a place", func(ctx context.Context, caller *v1.Caller) error {
		_, err := caller.AddServer(ctx, v1.ServerRequest{Name: s.name, Peer: s.gate})
		return err
	})
	return s
}

// allVote waits until every server is a member with a vote.
func (c *cluster) allVote() bool {
	return c.ask("every server has a vote", func(ctx context.Context, caller *v1.Caller) error {
		known, err := caller.Cluster(ctx)
		if err != nil {
			return err
		}
		votes := map[string]bool{}
		for _, s := range known.Servers {
			votes[s.Name] = s.Voter
		}
		for _, s := range c.servers() {
			if !votes[s.name] {
				return fmt.Errorf("%s has none: %+v", s.name, known.Servers)
			}
		}
		if len(known.Servers) != len(c.servers()) {
			return fmt.Errorf("there are others: %+v", known.Servers)
		}
		return nil
	})
}
