package native

import (
	"strconv"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/filter"
)

// look reads the state, and tells the caller at which revision.
func (c *call) look(fn func(core.View)) error {
	err := c.door.backend.Read(c.ctx, func(v core.View) {
		c.newest = v.History(c.namespace).Revision
		fn(v)
	})
	if err == nil {
		c.tell(v1.RevisionHeader, strconv.FormatUint(uint64(c.newest), 10))
	}
	return err
}

// sendPage sends a page of a list. RESP, which has no headers, has the revision in it.
func sendPage[T any](c *call, items []T, next string, write func(*encode.Buffer, *T)) error {
	c.send(func(b *encode.Buffer) {
		b.Open()
		encode.Array(b, "items", items, func(v *T) { write(b, v) })
		b.Some("next", next)
		if b.RESP() {
			b.Number("revision", uint64(c.newest))
		}
		b.Close()
	})
	return nil
}

func (c *call) session() error {
	id := c.path("id")
	if err := checkName("session id", id); err != nil {
		return err
	}
	var session leasehold.Session
	var gone *leasehold.Error
	if err := c.look(func(v core.View) { session, gone = v.Session(c.namespace, id) }); err != nil {
		return err
	}
	if gone != nil {
		return gone
	}
	return c.sendSession(&session, "")
}

func (c *call) sessions() error {
	part, err := c.part()
	if err != nil {
		return err
	}
	var list []leasehold.Session
	var next string
	err = c.look(func(v core.View) { list, next = v.Sessions(c.namespace, part.prefix, part.after, part.limit) })
	if err != nil {
		return err
	}
	return sendPage(c, list, cursor(next), func(b *encode.Buffer, s *leasehold.Session) { b.Session(s, "", nil) })
}

func (c *call) resource() error {
	path := c.path("path")
	if err := checkPath("resource", path); err != nil {
		return err
	}
	waiters, err := c.number("queue", v1.DefaultLimit, v1.MaxLimit)
	if err != nil {
		return err
	}
	var status leasehold.Status
	if err := c.look(func(v core.View) { status = v.Status(c.namespace, path, waiters) }); err != nil {
		return err
	}
	c.send(func(b *encode.Buffer) { b.Resource(&status) })
	return nil
}

func (c *call) resources() error {
	part, badPart := c.part()
	all, badAll := c.flag("all")
	picked, badFilter := filter.Read(c.query)
	if err := firstError(badPart, badAll, badFilter); err != nil {
		return err
	}
	query := core.ListQuery{Prefix: part.prefix, After: part.after, Most: part.limit, All: all, Filter: picked}
	var list []leasehold.Status
	var next string
	err := c.look(func(v core.View) { list, next = v.Find(c.namespace, query) })
	if err != nil {
		return err
	}
	return sendPage(c, list, cursor(next), (*encode.Buffer).Resource)
}

// namespaces lists those that exist and in which the asker may do anything. They are few: the cluster has a limit.
func (c *call) namespaces() error {
	part, bad := c.part()
	var all []v1.Namespace
	err := c.door.backend.Read(c.ctx, func(v core.View) {
		for _, name := range v.Namespaces() {
			all = append(all, v1.Namespace{Namespace: name})
		}
	})
	if err := firstError(bad, err); err != nil {
		return err
	}
	return c.sendValue(pageOf(all, part, func(n v1.Namespace) string { return n.Namespace }))
}

// maxLook is how many events one page of history may pass over: a page may be short and still have
// a next one.
const maxLook = 100000

func (c *call) history() error {
	resource := c.query.Get("resource")
	if resource != "" || c.query.Has("resource") {
		if err := checkPath("resource", resource); err != nil {
			return err
		}
	}
	limit, badLimit := c.number("limit", v1.DefaultLimit, v1.MaxLimit)
	before, badBefore := c.before()
	if err := firstError(badLimit, badBefore); err != nil {
		return err
	}
	var history core.History
	if err := c.look(func(v core.View) { history = v.History(c.namespace) }); err != nil {
		return err
	}
	page := lastEvents(history, before, resource, limit)
	c.send(func(b *encode.Buffer) { b.Page(page) })
	return nil
}

// before reads where a page ends. A revision alone is the beginning of it.
func (c *call) before() (v1.Position, error) {
	at, err := position("before", c.query.Get("before"))
	if at.N == v1.Whole {
		at.N = 0
	}
	return at, err
}

// lastEvents finds the newest events before a position. It reads a history that
// nobody changes, so that however long it takes, no command waits.
func lastEvents(h core.History, before v1.Position, resource string, limit int) (found encode.Page) {
	wanted := func(e *leasehold.Event) bool { return resource == "" || e.Resource == resource }
	events, at, more := h.Last(leasehold.Revision(before.Revision), before.N, limit, maxLook, wanted)
	found.Events = events
	if more {
		found.Next = v1.Position{Revision: uint64(at.Revision), N: at.N}.String()
	} else {
		lost, _ := h.Oldest()
		found.Gone = lost > 0
	}
	return found
}
