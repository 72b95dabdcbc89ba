package kernel

// renew makes a lease last for its TTL from the stamp. touch has ended the lease first if it
// was over by then, so a renewal never revives anything: its caller is told that the lease is
// lost, even if no tick has collected it yet. The end of a break and the hold limit are not
// moved; Claim.end takes the earliest of the three.
func (t *turn) renew(c *Renew) Answer {
	sp := t.space(c.Namespace)
	claim := t.touch(sp, c.ID)
	if c.Note != nil && claim != nil && !claim.Waiting() {
		claim = t.note(sp, claim, *c.Note)
	}
	switch {
	case claim == nil:
		return t.noClaim(sp, c.ID)
	case claim.Waiting():
		return t.waiterAnswer(sp, t.stillWanted(sp, claim))
	case claim.Session != "":
		// The session's deadline is the only one that such a lease has: moving it renews
		// everything else that is bound to the session as well.
		session, _ := sp.sessions.Get(claim.Session)
		t.extend(sp, session)
	case claim.TTL != 0:
		// No revision and no event: renewals are most of what a cluster does, and they would
		// push everything else out of history.
		longer := *claim
		longer.Gap = max(longer.Gap, t.gap(claim.TTL, claim.Expires))
		longer.Expires = t.now.Add(claim.TTL)
		t.put(sp, &longer)
		t.lateLease(sp, claim, &longer)
		claim = &longer
	}
	return t.leaseAnswer(sp, claim)
}

// note keeps what a holder says of its work. Like the renewal that brought it, it is no event and
// has no revision: it is for people who look now.
func (t *turn) note(sp *space, c *Claim, text string) *Claim {
	noted := *c
	terms := c.terms()
	if terms.Note, terms.NotedWall = text, t.wall; text == "" {
		terms.NotedWall = 0
	}
	noted.setTerms(terms)
	t.put(sp, &noted)
	return &noted
}
