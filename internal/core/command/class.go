package command

import "slices"

// A Class says what a command does to what is there, and so what may refuse it: a disk without room, a budget that
// is spent, a quota. Nobody may lose a lease because others ask for much.
type Class uint8

// The classes of commands.
const (
	// Adds puts something that stays. A disk that is nearly full refuses it, and so does a budget that is spent.
	Adds Class = iota + 1
	// Alters changes what is there, or removes it. A budget that is spent refuses it.
	Alters
	// Keeps says that a holder lives. Nothing refuses it for lack of room or time, and nobody asks later who sent it.
	Keeps
	// Ends gives back what somebody has, and so makes room.
	Ends
	// Governs is about the cluster, and comes from who runs it.
	Governs
	// Internal comes from the servers themselves.
	Internal
)

// ClassOf returns the class of a command, which need not be that of its verb: to put the record of a lease again
// renews the lease, and a transaction that adds nothing only alters.
func ClassOf(c Command) Class {
	if own, ok := c.(interface{ class() Class }); ok {
		return own.class()
	}
	return VerbOf(c).Class
}

func (c *PutRecord) class() Class {
	if c.Renews() {
		return Keeps
	}
	return Adds
}

func (c *Txn) class() Class {
	if slices.ContainsFunc(c.Then, adds) || slices.ContainsFunc(c.Else, adds) {
		return Adds
	}
	return Alters
}

// adds reports whether an operation adds something: deletions and releases go on when a disk is full, whichever way
// they come.
func adds(o Op) bool {
	return o.Do == Put || o.Do == AcquireLease || o.Do == Nested && ClassOf(o.Txn) == Adds
}

// KeepsOrEnds reports whether a holder keeps what it has by a command, or gives it back.
func KeepsOrEnds(c Command) bool {
	class := ClassOf(c)
	return class == Keeps || class == Ends
}

// IsRoutine reports whether a command is of a verb that comes all the time and of itself: renewals and ticks are by far
// the most in a log. That one came too late shows in the end of its lease.
func IsRoutine(c Command) bool {
	class := VerbOf(c).Class
	return class == Keeps || class == Internal
}
