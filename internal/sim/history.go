package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/cluster"
)

// A history is what clients did with a few registers, for Porcupine to judge.
type history struct {
	world *World
	ops   []*operation
}

type operation struct {
	client   int
	register int
	write    string // empty: a read
	read     string
	called   time.Duration
	returned time.Duration // 0: nobody knows
	attempt  *attempt      // of a write
	void     bool          // it did not happen
}

// maxOperations bounds a history: judging it takes exponential time at the worst.
const maxOperations = 1000

// useRegister writes to a register, or reads one.
func (c *client) useRegister() {
	w := c.world
	// One after the other: so few are open at a time that a judge comes to an end.
	if len(w.history.ops) >= maxOperations || c.busy > w.now {
		return
	}
	c.busy = w.now + 12*time.Second
	c.made++
	op := &operation{client: c.made*100 + c.number(), register: w.random.IntN(registers), called: w.now}
	w.history.ops = append(w.history.ops, op)
	path := fmt.Sprint("register", op.register)
	if w.chance(50) {
		c.readRegister(op, path)
		return
	}
	op.write = fmt.Sprint(c.name, ".", c.made)
	c.call(&core.PutRecord{Namespace: namespace, Path: path, Value: op.write}, reaction{reply: func(_ *attempt, _ core.Answer, err error) {
		c.busy = 0
		op.void = errors.Is(err, leasehold.ErrUnavailable)
		if err == nil {
			op.returned = w.now
		} else if !errors.Is(err, leasehold.ErrUndecided) && !op.void {
			w.violated("a register can not be written: %v", err)
		}
	}})
	op.attempt = w.truth.last
}

func (c *client) number() int {
	for i, other := range c.world.clients {
		if other == c {
			return i
		}
	}
	return len(c.world.clients)
}

// readRegister reads what is there. A read must see whatever anybody was told before.
func (c *client) readRegister(op *operation, path string) {
	w, to := c.world, c.at
	op.void = true
	known := w.truth.acknowledged
	var value string
	call := cluster.ReadCall{
		Read: func(v core.View) {
			if r, failure := v.Record(namespace, path, 0); failure == nil {
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
			w.after(w.delay(), func() { c.busy, op.read, op.void, op.returned = 0, value, false, w.now })
		},
	}
	w.after(w.delay(), func() { to.deliver(c.name, cluster.Reads{call}) })
}

// check asks Porcupine whether the registers behaved like registers.
func (h *history) check() {
	var ops []porcupine.Operation
	for _, op := range h.ops {
		if op.void || op.write != "" && op.returned == 0 && op.attempt.applied == 0 {
			continue // it did not happen, as the log knows
		}
		returned := op.returned
		if returned == 0 {
			// Nobody was told, but it has happened: for ever open it would cost a
			// judge exponential time.
			returned = op.attempt.appliedAt
		}
		ops = append(ops, porcupine.Operation{ClientId: op.client, Input: op, Output: op, Call: int64(op.called), Return: int64(returned)})
	}
	h.world.counts["register operations"] += len(ops)
	if !porcupine.CheckOperations(register, ops) {
		h.world.violated("the history of the registers is not linearizable")
	}
}

var register = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, registers)
		for _, o := range all {
			n := o.Input.(*operation).register
			parts[n] = append(parts[n], o)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		op := input.(*operation)
		if op.write != "" {
			return true, op.write
		}
		return op.read == state.(string), state
	},
	Equal: func(a, b any) bool { return a == b },
}
