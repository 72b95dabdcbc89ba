package native

import (
	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// raiseTokens makes the tokens of a namespace go on above one that was seen elsewhere. Tokens only grow:
// that they are above it, once read, stays true, and then nothing is written.
func (c *call) raiseTokens(body *v1.RaiseTokensRequest) error {
	command := &core.RaiseTokens{Namespace: c.namespace, Above: leasehold.Token(body.Above), By: body.By,
		Reason: body.Reason}
	// Tokens that are above it already take no command, and then no engine judges one.
	err := firstError(checkText("by", body.By), checkText("reason", body.Reason), command.Validate())
	if err != nil {
		return err
	}
	newest, err := c.newestToken()
	if err != nil {
		return err
	}
	raise := newest < command.Above
	if raise {
		if _, err := c.do(command); err != nil {
			return err
		}
		if newest, err = c.newestToken(); err != nil {
			return err
		}
	}
	return c.sendValue(&v1.Tokens{Namespace: c.namespace, Newest: uint64(newest), Raised: raise})
}

func (c *call) newestToken() (newest leasehold.Token, err error) {
	err = c.door.backend.Read(c.ctx, func(v core.View) { newest = v.NewestTokenIn(c.namespace) })
	return newest, err
}
