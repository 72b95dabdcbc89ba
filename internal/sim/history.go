package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/sim/register"
)

// Linearizability of records is judged by Porcupine, which knows nothing of this system:
// clients read, write and swap a few registers, and afterwards there must be one order of all
// that which explains every answer.

// A history is what clients did with a few registers, for Porcupine to judge.
type history struct {
	world  *World
	ops    []*operation
	begins [registers]string // what was there before
}

// An operation is one call of a client, with when it was called and when it returned.
type operation struct {
	epoch    int
	client   int
	register int
	write    string // empty: a read
	swap     bool   // it writes only if expect is there; empty: only if nothing is
	expect   string
	swapped  bool
	read     string
	called   time.Duration
	returned time.Duration // 0: nobody knows
	attempts []*attempt    // of a write: it may have been sent twice
	void     bool          // it did not happen
}

// maxOperations bounds a history: to judge one takes exponential time in the worst case.
const maxOperations = 1000

// registers are the records that are judged, each in a namespace of its own.
const registers = 2

func registerAt(n int) spot { return spot{spaces[n%len(spaces)], fmt.Sprint("register", n)} }

// applied returns the attempt of a write that happened; nil if none did. The log knows, even
// where the client was never told.
func (op *operation) applied() *attempt {
	for _, a := range op.attempts {
		if a.applied != 0 && !a.failed {
			return a
		}
	}
	return nil
}

// useRegister writes to a register, or reads one.
func (c *client) useRegister() {
	w := c.world
	// One after the other: so few are open at a time that a judge comes to an end.
	if len(w.history.ops) >= maxOperations || c.busy > w.now {
		return
	}
	c.busy = w.now + 12*time.Second
	c.made++
	op := &operation{epoch: w.epoch, client: c.made*100 + c.number(), register: w.random.IntN(registers), called: w.now}
	w.history.ops = append(w.history.ops, op)
	if w.chance(50) {
		c.readRegister(op)
		return
	}
	op.write = fmt.Sprint(c.name, ".", c.made)
	command := c.put(op)
	c.write(op, command)
	if _, named := request(command); named && w.chance(50) {
		// It is sent again although an answer may come: it must happen once.
		w.after(w.upTo(3*time.Second), func() { c.write(op, command) })
	}
}

// put is the command of a write.
func (c *client) put(op *operation) core.Command {
	at := registerAt(op.register)
	if !c.world.chance(30) {
		return &core.PutRecord{Namespace: at.space, Path: at.name, Value: op.write, Request: c.newRequest("")}
	}
	op.swap, op.expect = true, c.saw[op.register]
	compare := core.Compare{What: core.RecordValue, Is: core.Equal, Path: at.name, Text: op.expect}
	if op.expect == "" {
		compare = core.Compare{What: core.RecordVersion, Is: core.Equal, Path: at.name}
	}
	return &core.Txn{
		Namespace: at.space, Request: c.newRequest(""),
		If: []core.Compare{compare}, Then: []core.Op{{Do: core.Put, Path: at.name, Value: op.write}},
	}
}

// write sends a write, once.
func (c *client) write(op *operation, command core.Command) {
	w := c.world
	if w.quiet || op.epoch != w.epoch {
		return
	}
	c.call(command, reaction{reply: func(a *attempt, answer core.Answer, err error) {
		c.busy = 0
		if op.returned != 0 {
			return
		}
		switch {
		case err == nil:
			op.returned, op.swapped = w.now, answer.Txn != nil && answer.Txn.Succeeded
			w.count("registers written")
			if op.swapped {
				w.count("registers swapped")
			}
		case errors.Is(err, leasehold.ErrUndecided), errors.Is(err, leasehold.ErrUnavailable), a.turned:
		case w.Access.Every > 0 && (errors.Is(err, leasehold.ErrDenied) || errors.Is(err, leasehold.ErrLimited)):
		default:
			w.violated("a register cannot be written: %v", err)
		}
	}})
	op.attempts = append(op.attempts, w.truth.last)
}

func (c *client) number() int {
	for i, other := range c.world.clients {
		if other == c {
			return i
		}
	}
	return len(c.world.clients)
}

// readRegister reads a register. A read must see whatever anybody was told before it began.
func (c *client) readRegister(op *operation) {
	w, to, at := c.world, c.at, registerAt(op.register)
	op.void = true
	known := w.truth.acknowledged
	var value string
	call := replica.ReadCall{
		Read: func(v core.View) {
			if r, failure := v.Record(at.space, at.name, 0); failure == nil {
				value = r.Value
			}
			if applied := to.node.Statistics().Applied; applied < known {
				w.violated("a read sees the log up to %d, and somebody knew of %d before", applied, known)
			}
		},
		Done: func(err error) {
			if err != nil {
				c.busy = 0
				c.elsewhere(to)
				return
			}
			w.after(w.delay(), func() {
				c.busy, op.read, op.void, op.returned = 0, value, false, w.now
				c.saw[op.register] = value
			})
		},
	}
	w.after(w.delay(), func() { to.deliver(c.name, replica.Reads{call}) })
}

// check asks whether the registers behaved like registers.
func (h *history) check() {
	var ops [registers][]register.Operation
	for _, op := range h.ops {
		done := op.applied()
		if op.void || op.write != "" && done == nil {
			continue // it did not happen, as the log knows
		}
		returned := op.returned
		if returned == 0 {
			// Nobody was told, but it has happened: for ever open it would cost a
			// judge exponential time.
			returned, op.swapped = done.appliedAt, done.swapped
		}
		h.world.count("register operations")
		ops[op.register] = append(ops[op.register], register.Operation{
			Client: op.client, Write: op.write, Swap: op.swap, Expect: op.expect, Swapped: op.swapped, Read: op.read,
			Called: op.called, Returned: returned,
		})
	}
	for n := range h.begins {
		if !register.Linearizable(h.begins[n], ops[n]) {
			h.world.violated("the history of register %d is not linearizable", n)
		}
	}
}
