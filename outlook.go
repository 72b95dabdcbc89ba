package leasehold

// An Outlook is what can be said about the end of a lease that somebody holds. What remains of a
// lease is not how long it will be held: a holder that is alive renews it, and most release it
// before. Every text for people says it in these words.
type Outlook struct {
	Left  string // until time ends it, as people write it; empty: time does not
	Final bool   // no renewal moves that end: it is being broken, or reaches its hold limit
	Usual string // how long the resource is usually held; empty: not known
}

// When returns when the lease ends, such as "in 29s unless renewed".
func (o Outlook) When() string {
	switch {
	case o.Left == "":
		return "when it is released or broken"
	case o.Final:
		return "in " + o.Left + " at the latest"
	}
	return "in " + o.Left + " unless renewed"
}

// String returns it as a part of a sentence whose subject is the lease, such as "ends in 29s
// unless renewed; usually held for 4m".
func (o Outlook) String() string {
	text := "ends " + o.When()
	if o.Left == "" {
		text = "has no TTL, and " + text
	}
	if o.Usual != "" {
		text += "; usually held for " + o.Usual
	}
	return text
}
