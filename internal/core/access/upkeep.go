package access

// A Declaration is the file that a server applied last: by it servers whose files differ find out, and do not undo
// each other's. Without a hash there is none.
type Declaration struct {
	Hash   string // of the file
	Server string // that applied it
}

// Declares reports whether a file is another one than the one that was applied last.
func (p *Policy) Declares(d Declaration) bool { return d.Hash != "" && (p == nil || p.Declared != d) }

// A Use is about when a token was last used.
type Use struct {
	ID   string
	Wall int64 // Unix nanoseconds
}

// SameRules reports whether everybody may do the same by another policy, since that differs in the use of tokens alone.
// What was found out by one holds by the other: tokens are used all the time, and to judge everybody anew for each
// note of that would cost far more than the notes.
func (p *Policy) SameRules(o *Policy) bool {
	return p == o || p != nil && o != nil && p.rules != nil && p.rules == o.rules
}

// WithUses returns the policy with what is newer about the use of its tokens. It has the same revision: nobody may do
// anything else by it.
func (p *Policy) WithUses(uses []Use) *Policy {
	n := p
	for _, use := range uses {
		if p == nil {
			break
		}
		t, ok := n.tokens.Get(use.ID)
		if !ok || t.UsedWall >= use.Wall {
			continue
		}
		if n == p {
			n = p.copy()
			if n.rules == nil {
				n.rules = new(rules)
			}
		}
		used := *t
		used.UsedWall = use.Wall
		n.putToken(&used)
	}
	return n
}
