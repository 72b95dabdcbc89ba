package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// A call is one request on its way through the door.
type call struct {
	door      *Door
	engine    *door.Witness
	r         *http.Request
	proof     *credential.Proof // who sends it; nil: access is off
	agent     agent
	namespace string
	began     time.Time

	ctx      context.Context // of the tool, with who asks and from where
	progress func(elapsed time.Duration, message string)
	person   confirming // the person behind the agent
	resource string     // for the journal
	waited   bool       // for a resource
	refusal  error      // why an answer is a ticket, for the metrics
	warnings []string   // what the agent should know, whatever it asked
}

type callKey struct{}

// callOf finds the call again that the SDK was given with the context of a request.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// serve does what a tool is for. Whatever goes wrong is a result that the agent can read.
func (c *call) serve(ctx context.Context, o *operation, r *sdk.CallToolRequest) *sdk.CallToolResult {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c.ctx = door.WithCaller(ctx, door.Caller{Origin: c.origin(), Proof: c.proof})
	c.progress, c.person = progressOf(ctx, r), confirmingOf(r)
	value, err := c.try(o, r.Params.Arguments)
	if q, ok := value.(*question); ok && err == nil {
		c.done(o, nil)
		return q.result()
	}
	if err == nil {
		c.done(o, c.refusal)
		return result(value, false)
	}
	c.done(o, err)
	return result(c.failure(err), true)
}

// try renews what the agent has, since a call is a sign of life, and then does what is asked.
func (c *call) try(o *operation, arguments json.RawMessage) (any, error) {
	if c.agent.holder == "" {
		return nil, door.Invalid("nobody knows who asks: send a token, or the header %s with a name that no other "+
			"agent has", AgentHeader)
	}
	ask := o.ask()
	if err := decode(arguments, ask); err != nil {
		return nil, err
	}
	if err := c.signOfLife(); err != nil {
		return nil, err
	}
	return ask.serve(c)
}

// progressOf tells a client how a wait goes, if it asked to be told.
func progressOf(ctx context.Context, r *sdk.CallToolRequest) func(time.Duration, string) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func(time.Duration, string) {}
	}
	return func(elapsed time.Duration, message string) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // a client that is gone needs no notice
			ProgressToken: token, Message: message, Progress: elapsed.Seconds(), Total: maxWait.Seconds(),
		})
	}
}

// origin is where the request comes from: the address of the connection, whatever a header says.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Actor: door.Principal(c.proof), Address: c.r.RemoteAddr, Door: doorName}
}

// do carries out a command that may be done twice: all of this door's have ids, or do no harm. An election is waited
// out here, because an agent that is told to try again does so after a whole turn of its own.
//
// What nobody could decide within that time is told as such; the same call then finds out.
func (c *call) do(command core.Command) (answer core.Answer, err error) {
	err = c.door.backend.Patiently(c.ctx, func() (err error) {
		answer, err = c.engine.Do(c.ctx, command)
		return err
	})
	return answer, c.inTime(err)
}

// look reads the state of the engine.
func (c *call) look(fn func(core.View)) error { return c.inTime(c.door.backend.Read(c.ctx, fn)) }

// inTime says what to do after a call that took too long.
func (c *call) inTime(err error) error {
	if err != nil && errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		return engine.Undecided("the server did not answer in time: call again with the same arguments")
	}
	return err
}
