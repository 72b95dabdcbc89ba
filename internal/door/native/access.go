package native

import (
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door/native/rights"
)

// maxAccess is how large a document may be: as many items as one change may have fit in.
const maxAccess = 1 << 20

// changeAccess is how the journal calls every change of who may do what.
const changeAccess = "change-access"

// desk is where a call about who may do what is served.
func (c *call) desk() *rights.Desk {
	return &rights.Desk{Backend: c.door.backend, Ctx: c.ctx, Once: c.once, Do: c.do}
}

// sendOr sends a value, unless there was none.
func (c *call) sendOr(value any, err error) error {
	if err != nil {
		return err
	}
	return c.sendValue(value)
}

func (c *call) access() error { return c.sendOr(c.desk().Access()) }

func (c *call) applyAccess(body *v1.ApplyAccessRequest) error {
	if err := firstError(checkText("by", body.By), checkText("reason", body.Reason)); err != nil {
		return err
	}
	return c.sendOr(c.desk().Apply(body, rights.Sender{Address: c.address(), Direct: c.direct()}))
}

// question reads what may be done or not.
func (c *call) question() (document.Question, error) {
	name, path := c.query.Get("verb"), c.query.Get("path")
	verb, ok := access.VerbOf(name)
	if !ok {
		return document.Question{}, invalid("unknown verb %s; known verbs: %s", brief(name),
			strings.Join(access.Names(), ", "))
	}
	return document.Question{Verb: verb, Namespace: c.namespace, Path: path}, checkText("path", path)
}

func (c *call) canI() error {
	question, err := c.question()
	id := c.query.Get("id")
	if err := firstError(err, checkText("id", id)); err != nil {
		return err
	}
	return c.sendOr(c.desk().CanI(question, id, c.query.Get("as"), c.query.Values["group"]))
}

func (c *call) whoCan() error {
	question, err := c.question()
	if err != nil {
		return err
	}
	return c.sendOr(c.desk().WhoCan(question))
}

func (c *call) whoami() error {
	out, err := c.desk().Whoami()
	if err == nil && c.proof != nil {
		out.Credential = string(c.proof.Kind)
		if ends := c.proof.Expires; !ends.IsZero() {
			out.Expires = &v1.Time{Time: ends}
		}
	}
	return c.sendOr(out, err)
}

func (c *call) createToken(body *v1.TokenRequest) error { return c.sendOr(c.desk().CreateToken(body)) }

// accessChange returns a change with what the query says of it.
func (c *call) accessChange() (*core.ChangeAccess, error) {
	by, reason := c.query.Get("by"), c.query.Get("reason")
	return &core.ChangeAccess{Wall: time.Now().UnixNano(), By: by, Reason: reason},
		firstError(checkText("by", by), checkText("reason", reason))
}

func putItem[T, U any](kind *document.Kind[T, U]) action {
	return sends(func(c *call, body *T) error {
		change, err := c.accessChange()
		if err != nil {
			return err
		}
		return c.sendOr(rights.Put(c.desk(), kind, c.path("name"), body, change))
	})
}

func deleteItem[T, U any](kind *document.Kind[T, U]) action {
	return asks(func(c *call) error {
		change, err := c.accessChange()
		if err != nil {
			return err
		}
		return c.sendOr(v1.Nothing{}, rights.Delete(c.desk(), kind, c.path("name"), change))
	})
}

// listItems sends one page of the items of a kind, by name.
func listItems[T, U any](kind *document.Kind[T, U]) action {
	return asks(func(c *call) error {
		part, err := c.part()
		if err != nil {
			return err
		}
		all, err := rights.List(c.desk(), kind)
		if err != nil {
			return err
		}
		page := pageOf(all, part, kind.Key)
		if quotas, ok := any(page.Items).([]v1.AccessQuota); ok {
			if err := c.desk().AddUse(quotas); err != nil {
				return err
			}
		}
		return c.sendValue(page)
	})
}
