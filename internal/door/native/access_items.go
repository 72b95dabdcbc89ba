package native

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// putItem makes an item, or replaces it. Its name is in the URL, and may be in the body too.
func putItem[T, U any](kind *document.Kind[T, U]) action {
	return sends(func(c *call, body *T) error {
		path := c.path("name")
		if kind.Named != nil && *kind.Named(body) == "" {
			*kind.Named(body) = path
		}
		if given := kind.Key(*body); given != path {
			return invalid("the body is about %s, and the URL about %s: write the same name", brief(given), brief(path))
		}
		item, err := kind.Read(*body)
		if err != nil {
			return invalid("%v", err)
		}
		change, err := c.accessChange()
		if err != nil {
			return err
		}
		change.Put = kind.Items(item)
		if err := firstError(checkName("name", path), change.Validate()); err != nil {
			return err
		}
		if _, err := c.toChangeAccess(); err != nil {
			return err
		}
		if _, err := c.do(change); err != nil {
			return err
		}
		return c.sendValue(kind.Write(item))
	})
}

// accessChange returns a change with what the query says of it.
func (c *call) accessChange() (*core.ChangeAccess, error) {
	by, reason := c.query.Get("by"), c.query.Get("reason")
	return &core.ChangeAccess{Wall: time.Now().UnixNano(), By: by, Reason: reason},
		firstError(checkText("by", by), checkText("reason", reason))
}

// deleteItem removes an item. One that does not exist is an error, so that a typing mistake is noticed.
func deleteItem[T, U any](kind *document.Kind[T, U]) action {
	return asks(func(c *call) error {
		name := c.path("name")
		key, bad := kind.PolicyKey(name)
		if bad != nil {
			return invalid("%v", bad)
		}
		change, err := c.accessChange()
		if err := firstError(checkName("name", name), err); err != nil {
			return err
		}
		*kind.Keys(&change.Remove) = []string{key}
		err = door.Decide(c.ctx, errBusyAccess, func(tried bool) (bool, error) {
			p, err := c.toChangeAccess()
			if err != nil {
				return false, err
			}
			all := p.Items()
			have := all.Keys()
			if !slices.Contains(*kind.Keys(&have), key) {
				if tried || c.once != (core.Request{}) {
					return true, nil // an earlier try may have removed it, at this server or at another
				}
				return false, &leasehold.Error{Code: leasehold.NotFound, Message: "there is no " + kind.Name + " " +
					brief(name)}
			}
			_, err = c.do(change)
			return err == nil, err
		})
		if err != nil {
			return err
		}
		return c.sendValue(v1.Nothing{})
	})
}

// listItems sends one page of the items of a kind, by name.
func listItems[T, U any](kind *document.Kind[T, U]) action {
	return asks(func(c *call) error {
		part, err := c.part()
		if err != nil {
			return err
		}
		p, err := c.asAdmin()
		if err != nil {
			return err
		}
		var all []T
		for _, item := range kind.All(p.Items()) {
			all = append(all, kind.Write(item))
		}
		page := pageOf(all, part, kind.Key)
		if quotas, ok := any(page.Items).([]v1.AccessQuota); ok {
			if err := c.addUse(quotas); err != nil {
				return err
			}
		}
		return c.sendValue(page)
	})
}

// addUse adds to quotas how much of what they limit there is. One of the principal * stands for many, and has none.
func (c *call) addUse(quotas []v1.AccessQuota) error {
	return c.door.backend.Read(c.ctx, func(v core.View) {
		for i := range quotas {
			q := &quotas[i]
			if q.Principal == access.Everybody {
				continue
			}
			use := v.UseOf(&access.Quota{Principal: q.Principal, Namespace: q.Namespace})
			q.Used = &v1.QuotaUse{Leases: int64(use.Leases), Sessions: int64(use.Sessions), Waiters: int64(use.Waiters),
				Records: int64(use.Records), Bytes: int64(use.Bytes)}
		}
	})
}

// createToken makes a token. The secret is made here, or by the caller, and only its hash goes further. A repetition
// finds the token by its id, which the key gives it: its secret was in the first answer and is nowhere else.
func (c *call) createToken(body *v1.TokenRequest) error {
	token, secret, err := c.newToken(body)
	if err != nil {
		return err
	}
	out := v1.NewToken{Secret: secret}
	err = door.Decide(c.ctx, errBusyAccess, func(bool) (bool, error) {
		p, err := c.toChangeAccess()
		if err != nil {
			return false, err
		}
		if old, ok := p.Token(token.ID); ok {
			out.Token = document.FromToken(old)
			return c.madeBefore(old, token, &out)
		}
		out.Token = document.FromToken(token)
		return c.changeAccess(p, &core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{token}}, By: body.By,
			Reason: body.Reason}, nil)
	})
	if err != nil {
		return err
	}
	return c.sendValue(out)
}

// madeBefore decides what a request gets whose token exists.
func (c *call) madeBefore(old, token *access.Token, out *v1.NewToken) (bool, error) {
	switch {
	case old.Hash == token.Hash && old.Principal == token.Principal:
		return true, nil // by this very request, or by one with the same secret
	case c.once.Key != "" && old.Principal == token.Principal && out.Secret != "":
		out.Secret = ""
		return true, nil
	}
	return false, &leasehold.Error{Code: leasehold.Refused, Message: "token id " + brief(token.ID) +
		" is used already: choose another, or revoke that token first"}
}

// newToken makes a token of a request, and its secret if the caller did not.
func (c *call) newToken(r *v1.TokenRequest) (*access.Token, string, error) {
	by := ""
	if asker := engine.AskerOf(c.ctx); asker != nil {
		by = asker.Principal
	}
	token, secret, err := document.NewToken(r, by, c.once.Key, time.Now())
	if err != nil {
		return nil, "", invalid("%v", err)
	}
	return token, secret, firstError(checkName("principal", r.Principal), checkName("id", token.ID),
		checkText("description", r.Description), checkText("by", r.By), checkText("reason", r.Reason))
}
