package door

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
)

// Times of one request on the port that doors share. They are for what is answered at once: a
// request that stays lifts them, see Unhurried, and limits each write.
const (
	ReadTime  = 20 * time.Second // for all of a request
	WriteTime = 30 * time.Second // for all of an answer
)

// The words of package listen that have to do with ports.
type (
	Host       = listen.Host
	HostConfig = listen.Config
	Conn       = listen.Conn
	Guest      = listen.Guest
	Borrowed   = listen.Borrowed
)

// NewHost returns a port that doors share.
func NewHost(b *Backend, c HostConfig, doors ...Door) *Host {
	c.State, c.Strangers = b.State(), b.Strangers()
	if c.Log == nil {
		c.Log = b.Log()
	}
	SetDefault(&c.ReadTime, ReadTime)
	SetDefault(&c.WriteTime, WriteTime)
	for _, d := range doors {
		c.HTTP = append(c.HTTP, d.HTTP)
		if d.Protocol != nil {
			c.Protocols = append(c.Protocols, d.Protocol)
		}
	}
	return listen.NewHost(c)
}

// NewOwnHost returns the port that a door has for itself.
func NewOwnHost(b *Backend, c HostConfig, p *Port) *Host {
	c.State, c.Strangers, c.Name = b.State(), b.Strangers(), p.Name
	c.MaxConnections, c.MaxHeader = p.MaxConnections, p.MaxHeader
	SetDefault(&c.MaxConnections, 4000)
	c.HeaderTime, c.ReadTime, c.WriteTime = p.HeaderTime, p.ReadTime, p.WriteTime
	c.OnlyHTTP1, c.Wrap, c.Quiet = p.OnlyHTTP1, p.Wrap, p.Quiet
	c.HTTP = []HTTP{p.HTTP}
	if p.Protocol != nil {
		c.Protocols = []*Protocol{p.Protocol}
		if p.Protocol.Matches == nil {
			c.HTTP = nil
		}
	}
	return listen.NewHost(c)
}

// Collecting returns the connection of a request if what is written to it can be collected, and
// sent in one piece. Nil if not, as in TLS and HTTP/2.
func Collecting(r *http.Request) *Conn { return listen.Collecting(r) }

// Carrier returns the connection that carries a request, also one in TLS, which others may
// share. Nothing may be written to it. Nil in tests without a network.
func Carrier(r *http.Request) *Conn { return listen.Carrier(r) }

// Borrow takes the connection of a request whose answer has begun, so that the handler can return and the answer go on;
// see [listen.Borrow]. Nil: that cannot be.
func Borrow(w http.ResponseWriter, r *http.Request, gone func()) *Borrowed {
	return listen.Borrow(w, r, gone)
}

// After lets the handler of a request over HTTP/2 return before its answer is complete; see [listen.After]. False: that
// cannot be.
func After(r *http.Request, wait func()) bool { return listen.After(r, wait) }

// OwnConn returns the connection of a request as the door's own Wrap made it, or nil.
func OwnConn(r *http.Request) net.Conn { return listen.Outer(r) }

// Greeted says that the other end of a protocol's connection has sent something whole: a certificate that it has shown
// counts from then on.
func Greeted(c net.Conn) { listen.Greeted(c) }

// ServeHTTP answers a request that a protocol has read on its connection as the port answers those of HTTP.
func ServeHTTP(c net.Conn, w http.ResponseWriter, r *http.Request) { listen.ServeHTTP(c, w, r) }

// Proven says that a credential was accepted on a protocol's connection, or where none is needed, that something real
// was asked: it is no longer closed to make room for others. For HTTP, Login and Prove do it.
func Proven(c net.Conn) { listen.Proven(c) }

// ProvenIn does the same for the connection of a request over HTTP, of which the context is.
func ProvenIn(request context.Context) { listen.ProvenIn(request) }

// ConnOf finds the connection of a port below another one, such as one with TLS; nil if there is none.
func ConnOf(c net.Conn) *Conn { return listen.ConnOf(c) }

// Meet notes which door the client of a protocol's connection uses and what it calls itself, for the list of who is
// connected. The port does it for HTTP.
func Meet(c net.Conn, door, client string) { listen.Meet(c, door, client) }

// What clients are told while a server cannot take their requests.
const (
	StartingMessage = listen.StartingMessage
	StoppingMessage = listen.StoppingMessage
)

// MustHost returns a port with doors to an engine, each with its default settings: for tests, and
// for servers inside them. It panics if one cannot be opened.
func MustHost(e engine.Engine, c HostConfig, kinds ...Kind) *Host {
	b := NewBackend(e, Options{Log: c.Log})
	var doors []Door
	var entrances []Entrance
	for _, kind := range kinds {
		settings := Settings{}
		for _, s := range kind.Settings {
			settings[s.Name] = s.Default
		}
		d, err := kind.Open(b, settings)
		if err != nil {
			panic(err)
		}
		doors, entrances = append(doors, d), append(entrances, Entrance{Kind: kind, On: true})
	}
	b.SetEntrances(entrances)
	return NewHost(b, c, doors...)
}
