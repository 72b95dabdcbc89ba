// Package register judges whether what was read from and written to a register can be explained by one order of all
// of it. Porcupine does, which knows nothing of this system.
package register

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// An Operation is one call, with when it was called and when it returned.
type Operation struct {
	Client   int
	Write    string // empty: a read
	Swap     bool   // it writes only if Expect is there
	Expect   string
	Swapped  bool
	Read     string
	Called   time.Duration
	Returned time.Duration
}

// Linearizable reports whether there is an order of operations on a register that explains them. begins is what was
// there before.
func Linearizable(begins string, list []Operation) bool {
	var ops []porcupine.Operation
	for _, op := range list {
		ops = append(ops, porcupine.Operation{ClientId: op.Client, Input: op, Output: op, Call: int64(op.Called),
			Return: int64(op.Returned)})
	}
	return porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return begins }, Step: step, Equal: func(a, b any) bool { return a == b },
	}, ops)
}

func step(state, input, _ any) (bool, any) {
	op := input.(Operation)
	switch {
	case op.Swap:
		there := op.Expect == state.(string)
		if there {
			state = op.Write
		}
		return there == op.Swapped, state
	case op.Write != "":
		return true, op.Write
	}
	return op.Read == state.(string), state
}
