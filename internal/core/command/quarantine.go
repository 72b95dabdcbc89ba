package command

// EndQuarantine ends the quarantine after a restore early.
type EndQuarantine struct {
	// Base names the restore, so that a late retry does not end the quarantine of another one; 0:
	// whichever there was.
	Base   uint64
	By     string
	Reason string
}

func (*EndQuarantine) space() string    { return "" }
func (*EndQuarantine) request() Request { return Request{} } // it is idempotent
func (*EndQuarantine) subject() string  { return "" }

func (c *EndQuarantine) Validate() error {
	if c.Reason == "" {
		return invalid("reason is empty: say how you know that nobody still holds a lease from before the restore")
	}
	return firstError(text("by", c.By), text("reason", c.Reason))
}
