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
	// NewestRoundOnly takes no answer to a round after which another one was asked.
	NewestRoundOnly bool
	// AppliesDifferently lets the nodes of even ids make something else of the same log.
	AppliesDifferently bool
	// LostIsRefused says that nothing happened when nobody knows.
	LostIsRefused bool
	// ServeBeforeLead serves as soon as raft says that this node leads.
	ServeBeforeLead bool
	// StaleLead goes on counting as this node did when it last led, whoever did since.
	StaleLead bool
	// ForwardStamped lets raft carry stamped entries to another leader, and takes them
	// whatever term they were stamped for.
	ForwardStamped bool
	// ForgetVote does not write down whom a node voted for.
	ForgetVote bool
	// ReadByFlag reads without asking whether this node still leads.
	ReadByFlag bool
	// TellUnserved tells others how far the log is committed before this node serves.
	TellUnserved bool
	// KeepsArrival counts on from what was received before a snapshot was.
	KeepsArrival bool
	// StaleSnapshot leaves the newest entry out of a snapshot.
	StaleSnapshot bool
	// RelayAnyTerm answers from whatever stands where a relayed command was put.
	RelayAnyTerm bool
	// SameNonce counts questions to others from the same number at each start.
	SameNonce bool
	// TimeFromTerm counts on from when this node was elected, not from when it received
	// the last stamp.
	TimeFromTerm bool

	// AnswerBeforeCommit answers what a command would come to, before it is kept.
	AnswerBeforeCommit bool
	// TakeUnknown takes commands of other nodes without looking at them.
	TakeUnknown bool
	// RelayAgain passes on once more what a lost leader may have got.
	RelayAgain bool
	// NeverAnswers forgets those whose commands the next leader never got.
	NeverAnswers bool

	// The rest needs members that come and go.

	// AnswerUnsettled answers a change of the members that can still be forgotten.
	AnswerUnsettled bool
	// LeaveUnsettled lets a server go whose removal can still be forgotten.
	LeaveUnsettled bool
	// ReuseID gives the id of a removed server to the next one.
	ReuseID bool
	// AdmitAnyDir lets a server in that comes back without its data.
	AdmitAnyDir bool
	// LearnerVotes counts the votes of servers that have none yet.
	LearnerVotes bool
	// RemovedVotes counts the votes of servers that were removed.
	RemovedVotes bool
	// StaleRoster saves a state with the members that there were at the start.
	StaleRoster bool
	// PromoteEarly gives servers a vote that have nothing of the log yet.
	PromoteEarly bool
	// KeepsLead lets a leader go on that was removed.
	KeepsLead bool
	// NoRoomIsTheEnd stops a node whose snapshot finds no room.
	NoRoomIsTheEnd bool
	// RaiseUnready raises the level although a member does not know it.
	RaiseUnready bool
	// BehindOfTwo lets one of two send what is not on its own disk.
	BehindOfTwo bool
	// OnlyOwnSnapshots takes no snapshot that is older than this node's membership.
	OnlyOwnSnapshots bool
}
