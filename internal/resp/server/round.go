package server

import "sync/atomic"

// A round is one batch under way: its calls, in the order in which they came, on one
// connection or on several.
type round struct {
	batch   Batch
	calls   []*Call // of which count are in use
	count   int
	pending atomic.Int32 // calls that are not done, and one more until all have begun
	ended   chan struct{}
}

func (s *Server) newRound() *round {
	r := &round{ended: make(chan struct{}, 1)}
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
	r.pending.Add(1)
	command.Begin(call)
}

// await hands over what began, and waits until all of it is done.
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
		call.command.Answer(call, &call.Conn.out)
		call.Conn, call.Args, call.command = nil, nil, nil
	}
	r.count = 0
}
