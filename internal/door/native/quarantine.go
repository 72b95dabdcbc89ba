package native

import (
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/outlook"
)

// quarantine shows whether leases are granted yet after a restore.
func (c *call) quarantine() error {
	var out *v1.Quarantine
	if err := c.door.backend.Read(c.ctx, func(v core.View) { out = outlook.Quarantine(v.Quarantine()) }); err != nil {
		return err
	}
	if out == nil {
		out = &v1.Quarantine{}
	}
	return c.sendValue(out)
}

func (c *call) endQuarantine(body *v1.EndQuarantineRequest) error {
	if err := firstError(checkText("by", body.By), checkText("reason", body.Reason)); err != nil {
		return err
	}
	if _, err := c.do(&core.EndQuarantine{Base: body.TokensAbove, By: body.By, Reason: body.Reason}); err != nil {
		return err
	}
	return c.quarantine()
}
