package kubernetes

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
	"github.com/leasehold/leasehold/internal/engine"
)

// A present is an object as it was read.
type present struct {
	record *leasehold.Record // nil: it is not there
	lease  *object.Lease     // as it is shown
	other  bool              // its holder came through another door
}

// present reads the object that the path names.
func (c *call) present() (p present, err error) {
	holder := ""
	err = c.look(func(v core.View) {
		if p.record, _ = v.Record(c.door.config.Namespace, c.path(), 0); p.record != nil && p.record.Lease != "" {
			holder, p.other = v.StandsFor(c.door.config.Namespace, c.path(), p.record.Lease)
		}
	})
	if err != nil {
		return p, err
	}
	if p.record != nil {
		p.lease, err = show(p.record, holder)
	}
	return p, c.unlessObject(err)
}

// unlessObject says that something else is in the place of an object.
func (c *call) unlessObject(err error) error {
	if !errors.Is(err, errNoObject) {
		return err
	}
	return &apiError{Code: http.StatusInternalServerError, Reason: "InternalError", Our: leasehold.Refused,
		Message: "the record " + c.path() + " is no Lease of Kubernetes: somebody wrote it in another way; " +
			"delete it, or put it back"}
}

// read answers with one object.
func (c *call) read() error {
	p, err := c.present()
	switch {
	case err != nil:
		return err
	case p.record == nil:
		return notFound(c.name)
	}
	c.sendLease(http.StatusOK, p.lease)
	return nil
}

// create makes an object of what was sent.
func (c *call) create() error {
	l, err := c.sentLease()
	if err != nil {
		return err
	}
	if l.Meta.ResourceVersion != "" {
		return badRequest("resourceVersion should not be set on objects to be created")
	}
	if l.Meta.Name == "" && l.Meta.GenerateName != "" {
		l.Meta.Name = generateName(l.Meta.GenerateName)
	}
	c.name = l.Meta.Name
	if err := c.make(l); err != nil {
		return err
	}
	c.sendLease(http.StatusCreated, l)
	return nil
}

// make puts an object where none is.
func (c *call) make(l *object.Lease) error {
	m := &l.Meta
	m.Name, m.Namespace, m.ResourceVersion, m.UID = c.name, c.space, "", newUID()
	m.Created, m.Deleted, m.GraceSeconds = object.NewTime(time.Now()), object.Time{}, nil
	err := c.put(l, present{})
	var e *leasehold.Error
	if errors.As(err, &e) && e.Code == leasehold.Refused {
		return alreadyExists(c.name)
	}
	return err
}

// replace writes the whole object. This is how a Lease is taken, renewed and released.
func (c *call) replace() error {
	l, err := c.sentLease()
	if err != nil {
		return err
	}
	p, err := c.present()
	if err != nil {
		return err
	}
	if p.record == nil {
		return c.replaceNothing(l)
	}
	if err := c.judge(l, p); err != nil {
		return err
	}
	if err := c.change(l, p); err != nil {
		return err
	}
	c.sendLease(http.StatusOK, l)
	return nil
}

// replaceNothing writes an object that is not there. One that its writer has seen was deleted since.
func (c *call) replaceNothing(l *object.Lease) error {
	if l.Meta.UID != "" {
		return wrongUID(c.name, l.Meta.UID, "")
	}
	if err := c.make(l); err != nil {
		return err
	}
	c.sendLease(http.StatusCreated, l)
	return nil
}

// judge refuses an object whose writer has not seen the one that is there.
func (c *call) judge(l *object.Lease, p present) error {
	m := &l.Meta
	revision, err := revisionOf(m.ResourceVersion)
	switch {
	case err != nil:
		return badRequest("%v", err)
	case revision == 0:
		// Kubernetes names the resource here, and the kind in all other errors of this reason.
		return invalid(qualified, c.name,
			object.Invalid("metadata.resourceVersion", "0", "must be specified for an update"))
	case m.UID != "" && m.UID != p.lease.Meta.UID:
		return wrongUID(c.name, m.UID, p.lease.Meta.UID)
	case revision != p.record.Mod:
		return modified(c.name)
	}
	return nil
}

// change writes an object in the place of the one that was read, if that is still there. What a client cannot change
// stays as it was.
func (c *call) change(l *object.Lease, p present) error {
	m, was := &l.Meta, &p.lease.Meta
	m.Name, m.Namespace, m.UID, m.GenerateName = c.name, c.space, was.UID, was.GenerateName
	m.Created, m.Deleted, m.GraceSeconds, m.Generation = was.Created, was.Deleted, was.GraceSeconds, was.Generation
	if !m.Deleted.IsZero() && len(m.Finalizers) == 0 {
		return c.finish(l, p)
	}
	err := c.put(l, p)
	if errors.Is(err, leasehold.ErrRefused) || errors.Is(err, leasehold.ErrLost) {
		return c.whyRefused(err, p)
	}
	return err
}

// whyRefused returns why a write was refused: because somebody else was faster, or because this one may never be.
func (c *call) whyRefused(refusal error, p present) error {
	now, err := c.present()
	switch {
	case err != nil:
		return err
	case now.record == nil || now.record.Mod != p.record.Mod:
		return modified(c.name)
	}
	return conflict(c.name, door.Coded(refusal).Message, leasehold.Refused)
}

// put writes an object, and stamps it with what the server knows of it.
func (c *call) put(l *object.Lease, p present) error {
	l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil // they need a server that chooses the holder
	l.Annotate(tokenKey, "")
	if causes := l.Validate(); len(causes) > 0 {
		return invalidLease(c.name, causes...)
	}
	c.holder = l.Spec.HolderName()
	if err := c.mayTake(p); err != nil {
		return err
	}
	if p.other && !sameSpec(l, p.lease) {
		return heldElsewhere(c.name, p.lease.Spec.HolderName())
	}
	value := encode(l)
	if len(value) > leasehold.MaxValue {
		return tooLarge(leasehold.MaxValue)
	}
	if p.record != nil && value == p.record.Value && (c.holder == "") == (p.record.Lease == "") || c.dryRun() {
		*l = *c.unchanged(l, p)
		return nil
	}
	command := &core.PutRecord{
		Namespace: c.door.config.Namespace, Path: c.path(), Value: value, IfAbsent: p.record == nil,
	}
	if p.record != nil {
		command.IfRevision = p.record.Mod
	}
	// A write that leaves the spec as it is, such as that of a label, is no sign of life of the holder.
	if command.KeepLink = p.record != nil && p.record.Lease != "" && sameSpec(l, p.lease); !command.KeepLink {
		command.Link = c.linkTo(l, p.record, p.lease)
	}
	if command.Link != nil && p.record != nil && p.record.Lease != "" && command.Link.ID == p.record.Lease {
		command.Fence.Lease = p.record.Lease // a renewal: it goes on when nothing new is taken
	}
	answer, err := c.do(command)
	if errors.Is(err, leasehold.ErrLimited) && command.Link != nil && !command.Link.Claims() && p.record != nil &&
		p.record.Lease != "" {
		return c.releaseAlone(l, p)
	}
	if err != nil {
		return err
	}
	if answer.Record == nil {
		return engine.Undecided("the engine answered without a record")
	}
	stamp(l, answer.Record)
	return nil
}

// releaseAlone ends the lease of an object whose holder was emptied, and writes nothing: there is no room for it, as
// when a disk is full, and nobody else would have the lease until there is. l becomes what is there then.
func (c *call) releaseAlone(l *object.Lease, p present) error {
	_, err := c.do(&core.Release{Namespace: c.door.config.Namespace, ID: p.record.Lease})
	if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound) {
		return modified(c.name)
	}
	if err != nil {
		return err
	}
	now, err := c.present()
	switch {
	case err != nil:
		return err
	case now.record == nil:
		return modified(c.name)
	}
	*l = *now.lease
	return nil
}

// sameSpec reports whether two objects have the same spec.
func sameSpec(a, b *object.Lease) bool {
	return bytes.Equal((&object.Lease{Spec: a.Spec}).Marshal(), (&object.Lease{Spec: b.Spec}).Marshal())
}

// unchanged returns what a write comes to that writes nothing: because it changes nothing, or because it is only
// tried.
func (c *call) unchanged(l *object.Lease, p present) *object.Lease {
	if p.record == nil {
		return l
	}
	shown := l.Clone()
	shown.Meta.ResourceVersion = revisionText(p.record.Mod)
	if token := p.lease.Meta.Annotations[tokenKey]; token != "" && c.holder == p.lease.Spec.HolderName() {
		shown.Annotate(tokenKey, token)
	}
	return shown
}

// mayTake refuses, in a strict namespace, to take an object from a holder that is alive. To empty it is allowed: so
// it is released.
func (c *call) mayTake(p present) error {
	if p.record == nil || p.record.Lease == "" || !c.door.config.Strict.Has(c.space) {
		return nil
	}
	present := p.lease.Spec.HolderName()
	if c.holder == "" || c.holder == present {
		return nil
	}
	return conflict(c.name, "it is held by "+present+", whose lease has not expired: this namespace is strict",
		leasehold.Held)
}
