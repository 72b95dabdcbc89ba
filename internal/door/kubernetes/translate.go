package kubernetes

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// root is where all objects are kept.
const root = "kubernetes/"

// tokenKey is the annotation that has the fencing token of the holder. It is the server's alone.
const tokenKey = "leasehold/token"

// allowance is how much longer than its duration a Lease is kept alive. An elector counts from when it saw the answer
// to its last renewal, which is a moment after the server did.
const allowance = time.Second

// path is where an object is kept, or where those of the place begin.
func (p place) path() string {
	switch {
	case p.name != "":
		return root + p.space + "/" + p.name
	case p.space != "":
		return root + p.space + "/"
	}
	return root
}

// placeAt returns the namespace and the name of the object at a path.
func placeAt(path string) (space, name string, ok bool) {
	space, name, ok = strings.Cut(strings.TrimPrefix(path, root), "/")
	return space, name, ok && space != "" && name != ""
}

// encode returns an object as it is kept: without what the record knows by itself.
func encode(l *object.Lease) string {
	kept := *l
	kept.Meta.ResourceVersion = ""
	return string(object.Envelope(object.APIVersion, object.Kind, kept.Marshal()))
}

var errNoObject = errors.New("the record is no Lease of Kubernetes")

// decode reads an object as it is kept.
func decode(r *leasehold.Record) (*object.Lease, error) {
	space, name, ok := placeAt(r.Path)
	_, kind, message, err := object.Open([]byte(r.Value))
	if !ok || err != nil || kind != object.Kind {
		return nil, errNoObject
	}
	l := &object.Lease{}
	if err := l.Unmarshal(message); err != nil {
		return nil, errNoObject
	}
	l.Meta.Namespace, l.Meta.Name = space, name
	return l, nil
}

// show returns the object of a record as clients see it. The holder of its lease is shown in the place of the one that
// was written last, if it is known: that may be one of another door.
func show(r *leasehold.Record, holder string) (*object.Lease, error) {
	l, err := decode(r)
	if err != nil {
		return l, err
	}
	if holder != "" && r.Lease != "" && holder != l.Spec.HolderName() {
		l.Spec.Holder = new(holder) // a copy, so that the argument stays where it is
	}
	stamp(l, r)
	return l, nil
}

// stamp puts into an object what the record knows: its version, and whether its holder still holds it. A holder
// whose lease has ended is no longer shown. Where no duration was given there is no holder at all then: Terraform takes
// an empty one for somebody.
func stamp(l *object.Lease, r *leasehold.Record) {
	l.Meta.ResourceVersion = revisionText(r.Mod)
	l.Annotate(tokenKey, "")
	switch s := &l.Spec; {
	case s.HolderName() == "":
	case r.Lease != "":
		l.Annotate(tokenKey, strconv.FormatUint(uint64(r.Token), 10))
	case s.DurationSeconds == nil:
		s.Holder = nil
	default:
		s.Holder = new("")
	}
}

// linkTo returns the lease of ours that an object with a holder is linked to, after it was another object, which may
// be none. The lease of the same holder goes on. An object without one shows who has the resource through other doors.
func (c *call) linkTo(l *object.Lease, old *leasehold.Record, was *object.Lease) *core.Link {
	holder := l.Spec.HolderName()
	if holder == "" {
		return &core.Link{Resource: c.path(), Mirror: c.path(), Stay: true}
	}
	link := &core.Link{
		Resource: c.path(), Holder: holder, TTL: c.ttlOf(&l.Spec), Stay: true, MayExpire: true,
		Reason: "Lease " + c.name + " of the Kubernetes namespace " + c.space,
		Mirror: c.path(), // also for holders of other doors
	}
	switch {
	case old == nil || old.Lease == "":
		link.ID = newUID()
	case was.Spec.HolderName() == holder && (c.ttlOf(&was.Spec) == 0) == (link.TTL == 0):
		link.ID = old.Lease
	default: // also of the same holder, if its lease has no TTL and gets one: that is another lease
		link.ID, link.Take = newUID(), true
	}
	return link
}

// ttlOf returns how long an object holds without being renewed; 0: until it is released. Kubernetes knows longer
// durations than we do: what is that long is not for a server to end.
func (c *call) ttlOf(s *object.Spec) time.Duration {
	if s.DurationSeconds == nil || c.door.config.Lasting.Has(c.space) {
		return 0
	}
	ttl := time.Duration(*s.DurationSeconds)*time.Second + allowance
	if ttl > leasehold.MaxTTL {
		return 0
	}
	return ttl
}

// revisionOf reads a resourceVersion; 0: none was given, or any is good.
func revisionOf(text string) (leasehold.Revision, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid resource version %q: strconv.ParseUint: parsing %q: invalid syntax", text, text)
	}
	return leasehold.Revision(n), nil
}
