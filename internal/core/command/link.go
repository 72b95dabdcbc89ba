package command

import (
	"math"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

// A Link lets a record stand for a claim: the put that carries it takes the resource, or joins its queue, in the
// same step, and from then on the two end together. A claim has one record at most, and a record one claim.
//
// A put whose ID is that of the record's own claim changes the record and renews the claim, if that has a TTL of its
// own. A put without a Link gives the claim up, unless it says KeepLink; so does a delete.
type Link struct {
	Resource string // all of it is claimed
	ID       string // of the claim
	Holder   string
	Labels   leasehold.Labels
	Reason   string
	Foreign  string
	TTL      time.Duration // 0: the claim ends with the session of the put, if that names one
	Grace    time.Duration // as in Acquire
	Wait     bool          // join the queue if the resource is not free; else the put is refused then

	// MayExpire is as in Acquire.
	MayExpire bool

	// Stay keeps the record when the claim ends in any other way than through the record: it stands for nothing any
	// more, and is bound to no session. Else it is deleted.
	Stay bool

	// Mirror makes every claim on the resource, by whichever door, show as a record below this prefix: the order in
	// which these records were created is the order of holder and queue. It lasts while there is a claim.
	Mirror string

	// Take changes the claim that the record stands for now to this ID and Holder, with a new token, ahead of the
	// queue.
	Take bool
}

// Claims reports whether the put claims the resource. A link without an id does not: it only makes the record show the
// resource's holder.
func (l *Link) Claims() bool { return l.ID != "" }

// Endless is how long a put waits whose Link says Wait: until its claim ends.
const Endless = time.Duration(math.MaxInt64)

// Acquire returns the acquire that a put with a link makes.
func (l *Link) Acquire(namespace, session string) *Acquire {
	a := &Acquire{
		Namespace: namespace, Resource: l.Resource, ID: l.ID, Holder: l.Holder, Labels: l.Labels, Reason: l.Reason,
		TTL: l.TTL, Session: session, Grace: l.Grace, Foreign: l.Foreign, MayExpire: l.MayExpire,
	}
	if l.Wait {
		a.Wait = Endless
	}
	return a
}

// validate says what is wrong with the link of a put.
func (l *Link) validate(path, session string, keepLink bool) error {
	switch {
	case l == nil:
		return nil
	case !l.Claims() && l.Holder == "" && l.Stands():
		return l.validateStand(path, session, keepLink)
	}
	err := firstError(name("resource", l.Resource), name("lease id", l.ID), name("holder", l.Holder),
		labels(l.Labels), text("reason", l.Reason), foreign(l.Foreign), optionalTTL(l.TTL),
		within("grace", l.Grace, leasehold.MaxGrace))
	switch {
	case err != nil:
		return err
	case keepLink:
		return invalid("a put takes a link or keeps the one that is there, not both")
	case l.TTL != 0 && session != "":
		return invalid("a linked lease has a ttl of its own or the session of its record, not both: leave one out")
	case l.Wait && l.TTL == 0 && session == "":
		return invalid("a linked record whose lease may have to wait needs a session or a ttl")
	}
	return l.validateMirror(path)
}

// validateStand says what is wrong with a link that claims nothing.
func (l *Link) validateStand(path, session string, keepLink bool) error {
	bare := l.TTL == 0 && l.Grace == 0 && len(l.Labels) == 0 && l.Reason == "" && l.Foreign == "" && !l.Wait &&
		!l.Take && !l.MayExpire
	if !bare || session != "" || keepLink {
		return invalid("a link without a lease id claims nothing: leave out what is said of the lease")
	}
	return firstError(name("resource", l.Resource), l.validateMirror(path))
}

func (l *Link) validateMirror(path string) error {
	switch {
	case l.Mirror == "":
		return nil
	case l.Stands():
		if path != l.Resource || !l.Stay {
			return invalid("a record can stand for the holder of %s only at the same path, and if it stays: "+
				"leave out the mirror", l.Resource)
		}
		return nil
	case l.Stay || l.Take:
		return invalid("a record below a mirror prefix ends with its lease and keeps its place: leave out stay " +
			"and take")
	case len(l.Mirror) > leasehold.MaxMirror:
		return invalid("mirror prefix has %d bytes: at most %d are allowed", len(l.Mirror), leasehold.MaxMirror)
	case len(path) <= len(l.Mirror) || !strings.HasPrefix(path, l.Mirror):
		return invalid("%s is not below the mirror prefix %s", path, l.Mirror)
	}
	return nil
}

// Stands reports whether the record is to show the resource's holder from now on, no matter which door the holder uses:
// the record itself is the mirror.
func (l *Link) Stands() bool { return l.Mirror != "" && l.Mirror == l.Resource }

// size is how many bytes of names a link has.
func (l *Link) size() int {
	if l == nil {
		return 0
	}
	n := len(l.Resource) + len(l.ID) + len(l.Holder) + len(l.Reason) + len(l.Foreign) + len(l.Mirror)
	for _, label := range l.Labels {
		n += len(label.Key) + len(label.Value)
	}
	return n
}
