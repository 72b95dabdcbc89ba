package native

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/keyword"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/server"
)

// A respWire is a request over RESP, with its answer.
type respWire struct {
	conn   *respConn
	words  keyword.Words
	buffer encode.Buffer
	out    *resp.Writer
	wait   func() context.Context // says that the command may take long; nil: it may not
}

// A respCall is a call over RESP. It is used again for later commands.
type respCall struct {
	call
	respWire
	operation *respOperation
	began     time.Time
	command   core.Command
	answer    core.Answer
	err       error
	done      func(core.Answer, error)
}

// A respConn is what the door knows of a connection.
type respConn struct {
	*server.Conn
	door      *Door
	visitor   *door.Visitor
	carrier   *door.Conn // nil: in tests
	namespace string
	json      atomic.Bool // errors are problems in JSON

	life context.Context // until the connection ends, or is reset
	end  context.CancelFunc

	proof   *credential.Proof // for which the context is
	ctx     context.Context   // with who asks, and where from
	watches respWatches
	known   keyword.Known // what its client said lately
}

// enter returns the context of a command, with who sends it.
func (r *respConn) enter() (context.Context, *credential.Proof, error) {
	proof, err := r.visitor.Proof(r.Context())
	if err != nil {
		return nil, nil, err
	}
	r.proven()
	if r.ctx == nil || proof != r.proof {
		origin := leasehold.Origin{Actor: door.Principal(proof), Address: r.visitor.Address(), Door: respName}
		r.proof, r.ctx = proof, engine.WithOrigin(door.WithProof(r.life, proof), origin)
	}
	return r.ctx, proof, nil
}

// proven keeps the connection: who is at its other end has shown who it is, or need not.
func (r *respConn) proven() {
	r.Proven()
	if r.carrier != nil {
		r.carrier.Proven()
	}
}

// open begins a call: who sends it, and what its words mean.
func (c *respCall) open(r *respConn, o *respOperation, words [][]byte, out *resp.Writer) error {
	c.began, c.operation = time.Now(), o
	c.respWire.conn, c.out, c.wait = r, out, nil
	c.call = call{wire: &c.respWire, door: r.door, ctx: r.Context(), namespace: r.namespace}
	c.command, c.answer, c.err = nil, core.Answer{}, nil
	c.words.Known = &r.known
	bad := o.grammar.Parse(&c.words, words)
	if bad == nil {
		bad = c.readNames()
	}
	ctx, proof, err := r.enter()
	if err != nil {
		return err // whatever else is wrong is nobody's business
	}
	c.ctx, c.signature, c.proof = ctx, ctx, proof
	return bad
}

// readNames reads the namespace, the request's own name, and the query.
func (c *respCall) readNames() error {
	if namespace := c.words.Word("namespace"); namespace != nil {
		c.namespace = string(namespace)
		if err := checkName("namespace", c.namespace); err != nil {
			return err
		}
	}
	c.query = c.words.Query()
	return c.readOnce(c.words.Name("key"), c.words.Name("key_session"))
}

// finish accounts for the call, and answers if it failed.
func (c *respCall) finish(err error) {
	c.noteDenied(c.operation.operation, err)
	if err != nil {
		c.respWire.conn.fail(c.out, err)
	}
	c.account(err)
}

func (w *respWire) name() string    { return respName }
func (w *respWire) address() string { return w.conn.visitor.Address() }
func (w *respWire) direct() bool    { return true }

func (w *respWire) path(name string) string  { return w.words.Path(name) }
func (w *respWire) head(key string) []string { return w.words.Head(key) }

func (w *respWire) space(*call, *operation) error { return nil }

func (w *respWire) read(into any, _ int) (bool, error) {
	_, err := w.words.Fill(into)
	return true, err // what is missing is said field by field
}

// value is a word: what is longer than a command can be goes by HTTP.
func (w *respWire) value(_ *call, command *core.PutRecord) error {
	value := w.words.Value()
	if len(value) > leasehold.MaxValue {
		return invalid("the value has %d bytes: at most %d are allowed here, send a larger one by HTTP", len(value),
			leasehold.MaxValue)
	}
	command.Value = string(value)
	return nil
}

func form(version int) encode.Form {
	if version == 3 {
		return encode.RESP3
	}
	return encode.RESP2
}

func (w *respWire) begin() *encode.Buffer {
	w.buffer.Reset(w.out.Bytes(), form(w.out.Version))
	return &w.buffer
}

func (w *respWire) end(b *encode.Buffer) {
	w.out.Reset(b.Bytes)
	b.Bytes = nil
}

func (w *respWire) nothing() { w.out.OK() }

func (w *respWire) marshal(value any) error {
	began := w.out.Len()
	b := w.begin()
	err := b.Marshal(value)
	w.end(b)
	switch {
	case err != nil:
		w.out.Truncate(began)
	case bytes.Equal(w.out.Bytes()[began:], []byte("%0\r\n")), bytes.Equal(w.out.Bytes()[began:], []byte("*0\r\n")):
		w.out.Truncate(began)
		w.out.OK()
	}
	return err
}

func (w *respWire) tell(string, string)  {}
func (w *respWire) within(time.Duration) {}
func (w *respWire) stream() *httpWire    { return nil }

func (w *respWire) stay() {
	if w.wait != nil {
		w.wait()
	}
}
