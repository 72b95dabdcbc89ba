package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// ALPN is the protocol's name in a TLS handshake.
const ALPN = "leasehold-resp"

// Matches reports whether a connection that begins with these bytes speaks RESP. No method of
// HTTP begins like that.
func Matches(first []byte) bool { return len(first) > 0 && first[0] == '*' }

// A Server serves connections.
type Server struct {
	config Config
	table  table
	rounds sync.Pool

	constants sync.Map // long answers that are always the same, by name and version of the protocol
	lastID    atomic.Int64

	mu    sync.Mutex // guards what follows
	conns map[*Conn]bool
	guard *time.Timer // while there are connections

	loop   *loop // while connections are in it
	inLoop int

	count atomic.Int64 // of conns
	tick  atomic.Int64 // counts up while there are connections: a clock that costs nothing to read

	commands, protocolErrors, slow atomic.Int64
}

// New returns a server.
func New(c Config) *Server {
	c.Pipeline = cmp.Or(c.Pipeline, 1024)
	c.Queue = cmp.Or(c.Queue, 1<<20)
	c.SendTime = cmp.Or(c.SendTime, 20*time.Second)
	c.TakeTime = cmp.Or(c.TakeTime, 30*time.Second)
	c.IdleTime = cmp.Or(c.IdleTime, 2*time.Minute)
	c.Linger = cmp.Or(c.Linger, time.Second)
	c.Crowd = cmp.Or(c.Crowd, 8)
	c.Name = cmp.Or(c.Name, "leasehold")
	c.Version = cmp.Or(c.Version, "0.0.0")
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Fail == nil {
		c.Fail = fail
	}
	s := &Server{config: c, table: newTable(c.Commands), conns: map[*Conn]bool{}}
	s.rounds.New = func() any { return s.newRound() }
	return s
}

func fail(_ *Conn, w *resp.Writer, err error) {
	var f *resp.Failure
	if errors.As(err, &f) {
		w.Error(f.Code, f.Text)
		return
	}
	w.Error("ERR", err.Error())
}

// Serve serves a connection until it ends, or until the server drains, which the context says.
// The caller closes it.
func (s *Server) Serve(ctx context.Context, nc net.Conn) {
	c := s.open(ctx, nc)
	defer s.close(c)
	if s.config.Open != nil {
		if err := s.config.Open(c); err != nil {
			s.config.Fail(c, &c.out, err)
			c.flush()
			return
		}
	}
	if s.config.Closed != nil {
		defer s.config.Closed(c)
	}
	c.serve()
}

// Refuse says why a connection is not served: the server starts, stops or has no room. LOADING
// is what clients of Redis know to mean that nothing was done, and that they can try again.
func (s *Server) Refuse(nc net.Conn, err error) {
	w := resp.NewWriter(2, nil)
	w.Error(loading, err.Error())
	_, _ = nc.Write(w.Bytes())
}

const loading = "LOADING"

func (s *Server) open(ctx context.Context, nc net.Conn) *Conn {
	c := &Conn{server: s, net: nc, stopping: ctx, id: s.lastID.Add(1)}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.in.Limits = s.config.Limits
	c.in.Tight = true
	c.out.Version = 2
	c.written.L = &c.mu
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) == 0 {
		s.guard = time.AfterFunc(guardTime, s.look)
	}
	s.conns[c] = true
	s.count.Store(int64(len(s.conns)))
	c.asked.Store(s.tick.Load() + 1)
	c.heard.Store(s.tick.Load() + 1)
	return c
}

func (s *Server) close(c *Conn) {
	c.end()
	c.giveBack()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.count.Store(int64(len(s.conns)))
	if len(s.conns) == 0 {
		s.guard.Stop()
	}
}

// crowded reports whether it is worth a connection's while to enter the loop, and deserted
// whether it is to leave it.
func (s *Server) crowded() bool  { return s.config.Crowd > 0 && s.count.Load() >= int64(s.config.Crowd) }
func (s *Server) deserted() bool { return s.count.Load() <= int64(s.config.Crowd/2) }

// ahead is how many bytes are taken of what comes while a command runs.
func (s *Server) ahead() int { return 64 << 10 }
