package command

// SignedBy returns a command that says on whose behalf it is done as one that a principal signed: what others read as
// the author of a break or a message is who was proven to ask, and not what a client calls itself. The command that
// is given stays as it is.
func SignedBy(c Command, principal string) Command {
	switch c := c.(type) {
	case *Break:
		return signed(c, func(c *Break) { c.By = principal })
	case *Ask:
		return signed(c, func(c *Ask) { c.By = principal })
	case *Move:
		return signed(c, func(c *Move) { c.By = principal })
	case *Acknowledge:
		return signed(c, func(c *Acknowledge) { c.By = principal })
	case *AcknowledgeAlarm:
		return signed(c, func(c *AcknowledgeAlarm) { c.By = principal })
	case *Define:
		return signed(c, func(c *Define) { c.By = principal })
	case *Undefine:
		return signed(c, func(c *Undefine) { c.By = principal })
	case *SetUnits:
		return signed(c, func(c *SetUnits) { c.By = principal })
	case *Drain:
		return signed(c, func(c *Drain) { c.By = principal })
	case *PutTask:
		return signed(c, func(c *PutTask) { c.By = principal })
	case *ReportUse:
		return signed(c, func(c *ReportUse) { c.By = principal })
	case *CancelReservation:
		return signed(c, func(c *CancelReservation) { c.By = principal })
	case *SetCaps:
		return signed(c, func(c *SetCaps) { c.By = principal })
	case *EndQuarantine:
		return signed(c, func(c *EndQuarantine) { c.By = principal })
	case *RaiseTokens:
		return signed(c, func(c *RaiseTokens) { c.By = principal })
	case *ChangeAccess:
		return signed(c, func(c *ChangeAccess) { c.By = principal })
	case *PutRecord:
		if c.By != "" { // only a write that was forced has an author
			return signed(c, func(c *PutRecord) { c.By = principal })
		}
	}
	return c
}

func signed[T any](c *T, sign func(*T)) *T {
	copied := *c
	sign(&copied)
	return &copied
}
