package native

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

// task shows one task, with what is to be done.
func (c *call) task() error {
	path := c.path("path")
	if err := checkPath("path", path); err != nil {
		return err
	}
	var task leasehold.Task
	var record *leasehold.Record
	var known bool
	err := c.look(func(v core.View) {
		if task, known = v.Task(c.namespace, path); known {
			record, _ = v.Record(c.namespace, path, 0)
		}
	})
	switch {
	case err != nil:
		return err
	case !known:
		return &leasehold.Error{Code: leasehold.NotFound, Message: "no task " + path}
	}
	c.send(func(b *encode.Buffer) { b.Task(&task, record) })
	return nil
}

func (c *call) tasks() error {
	part, err := c.part()
	if err != nil {
		return err
	}
	q := core.TaskQuery{Prefix: part.prefix, After: part.after, Most: part.limit}
	if text := c.query.Get("state"); text != "" {
		var ok bool
		if q.State, ok = leasehold.ParseTaskState(text); !ok {
			return invalid("state is %s: it is todo, doing, done or failed", brief(text))
		}
	}
	var list []leasehold.Task
	var next string
	if err := c.look(func(v core.View) { list, next = v.Tasks(c.namespace, q) }); err != nil {
		return err
	}
	return sendPage(c, list, cursor(next), func(b *encode.Buffer, t *leasehold.Task) { b.Task(t, nil) })
}
