package kernel

// Freeze returns a copy that stays as it is while the original goes on. The trees are shared
// until one side changes them, so its cost depends on the number of namespaces alone. A frozen
// state can be read from another goroutine; it cannot be applied to. It has no timers, since nothing
// is due in it.
func (s *State) Freeze() *State {
	f := &State{
		frozen: true, subjects: s.subjects,
		now: s.now, wall: s.wall, lead: s.lead, level: s.level, restored: s.restored,
		date: s.date, reservations: s.reservations.Copy(), learning: s.learning.Copy(),
		idle: *s.idle.Copy(), idleSeq: s.idleSeq,
		caps: s.caps, capsSet: s.capsSet, swept: s.swept, forgotten: s.forgotten, totals: s.totals,
		endingSeq: s.endingSeq, answerSeq: s.answerSeq,
		records: s.records.Freeze(), definitions: s.definitions, tasks: s.tasks, alarms: s.alarms.Copy(),
		policy: s.policy, tallies: tallies{*s.tallies.of.Copy()}, revocations: *s.revocations.Copy(),
		withdrawal: s.withdrawal,
	}
	f.chores = *s.chores.Copy()
	s.spaces.Scan(func(name string, sp *space) bool {
		f.spaces.Set(name, sp.freeze())
		return true
	})
	return f
}

func (sp *space) freeze() *space {
	f := *sp
	f.places = [orders]int{} // it is in no ranking
	f.resources, f.claims, f.sessions = *sp.resources.Copy(), sp.claims.copy(), *sp.sessions.Copy()
	f.endedSessions, f.outcomes = *sp.endedSessions.Copy(), *sp.outcomes.Copy()
	f.queue, f.bound = sp.queue.Copy(), sp.bound.Copy()
	f.records = sp.records.Copy()
	f.sharers, f.joint, f.parties, f.definitions = sp.sharers.Copy(), sp.joint.Copy(), sp.parties.Copy(),
		*sp.definitions.Copy()
	f.chores = *sp.chores.Copy()
	f.pools = sp.pools.Copy()
	f.areas = sp.areas.Copy()
	f.tasks = sp.tasks.Copy()
	f.claimOwners, f.recordOwners = *sp.claimOwners.Copy(), *sp.recordOwners.Copy()
	return &f
}
