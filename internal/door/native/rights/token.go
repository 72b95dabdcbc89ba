package rights

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// CreateToken makes a token. The secret is made here, or by the caller, and only its hash goes further. A repetition
// finds the token by its id, which the key gives it: its secret was in the first answer and is nowhere else.
func (d *Desk) CreateToken(body *v1.TokenRequest) (out v1.NewToken, err error) {
	token, secret, err := d.newToken(body)
	if err != nil {
		return out, err
	}
	out.Secret = secret
	err = door.Decide(d.Ctx, errBusy, func(bool) (bool, error) {
		p, err := d.toChange()
		if err != nil {
			return false, err
		}
		if old, ok := p.Token(token.ID); ok {
			out.Token = document.FromToken(old)
			return d.madeBefore(old, token, &out)
		}
		out.Token = document.FromToken(token)
		return d.change(p, &core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{token}}, By: body.By,
			Reason: body.Reason}, nil)
	})
	return out, err
}

// madeBefore decides what a request gets whose token exists.
func (d *Desk) madeBefore(old, token *access.Token, out *v1.NewToken) (bool, error) {
	switch {
	case old.Hash == token.Hash && old.Principal == token.Principal:
		return true, nil // by this very request, or by one with the same secret
	case d.Once.Key != "" && old.Principal == token.Principal && out.Secret != "":
		out.Secret = ""
		return true, nil
	}
	return false, &leasehold.Error{Code: leasehold.Refused, Message: "token id " + door.Brief(token.ID) +
		" is used already: choose another, or revoke that token first"}
}

// newToken makes a token of a request, and its secret if the caller did not.
func (d *Desk) newToken(r *v1.TokenRequest) (*access.Token, string, error) {
	by := ""
	if asker := engine.AskerOf(d.Ctx); asker != nil {
		by = asker.Principal
	}
	token, secret, err := document.NewToken(r, by, d.Once.Key, time.Now())
	if err != nil {
		return nil, "", door.Invalid("%v", err)
	}
	name := func(field, s string) error { return door.CheckName(field, s, leasehold.MaxName) }
	text := func(field, s string) error { return door.CheckText(field, s, leasehold.MaxName) }
	return token, secret, door.First(name("principal", r.Principal), name("id", token.ID),
		text("description", r.Description), text("by", r.By), text("reason", r.Reason))
}
