package command

// SignedBy returns a command that says on whose behalf it is done as one that a principal signed: what others read as
// the author of a break or a message is who was proven to ask, and not what a client calls itself. The command that
// is given stays as it is.
func SignedBy(c Command, principal string) Command {
	if authored, ok := c.(interface{ signed(by string) Command }); ok {
		return authored.signed(principal)
	}
	return c
}

// Each of these gets a copy of the command.

func (c Break) signed(by string) Command             { c.By = by; return &c }
func (c Ask) signed(by string) Command               { c.By = by; return &c }
func (c Move) signed(by string) Command              { c.By = by; return &c }
func (c Acknowledge) signed(by string) Command       { c.By = by; return &c }
func (c AcknowledgeAlarm) signed(by string) Command  { c.By = by; return &c }
func (c Define) signed(by string) Command            { c.By = by; return &c }
func (c Undefine) signed(by string) Command          { c.By = by; return &c }
func (c SetUnits) signed(by string) Command          { c.By = by; return &c }
func (c Drain) signed(by string) Command             { c.By = by; return &c }
func (c PutTask) signed(by string) Command           { c.By = by; return &c }
func (c ReportUse) signed(by string) Command         { c.By = by; return &c }
func (c CancelReservation) signed(by string) Command { c.By = by; return &c }
func (c SetCaps) signed(by string) Command           { c.By = by; return &c }
func (c EndQuarantine) signed(by string) Command     { c.By = by; return &c }
func (c RaiseTokens) signed(by string) Command       { c.By = by; return &c }
func (c ChangeAccess) signed(by string) Command      { c.By = by; return &c }

func (c *PutRecord) signed(by string) Command {
	if c.By == "" { // only a write that was forced has an author
		return c
	}
	forced := *c
	forced.By = by
	return &forced
}
