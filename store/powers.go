package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/leasehold/leasehold"
)

// A Power is something that not every store can do. Features.Powers lists those of a store. Some are
// interfaces that the store implements, and some are fields of a request that it understands.
type Power string

// The powers with an interface.
const (
	SessionPower    Power = "sessions"    // Sessions
	WatchPower      Power = "watch"       // Watcher
	RecordPower     Power = "records"     // Records
	ChangePower     Power = "change"      // Changer
	MessagePower    Power = "messages"    // Messenger
	NotePower       Power = "notes"       // Noter
	HistoryPower    Power = "history"     // Historian
	DefinitionPower Power = "definitions" // Definer
	MovePower       Power = "move"        // Mover
)

// The powers that are fields of a request.
const (
	FairQueue    Power = "a fair queue"    // waiters are granted in the order of their arrival
	Slots        Power = "slots"           // Request.Slots, Shared and Capacity
	Several      Power = "several at once" // Request.Also
	Selection    Power = "selecting units" // Request.Select
	Reservations Power = "reservations"    // Request.Reservation
	Priority     Power = "priority"
	Grace        Power = "grace"
	HoldLimit    Power = "hold limit"
	Parties      Power = "deadlock detection" // Request.Party
	BreakPeriod  Power = "break period"       // BreakRequest.Period
	ValueInLease Power = "value"              // Request.Value
	Detached     Power = "detached leases"    // a lease lives on without the process that acquired it
)

// Sessions binds leases to a promise of liveness: one message renews all of them, and they end
// with it at the same moment.
//
// A living session is not a living lease: others may break one, or give it to somebody else. Every
// answer about a session therefore counts such interventions, at the moment when it was decided.
type Sessions interface {
	// OpenSession is idempotent by id.
	OpenSession(ctx context.Context, id string, ttl time.Duration, labels leasehold.Labels) (SessionAnswer, error)

	// RenewSession renews a session and what is bound to it. seen is the count of interventions that
	// the caller knows: only later ones are named.
	RenewSession(ctx context.Context, id string, seen uint64) (SessionAnswer, error)

	// CloseSession ends a session and releases what is bound to it.
	CloseSession(ctx context.Context, id string) error
}

// A SessionAnswer is a session that goes on.
type SessionAnswer struct {
	Remaining     time.Duration
	Counted       bool     // whether the store counts interventions; the client rechecks each lease if not
	Interventions uint64   // how often others broke, ended or changed a lease of the session
	Intervened    []string // the ids of the last ones, the newest last
}

// A Watcher tells what happens.
type Watcher interface {
	// Watch yields events until ctx ends or the stream fails. If the events since q.Since are no
	// longer known, the error is Lost.
	Watch(ctx context.Context, q WatchQuery) iter.Seq2[leasehold.Event, error]
}

// A WatchQuery says which events to yield.
type WatchQuery struct {
	Prefix  string // of resources
	Session string // instead of it: the prefix of the ids of sessions
	Since   string // a position; empty: from now on

	// Interventions says that what the sessions do themselves need not be shown.
	Interventions bool

	Started func()                // called once the stream has begun, before the first event
	Passed  func(position string) // called after each event; a later Watch may continue there
}

// Records keeps values beside leases.
type Records interface {
	Get(ctx context.Context, path string) (Record, error) // NotFound if there is none
	Put(ctx context.Context, r PutRequest) error
	Delete(ctx context.Context, path string, fence Fence) error
}

// A Record is a named value.
type Record struct {
	Value []byte
	Token leasehold.Token // of the fence under which it was written
}

// A PutRequest writes a record.
type PutRequest struct {
	Path    string
	Value   []byte
	Session string // it ends with this session
	Fence   Fence
}

// A Fence is a lease that must be alive for a write to happen.
type Fence struct {
	ID    string // empty: no fence
	Token leasehold.Token
}

// A Changer gives a lease another holder or id without a gap. A new holder gets a new token.
type Changer interface {
	Change(ctx context.Context, lease Ref, holder, newID string) (Grant, error)
}

// A Messenger delivers messages to holders, as events of a watch.
type Messenger interface {
	Ask(ctx context.Context, m Message) error
}

// A Message is for the holder of a resource. Sent again with the same key, it is delivered once.
type Message struct {
	Resource string
	Text     string
	By       string
	Key      string
}

// A Noter shows how far the holder of a lease is.
type Noter interface {
	Note(ctx context.Context, lease Ref, text string) error
}

// A Historian remembers the last events of a resource, the newest last.
type Historian interface {
	History(ctx context.Context, resource string) ([]leasehold.Event, error)
}

// A Definer sets the names of a resource's slots.
type Definer interface {
	DefineUnits(ctx context.Context, resource string, units []string, by, key string) error
}

// A Mover gives a waiter another priority. It returns the waiter's new position.
type Mover interface {
	Move(ctx context.Context, waiter Ref, priority int, by, reason string) (position int, err error)
}

// has says which of the known stores have a power, for the errors of those that lack it.
var has = map[Power][]string{
	FairQueue:    {"leasehold", "memory", "redis", "postgres", "etcd", "zookeeper"},
	ValueInLease: {"redis", "postgres", "etcd", "consul", "kubernetes", "azblob", "zookeeper"},
	BreakPeriod:  {"leasehold", "memory", "redis", "postgres"},
	Detached:     {"leasehold", "memory", "redis", "postgres", "etcd", "consul", "kubernetes", "azblob"},
}

// Require returns an error if a store lacks a power. The error names the stores that have it.
func Require(s Store, p Power) error {
	f := s.Features()
	if f.Has(p) {
		return nil
	}
	with := has[p]
	if with == nil {
		with = []string{"leasehold", "memory"}
	}
	return &leasehold.Error{Code: leasehold.Refused,
		Message: fmt.Sprintf("%s has no %s: use %s", f.Store, cmp.Or(words[p], string(p)), oneOf(with))}
}

// oneOf returns the names of stores as a choice.
func oneOf(stores []string) string {
	choice := ""
	for i, name := range stores {
		switch {
		case i == 0:
		case i == len(stores)-1:
			choice += " or "
		default:
			choice += ", "
		}
		if name == "leasehold" {
			name = "a Leasehold server"
		}
		choice += name
	}
	return choice
}

// words are powers in a sentence that begins with "has no", where their names do not fit into it.
var words = map[Power]string{
	SessionPower: "sessions that end all their leases at once",
	ChangePower:  "way to give a lease to another holder",
	MovePower:    "way to move waiters",
	FairQueue:    "fair queue",
	Several:      "way to acquire several resources at once",
	Priority:     "priorities",
	HoldLimit:    "hold limits",
	BreakPeriod:  "break with a period",
	ValueInLease: "values in leases",
	Detached:     "leases that outlive the process that acquired them",
}
