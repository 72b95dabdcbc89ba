package wire

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// taskStates are how far a task may have come.
var taskStates = choice{uint8(leasehold.TaskTodo), uint8(leasehold.TaskFailed)}

// task leaves out the namespace, which is that of its record.
func (c *codec) task(v *leasehold.Task) {
	c.text("path", &v.Path)
	c.oneOf("state", (*uint8)(&v.State), taskStates)
	c.number("priority", &v.Priority)
	c.number("attempts", &v.Attempts)
	c.number("max attempts", &v.MaxAttempts)
	c.text("lease", &v.Lease)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.text("result", &v.Result)
	c.moment("changed", &v.Changed)
	c.unsigned("order", &v.Order)
}

// claimTask adds nothing to a claim but that it is of a task, which its kind says.
func (c *codec) claimTask(v *core.Claim) {
	if v.Terms == nil {
		c.fail("terms", "they are missing, and say that it is of a task")
		return
	}
	v.Terms.Task = true
}
