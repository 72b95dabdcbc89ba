package access

import "strings"

// A Verb is one thing that can be done. The log keeps verbs by number: add at the end only.
type Verb uint8

// The verbs.
const (
	Read        Verb = iota // see a resource: its holder, queue, definition and advice
	List                    // find resources and sessions by prefix
	Watch                   // follow events
	Acquire                 // take all of a resource
	Share                   // take some of its slots
	Renew                   // go on with a lease or a session
	Release                 // give a lease back, close a session
	Ask                     // ask holders to give it back
	Break                   // end a lease, or take a waiter out of the queue
	Change                  // hand a lease to another holder or id
	Move                    // move a waiter in its queue
	Acknowledge             // clear alarms and unclean ends
	Define                  // set what a resource or a prefix is
	RecordRead              // read values
	RecordWrite             // write and delete them
	Foreign                 // reach what Terraform or Azure clients keep other than through their own door
	Audit                   // read the journal
	Monitor                 // see servers, limits and metrics
	Admin                   // change the cluster and who may do what
	verbs
)

var verbNames = [verbs]string{"read", "list", "watch", "acquire", "share", "renew", "release", "ask", "break",
	"change", "move", "acknowledge", "define", "record-read", "record-write", "foreign", "audit", "monitor", "admin"}

func (v Verb) String() string {
	if v < verbs {
		return verbNames[v]
	}
	return "unknown"
}

// Names returns the names of all verbs.
func Names() []string { return verbNames[:] }

// VerbOf returns the verb with a name, and reports whether there is one.
func VerbOf(name string) (Verb, bool) {
	for v, n := range verbNames {
		if n == name {
			return Verb(v), true
		}
	}
	return 0, false
}

// Verbs is a set of verbs.
type Verbs uint32

// All has every verb.
const All Verbs = 1<<verbs - 1

// Owned are the verbs that can be given for one's own only: those whose item has an owner.
const Owned = 1<<Read | 1<<List | 1<<Watch | 1<<Renew | 1<<Release | 1<<Ask | 1<<Break | 1<<Change | 1<<Move |
	1<<RecordRead | 1<<RecordWrite

// holding are the verbs that name a holder.
const holding = 1<<Acquire | 1<<Share | 1<<Change

// taken are the verbs by which something gets an owner.
const taken = 1<<Acquire | 1<<Share | 1<<RecordWrite

// Of returns a set.
func Of(list ...Verb) (s Verbs) {
	for _, v := range list {
		s |= 1 << v
	}
	return s
}

// Has reports whether a verb is in the set.
func (s Verbs) Has(v Verb) bool { return s&(1<<v) != 0 }

func (s Verbs) String() string {
	var names []string
	for v, n := range verbNames {
		if s.Has(Verb(v)) {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}
