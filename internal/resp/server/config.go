package server

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/internal/limit"
	"github.com/leasehold/leasehold/internal/resp"
)

// A Config is what a server is made of. Only Commands must be set.
type Config struct {
	Commands []*Command

	// NewBatch makes what the Begins of a batch add to. Batches are reused. Nil: no command has
	// Begin, or none adds anything.
	NewBatch func() Batch

	// Open is called when a connection begins, and may set its State. An error ends it, with
	// the error as the only answer.
	Open func(*Conn) error
	// Reset is called by RESET: the connection is as if it had just begun.
	Reset func(*Conn)
	// Closed is called when it has ended.
	Closed func(*Conn)

	// Login checks what AUTH or HELLO brought; the user is "default" if none was named. Its
	// error is answered by Fail. Nil: AUTH is refused as by a Redis without a password.
	Login func(ctx context.Context, c *Conn, user, secret string) error
	// Fail writes the answer for an error of Open or Login. Nil: a *resp.Failure as it is, and
	// others as ERR.
	Fail func(c *Conn, w *resp.Writer, err error)

	// Blocks reports whether a Begin for this connection may have to wait. The command is then
	// carried out alone, where no other connection waits for it. Nil: none ever has to.
	Blocks func(*Conn) bool

	// Strangers is the memory that connections share on which nothing was proven (see Conn.Proven), beyond what each
	// has of its own. Nil: there is no limit.
	Strangers *limit.Budget
	// Costly returns why a connection on which nothing was proven gets no long answer, such as that of COMMAND DOCS.
	// Nil: it does.
	Costly func(*Conn) error

	// Greeted is called once for a connection, when its first whole command has come.
	Greeted func(net.Conn)
	// Named is called when a client has said which library it uses, such as "go-redis/9.23.0". Nil: nobody is.
	Named func(c net.Conn, library string)

	// Instead is said behind the answer to an unknown command: what to send in its place. Empty: nothing.
	Instead string

	Name    string // of the server, in HELLO and INFO
	Version string // of the server, in HELLO and INFO
	// Info returns lines for INFO beside those that all servers have.
	Info func() []string

	Limits   resp.Limits   // of one command
	Pipeline int           // commands of one connection in a batch; 0: 1,024
	Queue    int           // bytes pushed to a client that does not read, before it is cut off; 0: 1 MiB
	SendTime time.Duration // for a command to come whole; 0: 20s
	TakeTime time.Duration // for a client to take some of what it is sent; 0: 30s
	IdleTime time.Duration // between commands, on a connection on which nothing was proven; 0: 2 minutes
	Linger   time.Duration // how long commands are refused, and not cut off, when the server drains; 0: 1s

	// Crowd is from how many connections on those that are plain TCP share a loop, on Linux. For
	// fewer, a goroutine for each is cheaper. 0: 8; negative: never.
	Crowd int

	// Log takes what a panic said. Nil: slog.Default.
	Log *slog.Logger
}

// A Command is one command, or one subcommand.
type Command struct {
	Name    string // in capital letters, such as LH.ACQUIRE, or LH.SESSION OPEN
	Summary string // for COMMAND DOCS
	Min     int    // arguments that it needs at least, without its name
	Max     int    // that it can have; 0: any number
	Write   bool   // it changes something

	// Begin starts a call and returns without blocking. Done must then be called once, at once
	// or later.
	Begin func(*Call)
	// Answer writes the answer of a call that began and is done: exactly one value. Nothing may
	// block.
	Answer func(*Call, *resp.Writer)

	// Run does it all, and may block. Either it or Begin and Answer are set, or all three and Long.
	Run func(*Call, *resp.Writer)
	// Long reports by its arguments whether a call has to run, of a command that can also begin.
	Long func(args [][]byte) bool
}

// A Batch is what the Begins of one batch add to. Its methods are called by one goroutine at a
// time.
type Batch interface {
	// Submit hands over what was added since the last Submit. It may return before that is
	// done, or do it. It is called only if a call is not done yet.
	Submit()
}

// A Call is one command that a client sent. It is valid until it is answered.
type Call struct {
	Conn *Conn
	Args [][]byte // without the name; parts of what was read: they must not be kept

	// State belongs to the owner of the commands. It is kept when the Call is used for another
	// command, of whatever connection, so that what is in it can be used again.
	State any

	command *Command
	round   *round
	done    atomic.Bool
	watch   chan struct{} // closed when nobody reads the connection any more, after Wait
}

// runs reports whether a call is carried out by Run.
func (k *Command) runs(args [][]byte) bool {
	return k.Begin == nil || k.Long != nil && k.Long(args)
}

// Batch returns what a Begin adds to.
func (c *Call) Batch() Batch { return c.round.batch }

// Done says that a call that began can be answered. Any goroutine may call it, once.
func (c *Call) Done() {
	if c.done.CompareAndSwap(false, true) {
		c.round.done()
	}
}

// Context is done when the connection has ended.
func (c *Call) Context() context.Context { return c.Conn.ctx }
