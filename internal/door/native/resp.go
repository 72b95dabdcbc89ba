package native

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/keyword"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/server"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// A respOperation is an operation with its command in RESP.
type respOperation struct {
	accounted
	grammar *keyword.Grammar
}

// maxCommand is how large a command can be, as it comes over the wire.
const maxCommand = 1 << 20

// protocol returns what speaks RESP on the port that doors share.
func (d *Door) protocol() *door.Protocol {
	s := server.New(server.Config{
		Commands: d.respCommands(),
		Instead:  "LH.ACQUIRE takes a lease, LH.RECORD keeps a value, COMMAND LIST shows all commands",
		NewBatch: func() server.Batch { return &respBatch{door: d} },
		Open:     d.openRESP,
		Reset:    func(c *server.Conn) { c.State.(*respConn).reset() },
		Closed:   func(c *server.Conn) { c.State.(*respConn).watches.endAll() },
		Login: func(ctx context.Context, c *server.Conn, _, secret string) error {
			return c.State.(*respConn).login(ctx, secret)
		},
		Blocks: func(c *server.Conn) bool { return !c.State.(*respConn).visitor.Known() },
		Fail:   failRESP,

		Strangers: d.backend.Strangers(),
		Costly: func(c *server.Conn) error {
			_, err := c.State.(*respConn).visitor.Proof(c.Context())
			return err
		},
		Greeted: func(c net.Conn) {
			door.Greeted(c)
			door.Meet(c, doorName, "")
		},
		Named: func(c net.Conn, library string) { door.Meet(c, doorName, library) },
		Name:  "leasehold", Version: d.backend.Version().Version,
		Limits: resp.Limits{Bytes: maxCommand},
		Log:    d.backend.Log(),
	})
	_ = d.backend.Metrics().Registerer().Register(s) // of several doors with the same metrics, the first counts
	return &door.Protocol{Name: "RESP", ALPN: server.ALPN, Matches: server.Matches, First: 1, Serve: s.Serve,
		Refuse: s.Refuse}
}

func (d *Door) openRESP(c *server.Conn) error {
	r := &respConn{Conn: c, door: d, visitor: d.backend.Visit(c.Net()), carrier: door.ConnOf(c.Net()),
		namespace: leasehold.DefaultNamespace}
	r.life, r.end = context.WithCancel(c.Context())
	c.State = r
	return nil
}

// reset makes a connection as if it had just begun: what waits for a push ends as if the connection did. Nothing that
// was asked for before is told after the answer: somebody else may use the connection from then on.
func (r *respConn) reset() {
	r.end()
	r.watches.endAll()
	r.Settle()
	r.life, r.end = context.WithCancel(r.Context())
	r.ctx = nil
	r.visitor.Forget()
	r.namespace = leasehold.DefaultNamespace
	r.json.Store(false)
}

// login checks a token, and notes who was refused.
func (r *respConn) login(ctx context.Context, secret string) error {
	err := r.visitor.Show(ctx, secret)
	if err == nil {
		r.proven()
	}
	var refused *credential.Refusal
	if errors.As(err, &refused) && refused.Reason != credential.Slowed && refused.Reason != credential.Unreachable {
		return &wrongSecret{err}
	}
	return err
}

// wrongSecret is the error of a login by a credential that is no good.
type wrongSecret struct{ error }

func (w *wrongSecret) Unwrap() error { return w.error }

// respCommands makes the commands of all operations, and of what only RESP has.
func (d *Door) respCommands() []*server.Command {
	requests := d.backend.Requests(respName)
	all := []*server.Command{
		{Name: "LH.HELLO", Summary: "Greets the server: [NAMESPACE ns] [ERRORS json|text].", Run: d.greet},
		{Name: "LH.UNWATCH", Summary: "Ends a watch: tag.", Min: 1, Max: 1, Run: unwatch},
	}
	for i := range operations {
		if o := &operations[i]; o.resp != "" {
			all = append(all, d.respCommand(&respOperation{accounted{o, requests.Verb(o.name)}, o.grammar()}))
		}
	}
	return all
}

func (d *Door) respCommand(o *respOperation) *server.Command {
	command := &server.Command{
		Name: o.grammar.Name, Min: o.grammar.Least(), Write: o.method != "GET",
		Summary: o.grammar.Usage() + ", as " + o.method + " " + o.path + " does.",
	}
	command.Run = func(c *server.Call, w *resp.Writer) { runRESP(o, c, w) }
	if o.name == "watch" {
		command.Run = func(c *server.Call, w *resp.Writer) { watchRESP(o, c, w) }
	}
	if o.command != nil {
		command.Begin = func(c *server.Call) { beginRESP(o, c) }
		command.Answer = answerRESP
		command.Long = o.long
	}
	return command
}

// long reports whether a command may take longer than its commands in the core: it waits, or there are many. Who names
// a holder "wait" is answered as well, only with less company.
func (o *respOperation) long(words [][]byte) bool {
	switch {
	case o.grammar.Many:
		return len(words) > 1 && o.grammar.Find(words[1]) == ""
	case o.name != "acquire":
		return false
	}
	for _, word := range words {
		switch o.grammar.Find(word) {
		case "wait", "push", "key":
			return true
		}
	}
	return false
}

// callOf returns what a call of the server is for the door.
func callOf(c *server.Call) *respCall {
	if r, ok := c.State.(*respCall); ok {
		return r
	}
	r := &respCall{}
	c.State = r
	return r
}

// runRESP carries out a command alone.
func runRESP(o *respOperation, sc *server.Call, w *resp.Writer) {
	c := callOf(sc)
	err := c.open(sc.Conn.State.(*respConn), o, sc.Args, w)
	c.wait = sc.Wait
	switch {
	case err != nil:
	case c.words.Word("push") != nil && o.name == "acquire":
		err = c.acquirePushed()
	default:
		err = c.run(&o.action)
	}
	c.finish(err)
}

// A respBatch is the commands of one batch on their way to the engine.
type respBatch struct {
	door *Door
	list []engine.Submission
}

// Submit hands over what was added.
func (b *respBatch) Submit() {
	b.door.backend.Submit(b.list)
	clear(b.list)
	b.list = b.list[:0]
}

// beginRESP makes the command of a request, and adds it to the batch.
func beginRESP(o *respOperation, sc *server.Call) {
	c := callOf(sc)
	c.err = c.open(sc.Conn.State.(*respConn), o, sc.Args, nil)
	if c.err == nil {
		c.batched = true
		c.command, c.err = o.command(&c.call)
	}
	if c.err != nil {
		sc.Done()
		return
	}
	if c.done == nil {
		c.done = func(answer core.Answer, err error) {
			c.answer, c.err = answer, err
			if w := c.waiter(); w != nil {
				go func() { // Done must not read
					c.err = c.stillWaits(w)
					sc.Done()
				}()
				return
			}
			sc.Done()
		}
	}
	batch := sc.Batch().(*respBatch)
	batch.list = append(batch.list, engine.Submission{Ctx: c.contextOf(c.command), Command: c.command, Done: c.done})
}

// answerRESP answers a request whose command is done.
func answerRESP(sc *server.Call, w *resp.Writer) {
	c := callOf(sc)
	c.out = w
	err := c.err
	if c.command != nil {
		c.noteDecided(err)
		err = c.answered(&c.operation.action, c.command, c.answer, err)
	}
	c.finish(err)
}

// waiter returns the place in a queue of somebody who asked without waiting, and has only that.
func (c *respCall) waiter() *leasehold.Waiter {
	if c.err != nil || c.operation.name != "acquire" && c.operation.name != "renew" {
		return nil
	}
	return c.answer.Waiter
}

// account counts the request.
func (c *respCall) account(err error) {
	c.operation.account.Done(c.ctx, telemetry.Outcome{
		Namespace: c.namespace, Err: err, Took: time.Since(c.began), Waited: c.waited, Endless: c.operation.endless(),
		Expected: err != nil && (c.ctx.Err() != nil || c.door.backend.Stopping().Err() != nil),
	})
}

// greet is LH.HELLO [NAMESPACE ns] [ERRORS json|text].
func (d *Door) greet(sc *server.Call, w *resp.Writer) {
	r := sc.Conn.State.(*respConn)
	namespace, inJSON := r.namespace, r.json.Load()
	for args := sc.Args; len(args) > 0; args = args[2:] {
		var err error
		switch word := strings.ToUpper(string(args[0])); {
		case len(args) == 1:
			err = invalid("keyword %s has no value: write LH.HELLO NAMESPACE ns ERRORS json", brief(word))
		case word == "NAMESPACE":
			namespace = string(args[1])
			err = checkName("namespace", namespace)
		case word == "ERRORS" && strings.EqualFold(string(args[1]), "json"):
			inJSON = true
		case word == "ERRORS" && strings.EqualFold(string(args[1]), "text"):
			inJSON = false
		case word == "ERRORS":
			err = invalid("errors are written as json or as text, not as %s", brief(string(args[1])))
		default:
			err = invalid("keyword %s is unknown; known are: NAMESPACE, ERRORS", brief(word))
		}
		if err != nil {
			r.fail(w, err)
			return
		}
	}
	r.namespace = namespace
	r.json.Store(inJSON)
	b := encode.New(w.Bytes(), form(w.Version))
	b.Open()
	b.Text("server", "leasehold")
	b.Text("version", d.backend.Version().Version)
	b.Number("level", uint64(d.backend.Engine().Level()))
	b.Close()
	w.Reset(b.Bytes)
}

func failRESP(c *server.Conn, w *resp.Writer, err error) {
	if r, ok := c.State.(*respConn); ok {
		r.fail(w, err)
		return
	}
	(&respConn{}).fail(w, err)
}

// fail answers with an error.
func (r *respConn) fail(w *resp.Writer, err error) {
	var protocol *resp.Failure
	if errors.As(err, &protocol) {
		w.Error(protocol.Code, protocol.Text)
		return
	}
	e := door.Coded(err)
	code, message := respCode(err, e), e.Error()
	if r.json.Load() {
		s := door.StandingOf(e.Code)
		text, _ := json.Marshal(v1.NewProblem(e, door.StatusOf(err, s.Status), s.Title))
		message = string(text)
	}
	w.Error(code, message)
}

// respCode returns the word that an error begins with. Clients of Redis know those of logins.
func respCode(err error, e *leasehold.Error) string {
	var refused *credential.Refusal
	var wrong *wrongSecret
	switch {
	case errors.As(err, &wrong):
		return "WRONGPASS"
	case errors.As(err, &refused) && e.Code == leasehold.Denied:
		return "NOAUTH"
	}
	return codeWords[e.Code]
}

// codeWords are the codes of errors, in capital letters.
var codeWords = func() map[leasehold.Code]string {
	words := map[leasehold.Code]string{}
	for _, code := range leasehold.Codes {
		words[code] = strings.ToUpper(strings.ReplaceAll(code.String(), "-", ""))
	}
	return words
}()
