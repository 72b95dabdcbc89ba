package cluster

// Planted are mistakes in the real code paths, each of which a simulation must find: a
// simulator that finds nothing is worth as much as the mistakes that it would find.
// They are off in a server. Nothing but the simulator's own tests can set one: Config
// has no field for them.
type Planted struct {
	// AnswerBeforeSync takes a write for durable as soon as it has begun.
	AnswerBeforeSync bool
	// MarkBeforeSave tells the log of a snapshot whose file is not durable yet.
	MarkBeforeSave bool
	// StampBeforeSeal stamps a batch with the time at which the one before it was sealed.
	StampBeforeSeal bool
	// StampGoesBack fixes the clock by what was known at the start, not by all that is applied.
	StampGoesBack bool
	// AnyBoot goes on counting by a Lead of its own from another boot of the machine.
	AnyBoot bool
	// WallTime asks the calendar how long nobody led.
	WallTime bool

	// The rest needs several nodes.

	// AcknowledgeBeforeSync lets a follower acknowledge what its disk does not have yet.
	AcknowledgeBeforeSync bool
	// ReadJoinsRound lets a reader join a round that has begun.
	ReadJoinsRound bool
	// LostIsRefused says that nothing happened when nobody knows.
	LostIsRefused bool
}
