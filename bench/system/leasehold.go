//go:build linux

package system

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/bench/stage"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/metric"
	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/server"
)

func startLeasehold(on *stage.Stage, config Config) *Server {
	l := peer.StartLeasehold(on, peer.LeaseholdConfig{
		Binary: config.Binary, Members: config.Nodes, Etcd: true, Consul: true,
	})
	s := &Server{
		Version: versionOf(config.Binary, "version"), Setup: "each answer is durable",
		Addresses: l.URLs(), Leader: func() *peer.Server { return &l.Leader().Server },
	}
	for _, m := range l.Members {
		s.Nodes = append(s.Nodes, &m.Server)
		s.etcd, s.consul = append(s.etcd, m.EtcdURL), append(s.consul, m.ConsulURL)
	}
	s.Count = func(ctx context.Context) (int, error) {
		n, err := read(ctx, s.Addresses[0], metric.Leases.Name)
		return int(n), err
	}
	s.Allocs = func(ctx context.Context) (sum float64, err error) {
		for _, url := range s.Addresses {
			n, err := read(ctx, url, "go_memstats_mallocs_total")
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
	s.Speaks = func() string { return wires(s.Nodes[0].Address) }
	return s
}

// versionOf runs a program that prints its version, and returns the first line of that.
func versionOf(program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "unknown version"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// read reads one number of a server.
func read(ctx context.Context, url, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("%s has no metric %s", url, name), lines.Err())
}

// wires says what a server speaks beside HTTP.
func wires(address string) string {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	answer := make([]byte, 5)
	if _, err = c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err == nil {
		_, err = c.Read(answer)
	}
	if err == nil && string(answer) == "+PONG" {
		return "HTTP and RESP"
	}
	return "HTTP"
}

type leaseholdClient struct {
	*client.Client
	id string
	n  int

	// The store is for what has no hold. It has connections of its own, and is opened once it is needed.
	open   sync.Once
	over   v1.CallerConfig
	opened *server.Store
	failed error
}

func dialLeasehold(ctx context.Context, s *Server, d Dialing) (Client, error) {
	return newLeasehold(ctx, s, d, v1.CallerConfig{Wire: v1.WireRESP})
}

// dialLeaseholdHTTP makes ours use HTTP. Over HTTP/1.1 its watch takes a connection, and an acquire that waits
// another; the third is for the rest.
func dialLeaseholdHTTP(ctx context.Context, s *Server, d Dialing) (Client, error) {
	over := v1.NewClient(nil)
	if transport, ok := over.Transport.(*http.Transport); ok && d.Users == 0 {
		transport.MaxConnsPerHost = 3
	}
	return newLeasehold(ctx, s, d, v1.CallerConfig{Wire: v1.WireHTTP, Client: over})
}

// newLeasehold names the wire: a client that chooses would fall back to HTTP, and the figures would not say so.
func newLeasehold(ctx context.Context, s *Server, d Dialing, over v1.CallerConfig) (Client, error) {
	c, err := client.Dial(ctx, client.Config{
		Servers: s.first(d), Namespace: "bench", Holder: fmt.Sprint("bench/", d.Index), TTL: d.TTL,
		Wire: over.Wire, HTTP: over.Client,
	})
	if err != nil {
		return nil, err
	}
	over.Servers, over.Namespace = s.first(d), "bench"
	return &leaseholdClient{Client: c, over: over, id: strings.ToLower(rand.Text()[:10])}, nil
}

func (c *leaseholdClient) store(ctx context.Context) (*server.Store, error) {
	c.open.Do(func() { c.opened, c.failed = server.Open(ctx, c.over) })
	return c.opened, c.failed
}

func (c *leaseholdClient) Acquire(ctx context.Context, r Request) (Hold, error) {
	options := []client.Option{client.TTL(r.TTL)}
	if r.ByHand {
		options = append(options, client.Renew(client.RenewByHand()))
	}
	acquire := c.TryAcquire
	if r.Wait {
		acquire = c.Client.Acquire
	}
	h, err := acquire(ctx, r.Name, options...)
	if err != nil {
		return nil, heldIf(errors.Is(err, leasehold.ErrHeld), err)
	}
	return h, nil
}

// heldIf tells others' holds from failures.
func heldIf(held bool, err error) error {
	if held {
		return ErrHeld
	}
	return err
}

func (c *leaseholdClient) Close() {
	_ = c.Client.Close() // the servers are stopped next
	c.open.Do(func() {})
	if c.opened != nil {
		_ = c.opened.Close()
	}
}

// leaseholdGroup is a session. Any of its holds renews it.
type leaseholdGroup struct {
	*client.Session
	hold *client.Hold
}

func (g leaseholdGroup) Renew(ctx context.Context) error { return g.hold.Renew(ctx) }

func (c *leaseholdClient) Group(ctx context.Context, ttl time.Duration, names []string) (Group, error) {
	s, err := c.OpenSession(ctx, client.TTL(ttl))
	if err != nil {
		return nil, err
	}
	var last *client.Hold
	for len(names) > 0 {
		n := min(len(names), leasehold.MaxTogether)
		holds, err := c.AcquireAll(ctx, client.All(names[:n]...), client.In(s))
		if err != nil {
			return nil, err
		}
		last, names = holds[0], names[n:]
	}
	return leaseholdGroup{s, last}, nil
}

func (c *leaseholdClient) Fill(ctx context.Context, prefix string, from, to int, until time.Time) error {
	below, err := c.store(ctx)
	if err != nil {
		return err
	}
	for from < to && ctx.Err() == nil {
		r := store.Request{Holder: "bench", TTL: time.Until(until)}
		for i := from; i < min(to, from+leasehold.MaxTogether); i++ {
			c.n++
			ref := store.Ref{Resource: fmt.Sprint(prefix, i), ID: fmt.Sprint(c.id, "/", c.n)}
			if r.Resource == "" {
				r.Resource, r.ID = ref.Resource, ref.ID
			} else {
				r.Also = append(r.Also, store.Item{Ref: ref})
			}
		}
		if _, err := below.Acquire(ctx, r); err != nil {
			return err
		}
		from += 1 + len(r.Also)
	}
	return ctx.Err()
}

func (c *leaseholdClient) Keep(ctx context.Context, n int, ttl time.Duration) (func() int, error) {
	var all []*client.Session
	for range n {
		s, err := c.OpenSession(ctx, client.TTL(ttl))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return func() (lost int) {
		for _, s := range all {
			if !s.Valid() {
				lost++
			}
		}
		return lost
	}, nil
}

func (c *leaseholdClient) Watch(ctx context.Context, name string, began, seen func()) error {
	below, err := c.store(ctx)
	if err != nil {
		return err
	}
	for e, err := range below.Watch(ctx, store.WatchQuery{Prefix: name, Started: began}) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case e.Kind == leasehold.Acquired:
			seen()
		}
	}
	return nil
}

func (c *leaseholdClient) Publish(ctx context.Context, name string) error {
	h, err := c.TryAcquire(ctx, name)
	if err == nil {
		err = h.Release(ctx)
	}
	return err
}
