package native

import (
	"fmt"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// quarantine shows whether leases are granted yet after a restore.
func (c *call) quarantine() error {
	var out *v1.Quarantine
	if err := c.door.backend.Read(c.ctx, func(v core.View) { out = toQuarantine(v.Quarantine()) }); err != nil {
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

// toQuarantine returns nil if there is none.
func toQuarantine(q core.Quarantine, active bool) *v1.Quarantine {
	if !active {
		return nil
	}
	left := v1.Duration(q.Left.Round(time.Millisecond))
	out := &v1.Quarantine{Active: true, Remaining: &left, Backup: &v1.Time{Time: q.Backup}, TokensAbove: q.Base}
	if !q.Ends.IsZero() {
		out.Ends = &v1.Time{Time: q.Ends}
	}
	return out
}

// quarantineWarning is what /readyz says of a quarantine; empty if there is none.
func quarantineWarning(q core.Quarantine, active bool) string {
	if !active {
		return ""
	}
	return fmt.Sprintf("quarantine: nothing is granted for another %s, since this cluster was restored from a backup. "+
		"To end it early: leasehold cluster end-quarantine", q.Left.Round(time.Second))
}
