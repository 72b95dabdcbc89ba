package command

import "github.com/leasehold/leasehold"

// RaiseTokens makes the tokens of a namespace go on above one that somebody has seen elsewhere, such as
// the newest of a store that this cluster takes over from. They only grow: if they are above it, nothing
// changes.
type RaiseTokens struct {
	Namespace string
	Above     leasehold.Token
	By        string
	Reason    string
}

func (c *RaiseTokens) space() string    { return c.Namespace }
func (c *RaiseTokens) request() Request { return Request{} } // it is idempotent
func (c *RaiseTokens) subject() string  { return "" }

func (c *RaiseTokens) Validate() error {
	switch {
	case c.Above == 0:
		return invalid("above is missing: give the largest token that was seen")
	case c.Above > leasehold.MaxRaise:
		return invalid("above is %d, and tokens can be raised to %d at most: nothing lowers them again, and there is "+
			"no token after %d", c.Above, leasehold.MaxRaise, leasehold.MaxToken)
	case c.Reason == "":
		return invalid("reason is empty: say where that token was seen")
	}
	return firstError(name("namespace", c.Namespace), text("by", c.By), text("reason", c.Reason))
}
