package native

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/engine"
)

// A wire is how a request came in and how its answer goes out: HTTP and JSON, or RESP.
type wire interface {
	name() string             // in the journal and in metrics
	path(name string) string  // a value of the path; in RESP an argument before all keywords
	head(key string) []string // what HTTP has in a header
	address() string          // that the request comes from
	direct() bool             // nobody says that it was passed on by somebody else

	// space finds out the namespace of a request that was refused before it was read.
	space(c *call, o *operation) error

	// read reads the body, of at most that many bytes, and reports whether there was one.
	read(into any, most int) (some bool, err error)
	value(c *call, command *core.PutRecord) error // reads the value of a record

	begin() *encode.Buffer // an answer
	end(b *encode.Buffer)
	nothing()                // answers that there is nothing to show
	marshal(value any) error // answers with what is not asked for often enough to be written by hand
	tell(header, value string)

	stay()                  // lifts the limits on how long the request may take
	within(d time.Duration) // limits the next writes

	stream() *httpWire // for what only HTTP does; nil: this is RESP
}

// A call is one request on its way through the door.
type call struct {
	wire
	door      *Door
	ctx       context.Context   // of the request, with who sends it
	signature context.Context   // the same with where it comes from; nil: it was not needed yet
	proof     *credential.Proof // who sends it; nil: access is off
	namespace string
	query     door.Query
	once      core.Request // the name by which the request can be sent again
	made      bool         // the id is the server's: the caller does not know it yet
	saidAll   bool         // all slots are asked for, in so many words
	waited    bool
	newest    leasehold.Revision // the newest of the namespace when it was read
	decided   *leasehold.Error   // the last refusal that is in the log

	released []*core.Release // what is released with one request, if that is more than one lease
	batched  bool            // the command is one of a batch, in whose answers nobody may wait

	answer *door.Answer // nil: it is small, or that of RESP
}

// origin is where the request comes from. The address is that of the connection: what a
// header says of another one, anybody can write.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Actor: door.Principal(c.proof), Address: c.address(), Door: c.name()}
}

// signed is the request's context, with where the request comes from.
func (c *call) signed() context.Context {
	if c.signature == nil {
		c.signature = engine.WithOrigin(c.ctx, c.origin())
	}
	return c.signature
}

// run does what an operation is for.
func (c *call) run(a *action) error {
	if a.command == nil {
		return a.serve(c)
	}
	command, err := a.command(c)
	if err != nil {
		return err
	}
	if a.longer != nil {
		if done, err := a.longer(c, command); done {
			return err
		}
	}
	answer, err := c.do(command)
	return c.answered(a, command, answer, err)
}

// answered replies to what became of the command of a request.
func (c *call) answered(a *action, command core.Command, answer core.Answer, err error) error {
	switch {
	case err == nil:
		return a.reply(c, command, answer)
	case a.failed != nil:
		return a.failed(c, command, err)
	}
	return err
}

// do carries out a command, and notes how it was refused.
func (c *call) do(command core.Command) (core.Answer, error) {
	answer, err := c.carryOut(c.contextOf(command), command)
	c.noteDecided(err)
	return answer, err
}

func (c *call) noteDecided(err error) {
	if err != nil {
		errors.As(err, &c.decided)
	}
}

// contextOf is the context for a command. It says where the command comes from if anybody will ask.
func (c *call) contextOf(command core.Command) context.Context {
	if engine.HasOrigin(command) {
		return c.signed()
	}
	return c.ctx
}

// carryOut sends a command to the engine. Unlike do it may be called by several goroutines of a request.
func (c *call) carryOut(ctx context.Context, command core.Command) (core.Answer, error) {
	return c.door.backend.Do(ctx, command)
}

// noteDenied puts a refusal for lack of right in the journal, unless the log has it.
func (c *call) noteDenied(o *operation, err error) {
	if err == nil || !errors.Is(err, leasehold.ErrDenied) || door.Anonymous(err) {
		return
	}
	var refusal *leasehold.Error // here, since it is on the heap
	if errors.As(err, &refusal) && refusal == c.decided {
		return
	}
	if c.namespace == "" && c.space(c, o) != nil {
		c.namespace = leasehold.DefaultNamespace // it was refused before anybody read what it says
	}
	c.door.backend.Refused(audit.Refusal{
		Origin: c.origin(), Namespace: c.namespace, Verb: o.name,
		Resource: c.path("path"), ID: c.path("id"), Reason: err.Error(),
	})
}

// send writes one answer.
func (c *call) send(fill func(*encode.Buffer)) {
	b := c.begin()
	fill(b)
	if err := c.hold(len(b.Bytes)); err != nil {
		problem(c.stream().w, err)
		return
	}
	c.end(b)
}

// hold waits until there is room for an answer over HTTP, as long as its client does not take it. What RESP has for a
// connection is bounded there. An answer that tells of a command has its room from before.
func (c *call) hold(size int) error {
	if size <= door.SmallAnswer || c.stream() == nil || c.answer != nil {
		return nil
	}
	c.answer = new(door.Answer)
	return c.answer.Hold(c.signed(), c.door.backend, size)
}

// sendValue sends what is not asked for often enough to be written by hand.
func (c *call) sendValue(value any) error { return c.marshal(value) }
