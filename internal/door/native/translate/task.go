package translate

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/api/v1/tasks"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// PutTask adds a task. A claim of one needs no operation of its own: it is an acquire of a folder.
func (c Command) PutTask(r *tasks.PutRequest) (*core.PutTask, error) {
	command := &core.PutTask{Namespace: c.Namespace, Path: c.Path, Value: string(r.Value), Priority: r.Priority,
		Attempts: r.Attempts, By: r.By, Request: c.Once}
	return command, door.First(Path("path", command.Path), Text("by", r.By))
}

// FinishTask says what became of a task.
func (c Command) FinishTask(r *tasks.FinishRequest) (*core.FinishTask, error) {
	if r.Outcome != tasks.Done && r.Outcome != tasks.Failed {
		return nil, door.Invalid("outcome is %s: it is %s or %s", door.Brief(r.Outcome), tasks.Done, tasks.Failed)
	}
	command := &core.FinishTask{Namespace: c.Namespace, ID: r.ID, Token: leasehold.Token(r.Token), Result: r.Result,
		Failed: r.Outcome == tasks.Failed, Session: r.Session, Request: c.Once}
	return command, door.First(Name("id", r.ID), Text("session", r.Session),
		door.CheckText("result", r.Result, leasehold.MaxResult))
}
