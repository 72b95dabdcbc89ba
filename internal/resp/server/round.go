package server

import (
	"sync/atomic"

	"github.com/leasehold/leasehold/internal/resp"
)

// A round is one batch under way: its calls, in the order in which they came, on one
// connection or on several.
type round struct {
	batch   Batch
	calls   []*Call // of which count are in use
	count   int
	pending atomic.Int32 // calls that are not done, and one more until all have begun
	ended   chan struct{}
	left    chan []*Conn // whose calls they are, if the loop went on without them
}

func (s *Server) newRound() *round {
	r := &round{ended: make(chan struct{}, 1), left: make(chan []*Conn, 1)}
	if s.config.NewBatch != nil {
		r.batch = s.config.NewBatch()
	}
	r.pending.Store(1)
	return r
}

func (r *round) done() {
	if r.pending.Add(-1) == 0 {
		r.ended <- struct{}{}
	}
}

// begin starts a command.
func (r *round) begin(c *Conn, command *Command, args [][]byte) {
	if r.count == len(r.calls) {
		r.calls = append(r.calls, &Call{round: r})
	}
	call := r.calls[r.count]
	r.count++
	call.Conn, call.Args, call.command = c, args, command
	call.done.Store(false)
	r.pending.Add(1)
	defer func() {
		if said := recover(); said != nil {
			c.panicked(said)
			// Something may still be done with this call: nobody else shall get it.
			r.calls[r.count-1] = &Call{round: r, Conn: c, command: broken}
			call.Done()
		}
	}()
	command.Begin(call)
}

// broken stands for a command that panicked: its connection has ended.
var broken = &Command{Answer: func(*Call, *resp.Writer) {}}

// await hands over what began, and waits until all of it is done. A Submit may do all of it itself.
func (r *round) await() {
	if r.count == 0 {
		return
	}
	if r.batch != nil && r.pending.Load() > 1 {
		r.batch.Submit()
	}
	r.done()
	<-r.ended
	r.pending.Store(1)
}

// answer writes the answers into the buffers of their connections.
func (r *round) answer() {
	for _, call := range r.calls[:r.count] {
		call.answer()
		call.Conn, call.Args, call.command = nil, nil, nil
	}
	r.count = 0
}

func (c *Call) answer() {
	defer c.Conn.survive()
	c.command.Answer(c, &c.Conn.out)
}
