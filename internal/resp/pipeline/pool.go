package pipeline

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// A Lane is what a connection is for. Commands of one lane share a connection, on which replies come in order: so what
// must not be late never travels behind what may be long.
type Lane int

// The lanes.
const (
	Commands Lane = iota // also those that wait: the server pushes their grants
	Renewals
	Reads // and values, which may be large
	lanes
)

// PoolConfig says how a server is reached.
type PoolConfig struct {
	Host string // host:port
	TLS  *tls.Config
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Greeting returns the first commands of a connection under a token. Greeted takes the replies in turn.
	Greeting func(token string) []byte
	Greeted  []func(v *resp.Value) error

	Protocol string // by ALPN
	Patience func(l Lane) Patience
	Idle     time.Duration // after which connections without calls are closed
	Forced   bool          // it speaks RESP, whatever it seems
}

const (
	// The first is far below the default TTL of 30 s, so that a server that is down leaves time for others.
	connectTimeout = 5 * time.Second
	greetTimeout   = 3 * time.Second

	// lookAgain is after which time a server that did not speak RESP is tried again: it may have been
	// upgraded. One that said nothing may only have been busy: it is tried again sooner at first.
	lookAgain     = time.Minute
	lookAgainSoon = 10 * time.Second

	maxTokens = 4 // whose connections are kept
)

// A Pool has the connections to one server, and knows whether it speaks RESP. Its methods may be called from any
// goroutine.
type Pool struct {
	config  PoolConfig
	current atomic.Pointer[set] // that was used last

	mu      sync.Mutex // guards what follows
	sets    []*set     // one for each token, those that were used last first
	known   bool       // the server has spoken RESP
	other   bool       // it does not speak RESP
	again   time.Time  // when to look again, if it does not
	pause   time.Duration
	looking bool
}

// NewPool returns a pool without connections.
func NewPool(config PoolConfig) *Pool { return &Pool{config: config} }

// set is the connections under one token. Each is made when it is first needed.
type set struct {
	pool  *Pool
	token string
	open  [lanes]atomic.Pointer[Conn]

	mu      sync.Mutex // guards what follows
	making  [lanes]*making
	retired bool
}

// making is a connection that is being made. Callers that need it wait for it, each as long as it wants.
type making struct {
	done chan struct{} // closed at the end
	conn *Conn
	err  error
}

// Get returns the connection of a lane under a token, and makes it if there is none. The error is ErrNotRESP if the
// server is to be asked in another way, a *resp.Failure if it refused the greeting, or one of the network. Nothing but
// a greeting was sent then.
func (p *Pool) Get(ctx context.Context, token string, l Lane) (*Conn, error) {
	s := p.setOf(token)
	if s == nil {
		return nil, ErrNotRESP
	}
	if c := s.open[l].Load(); c != nil && c.Usable() {
		return c, nil
	}
	s.mu.Lock()
	m := s.making[l]
	if m == nil {
		if c := s.open[l].Load(); c != nil && c.Usable() { // somebody made it meanwhile
			s.mu.Unlock()
			return c, nil
		}
		m = &making{done: make(chan struct{})}
		s.making[l] = m
		go s.make(l, m)
	}
	s.mu.Unlock()
	select {
	case <-m.done:
		return m.conn, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// setOf returns the connections under a token; nil if the server does not speak RESP. That is looked at again after a
// while, beside the requests that go on in another way.
func (p *Pool) setOf(token string) *set {
	if s := p.current.Load(); s != nil && s.token == token {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.other {
		if time.Now().After(p.again) && !p.looking {
			p.looking = true
			go p.look(token)
		}
		return nil
	}
	var found *set
	others := make([]*set, 0, maxTokens)
	for _, s := range p.sets {
		switch {
		case s.token == token:
			found = s
		case len(others) == maxTokens-1:
			s.retire()
		default:
			others = append(others, s)
		}
	}
	if found == nil {
		found = &set{pool: p, token: token}
	}
	p.sets = append([]*set{found}, others...)
	p.current.Store(found)
	return found
}

// look tries RESP at a server that did not speak it.
func (p *Pool) look(token string) {
	if c, err := p.connect(token); err == nil {
		c.Retire()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looking = false
}

// Retire makes later calls use new connections. Those under way go on.
func (p *Pool) Retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retireLocked()
}

// RetireSilent retires the connections on which nothing has come since a moment. One on which nothing is due either is
// kept if another was heard: then the server can be reached.
func (p *Pool) RetireSilent(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var silent []*Conn
	reached := false
	for _, s := range p.sets {
		s.each(func(_ Lane, c *Conn) {
			if c.heardSince(since) {
				reached = true
			} else {
				silent = append(silent, c)
			}
		})
	}
	for _, c := range silent {
		if !reached || c.busy() {
			c.Retire()
		}
	}
}

func (p *Pool) retireLocked() {
	p.current.Store(nil)
	for _, s := range p.sets {
		s.retire()
	}
	p.sets = nil
}

// PatienceChanged tells all connections of a new patience.
func (p *Pool) PatienceChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sets {
		s.each(func(l Lane, c *Conn) { c.SetPatience(p.config.Patience(l)) })
	}
}

// make makes a connection, under no caller's context: others wait for it too.
func (s *set) make(l Lane, m *making) {
	m.conn, m.err = s.pool.connect(s.token)
	s.mu.Lock()
	s.making[l] = nil
	if m.err == nil {
		m.conn.SetPatience(s.pool.config.Patience(l))
		s.open[l].Store(m.conn)
		if s.retired {
			defer m.conn.Retire() // once those who wait for it know
		}
	}
	s.mu.Unlock()
	close(m.done)
}

// retire closes the connections once nobody waits for a reply.
func (s *set) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.each(func(_ Lane, c *Conn) { c.Retire() })
}

func (s *set) each(do func(l Lane, c *Conn)) {
	for i := range s.open {
		if c := s.open[i].Load(); c != nil {
			do(Lane(i), c)
		}
	}
}

// connect makes a connection. Only the greeting is sent on it: until it is answered nobody knows whether the other
// end speaks RESP, and a command must not be sent to one that does not.
func (p *Pool) connect(token string) (*Conn, error) {
	c, silent, err := p.greet(token)
	p.mu.Lock()
	defer p.mu.Unlock()
	after := lookAgain
	switch {
	case err == nil:
		p.known, p.other, p.pause = true, false, 0
		return c, nil
	case p.config.Forced:
		return nil, err
	case silent && !p.known:
		after = min(max(lookAgainSoon, 2*p.pause), lookAgain) // it is stuck, or something before it waits for HTTP
	case !errors.Is(err, ErrNotRESP):
		return nil, err
	}
	p.other, p.again, p.pause = true, time.Now().Add(after), after
	p.retireLocked()
	return nil, ErrNotRESP
}

// greet returns a connection that was greeted. It reports whether the other end took the connection and said nothing.
func (p *Pool) greet(token string) (_ *Conn, silent bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*connectTimeout)
	defer cancel()
	conn, err := p.config.Dial(ctx, "tcp", p.config.Host)
	if err != nil {
		return nil, false, err
	}
	if p.config.TLS != nil {
		secure := tls.Client(conn, p.config.TLS)
		if err := p.shakeHands(secure); err != nil {
			_ = conn.Close()
			return nil, false, err
		}
		conn = secure
	}
	c := New(conn, Config{Idle: p.config.Idle})
	if err := c.Greet(greetTimeout, p.config.Greeting(token), p.config.Greeted...); err != nil {
		c.Close()
		var refused *resp.Failure
		return nil, !errors.Is(err, ErrNotRESP) && !errors.As(err, &refused), err
	}
	c.Start()
	return c, false, nil
}

// Secure returns how to begin a connection with TLS; config may be nil. It offers HTTP too, so that a server that does
// not know RESP ends the handshake with an answer and not with an alert.
func Secure(config *tls.Config, host, protocol string) *tls.Config {
	if config = config.Clone(); config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.NextProtos = []string{protocol, "http/1.1"}
	config.ServerName = cmp.Or(config.ServerName, host)
	return config
}

func (p *Pool) shakeHands(conn *tls.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	var noTLS tls.RecordHeaderError
	switch err := conn.HandshakeContext(ctx); {
	case errors.As(err, &noTLS):
		return ErrNotRESP // another wire may say better what is wrong
	case err != nil:
		return err
	}
	if chosen := conn.ConnectionState().NegotiatedProtocol; chosen != "" && chosen != p.config.Protocol {
		return ErrNotRESP
	}
	return nil
}
