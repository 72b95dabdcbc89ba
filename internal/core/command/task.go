package command

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/pattern"
)

// PutTask adds a task, or changes one that nobody does at that moment. One that is done or has failed begins again.
type PutTask struct {
	Namespace string
	Path      string // a folder and a name
	Value     string // of its record
	Priority  int
	Attempts  int // that there may be; 0: as many as by default
	By        string
	Request   Request
}

// FinishTask says what became of a task, and ends the lease on it. Only who holds that lease may say so.
type FinishTask struct {
	Namespace string
	ID        string // of the lease
	Token     leasehold.Token
	Failed    bool
	Result    string // or why it failed
	Session   string // that sends it, if the lease is of one
	Request   Request
}

func (c *PutTask) space() string       { return c.Namespace }
func (c *PutTask) request() Request    { return c.Request }
func (c *PutTask) subject() string     { return "put task " + c.Path }
func (c *FinishTask) space() string    { return c.Namespace }
func (c *FinishTask) request() Request { return c.Request }
func (c *FinishTask) subject() string  { return "finish task " + c.ID }

func (c *PutTask) Validate() error {
	err := firstError(name("namespace", c.Namespace), name("path", c.Path), value(c.Value), priority(c.Priority),
		text("by", c.By), c.Request.validate(), noPattern(c.Path, "it cannot be a task"))
	switch {
	case err != nil:
		return err
	case leasehold.TaskFolder(c.Path) == "":
		return invalid("%q is no name of a task: it is a folder, a slash and a name, such as jobs/resize-42", c.Path)
	case c.Attempts < 0 || c.Attempts > leasehold.MaxAttempts:
		return invalid("%d attempts are out of range: 1 to %d are allowed", c.Attempts, leasehold.MaxAttempts)
	}
	return nil
}

func (c *FinishTask) Validate() error {
	err := firstError(name("namespace", c.Namespace), name("lease id", c.ID), text("session", c.Session),
		c.Request.validate())
	switch {
	case err != nil:
		return err
	case c.Token == 0 || c.Token > leasehold.MaxToken:
		return invalid("token %d is out of range: a result needs the token of the lease", c.Token)
	case len(c.Result) > leasehold.MaxResult:
		return invalid("result has %d bytes: at most %d are allowed; put more into a record of its own", len(c.Result),
			leasehold.MaxResult)
	}
	return nil
}

// Attempted returns how often a task may be tried.
func (c *PutTask) Attempted() int {
	if c.Attempts == 0 {
		return leasehold.DefaultAttempts
	}
	return c.Attempts
}

// validateTask refuses an acquire of a task that asks for more than one task can be.
func (c *Acquire) validateTask() error {
	switch {
	case !c.Task:
		return nil
	case !leasehold.IsTaskFolder(c.Resource):
		return invalid("tasks are claimed from a folder, such as jobs/, and %q is none", c.Resource)
	case pattern.In(c.Resource):
		return noPattern(c.Resource, "it has no tasks")
	case len(c.Also) > 0:
		return invalid("a task is claimed alone: leave the other resources out")
	case c.Slots != 0 || c.Capacity != 0 || c.Select != nil:
		return invalid("a task has no slots: leave slots, capacity, where, spread and units out")
	}
	return nil
}
