package listen

import (
	"context"
	"net"
	"net/http"
)

// HTTP is what is answered over HTTP at a port, by one door.
type HTTP struct {
	Name   string // of the door, in the list of who is connected
	Routes []Route

	// Refuse says in the door's own words why the port does not hand it a request: the server
	// starts or stops, or the request came by a wrong name, from another site, or for a path
	// that would be changed. The error is a *Fault around a *leasehold.Error. Nil: the port's
	// first door that has one says it.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
}

// A Route is one path, or many, with what answers there.
type Route struct {
	// Pattern is what http.ServeMux takes. Empty: all paths, as they were sent; it is then the
	// port's only route.
	Pattern string
	Handler http.Handler

	Early   bool // answered while the server starts, too: it needs no engine
	Late    bool // answered while the server stops, too: others see by it that it does
	AnySite bool // pages of other sites may ask: it is harmless, or has its own proof of who asks
}

// A Protocol is something other than HTTP that a connection can speak.
type Protocol struct {
	Name string // in logs

	// ALPN is its name in a TLS handshake; empty: its first bytes tell it there, too.
	ALPN string

	// Matches reports whether a connection that begins with these bytes speaks it. It gets at
	// least First of them, or 1. Unknown bytes are left to HTTP, so it must be sure. Nil: all
	// connections of the port do.
	Matches func(first []byte) bool
	First   int

	// Serve answers on one connection until that ends, and then returns; the port closes it.
	// The context is done when the server drains: what is under way is finished then. How fast
	// a client has to be is up to Serve: deadlines are no longer set. Serve calls Greeted when
	// the client has sent something whole; until then the port may close the connection to make
	// room for others.
	Serve func(ctx context.Context, c net.Conn)

	// Early says that connections are served while the server starts, too: Serve refuses then what it is asked.
	Early bool

	// Refuse says that the server starts, stops or has no room, which the error tells, in a
	// moment and in the protocol's own words; the port then closes the connection. Nil: it is
	// closed without a word.
	Refuse func(c net.Conn, err error)
}

// ServeHTTP answers a request that a Protocol has read on a connection as the port answers those of HTTP. What it holds
// is counted by the Protocol.
func ServeHTTP(c net.Conn, w http.ResponseWriter, r *http.Request) {
	h := ConnOf(c).host
	r = r.WithContext(withConn(r.Context(), c))
	h.answer(w, r)
	h.waitAfter(r)
}

// A Fault is an error that HTTP has a status of its own for.
type Fault struct {
	Err    error
	Status int
}

// Error returns what the error says.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the error without its status.
func (f *Fault) Unwrap() error { return f.Err }
