package native

import (
	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/resp"
)

// acquirePushed is LH.ACQUIRE … PUSH tag: it is answered at once, and if that is a place in the queue the rest is
// pushed. The connection is free for other commands meanwhile.
func (c *respCall) acquirePushed() error {
	tag := string(c.words.Word("push"))
	if c.out.Version != 3 {
		return invalid("PUSH needs RESP3: send HELLO 3 first, or leave PUSH out to wait")
	}
	if err := checkName("push", tag); err != nil {
		return err
	}
	body := new(v1.AcquireRequest)
	if _, err := c.read(body, v1.MaxBody); err != nil {
		return err
	}
	command, err := c.toAcquire(body)
	if err != nil {
		return err
	}
	leave, err := c.door.backend.Stay(c.signed())
	if err != nil {
		return err
	}
	p := &pushed{respCall: c.own(), acquire: command, tag: tag, place: make(chan *leasehold.Waiter, 1),
		ended: make(chan error)}
	go p.run(leave)
	select {
	case w := <-p.place:
		close(p.ended)
		c.waited = true
		c.send(func(b *encode.Buffer) {
			b.Open()
			b.Flag("waiting", true)
			b.Text("id", w.ID)
			b.Number("position", uint64(w.Position))
			b.Close()
		})
		return nil
	case p.ended <- nil: // it does not wait: what it came to is the answer
	}
	<-p.ended
	c.out.Reset(append(c.out.Bytes(), p.out.Bytes()...))
	return p.err
}

// own returns a copy of the call that lives on after its command is answered. What it answers goes to a buffer of its
// own.
func (c *respCall) own() *respCall {
	own := &respCall{operation: c.operation, began: c.began}
	own.respWire = respWire{conn: c.respWire.conn, out: resp.NewWriter(c.out.Version, nil)}
	own.call = c.call
	own.call.wire = &own.respWire
	return own
}

// A pushed acquire is one that waits while its connection does other things.
type pushed struct {
	*respCall
	acquire *core.Acquire
	tag     string
	place   chan *leasehold.Waiter // in the queue, once it has one
	ended   chan error             // the two goroutines agree by it on which of them answers
	err     error
}

// run waits, and hands over what came of it: to the command that began it, or to the client.
func (p *pushed) run(leave func()) {
	defer leave()
	p.err = p.acquireStaying(p.acquire, &attempt{Engine: p.door.backend.Engine(), place: p.place})
	if _, answers := <-p.ended; answers { // the command is still there
		close(p.ended)
		return
	}
	p.push()
	p.noteDenied(p.operation.operation, p.err)
	p.account(p.err)
}

func (p *pushed) push() {
	conn, told := p.respWire.conn, false
	err := conn.Push(func(w *resp.Writer) {
		if p.ctx.Err() != nil {
			return // who is gone does not want it, and who comes after RESET did not ask for it
		}
		told = true
		w.Push(3)
		w.String("lh.acquire")
		w.String(p.tag)
		if p.err != nil {
			conn.fail(w, p.err)
			return
		}
		w.Reset(append(w.Bytes(), p.out.Bytes()...))
	})
	if (err != nil || !told) && p.err == nil && p.nameless(p.acquire) {
		engine.Withdraw(p.signed(), p.door.backend.Engine(), p.acquire)
	}
}
