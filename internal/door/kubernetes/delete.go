package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
	"github.com/leasehold/leasehold/internal/engine"
)

// deleteOptions are what the body of a delete may say. What becomes of an object's dependants is nothing to us.
type deleteOptions struct {
	Preconditions struct {
		UID             *string `json:"uid"`
		ResourceVersion *string `json:"resourceVersion"`
	} `json:"preconditions"`
	DryRun []string `json:"dryRun"`
}

// sentOptions reads the body of a delete, which may be empty.
func (c *call) sentOptions() (o deleteOptions, err error) {
	text, contentType, err := c.body()
	if err != nil || len(text) == 0 {
		return o, err
	}
	switch contentType {
	case object.Protobuf:
		_, _, message, err := object.Open(text)
		if err == nil {
			o.Preconditions.UID, o.Preconditions.ResourceVersion, o.DryRun, err = object.DeleteOptions(message)
		}
		if err != nil {
			return o, badRequest("the options of the delete cannot be read: %v", err)
		}
		return o, nil
	case yamlType:
		tree, err := object.ParseYAML(text)
		if err == nil {
			text, err = json.Marshal(tree)
		}
		if err != nil {
			return o, badRequest("the options of the delete cannot be read: %v", err)
		}
	case jsonType, "":
	default:
		return o, unsupported()
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return o, badRequest("the options of the delete cannot be read: %v", err)
	}
	return o, nil
}

// meets refuses to delete an object that is not the one that is meant.
func (o *deleteOptions) meets(p present, name string) error {
	switch uid, version := o.Preconditions.UID, o.Preconditions.ResourceVersion; {
	case uid != nil && *uid != p.lease.Meta.UID:
		return wrongUID(name, *uid, p.lease.Meta.UID)
	case version != nil && *version != p.lease.Meta.ResourceVersion:
		return wrongVersion(name, *version, p.lease.Meta.ResourceVersion)
	}
	return nil
}

// remove deletes one object. If it is held, its holder's lease ends.
func (c *call) remove() error {
	options, err := c.sentOptions()
	if err != nil {
		return err
	}
	var gone, marked *object.Lease
	err = door.Decide(c.ctx, c.busy(), func(tried bool) (bool, error) {
		p, err := c.present()
		switch {
		case err != nil:
			return false, err
		case tried && gone != nil && (p.record == nil || p.lease.Meta.UID != gone.Meta.UID):
			return true, nil // by the try that nobody could tell of
		case p.record == nil:
			return false, notFound(c.name)
		}
		if err := options.meets(p, c.name); err != nil {
			return false, err
		}
		gone, marked = p.lease, nil
		if len(p.lease.Meta.Finalizers) > 0 {
			marked, err = c.mark(p, len(options.DryRun) > 0)
		} else if !c.dryRun() && len(options.DryRun) == 0 {
			err = c.drop(p)
		}
		return !errors.Is(err, leasehold.ErrRefused), unlessRefused(err)
	})
	switch {
	case err != nil:
		return err
	case marked != nil:
		c.sendLease(http.StatusOK, marked)
		return nil
	}
	c.sendDeleted(gone)
	return nil
}

// unlessRefused returns an error, unless it says that something else is there by now: then the step looks again.
func unlessRefused(err error) error {
	if errors.Is(err, leasehold.ErrRefused) {
		return nil
	}
	return err
}

// busy is the error of a request that was overtaken too often.
func (c *call) busy() error {
	return engine.Unavailable(c.path() + " changes too often: try again")
}

// drop deletes the record that was read.
func (c *call) drop(p present) error {
	_, err := c.do(&core.DeleteRecord{
		Namespace: c.door.config.Namespace, Path: p.record.Path, IfRevision: p.record.Mod,
	})
	return err
}

// mark says of an object that it is to be deleted, which happens when its last finalizer goes.
func (c *call) mark(p present, dryRun bool) (*object.Lease, error) {
	if !p.lease.Meta.Deleted.IsZero() {
		return p.lease, nil
	}
	l := p.lease.Clone()
	l.Meta.Deleted, l.Meta.GraceSeconds = object.NewTime(time.Now()), new(int64(0))
	if dryRun {
		return l, nil
	}
	return l, c.put(l, p)
}

// finish deletes an object whose last finalizer has gone.
func (c *call) finish(l *object.Lease, p present) error {
	l.Meta.ResourceVersion = revisionText(p.record.Mod)
	if c.dryRun() {
		return nil
	}
	err := c.drop(p)
	if errors.Is(err, leasehold.ErrRefused) {
		return modified(c.name)
	}
	return err
}

// sendDeleted says that an object was deleted.
func (c *call) sendDeleted(l *object.Lease) {
	c.form.as = ""
	c.send(http.StatusOK, &status{Kind: "Status", APIVersion: "v1", Status: "Success",
		Details: &details{Name: c.name, Group: object.Group, Kind: object.Resource, UID: l.Meta.UID}})
}

// deleteAll deletes the objects of a namespace that selectors pick, one by one.
func (c *call) deleteAll() error {
	options, err := c.sentOptions()
	if err != nil {
		return err
	}
	q, err := c.listQuery()
	if err != nil {
		return err
	}
	found, err := c.collect(q)
	if err != nil {
		return err
	}
	deleted := found.items[:0]
	for _, item := range found.items {
		one := *c
		one.name, one.on = item.lease.Meta.Name, ofLease
		if len(options.DryRun) == 0 && !c.dryRun() {
			err = one.removeFound(item)
		}
		if err != nil {
			return err
		}
		deleted = append(deleted, item)
	}
	found.items = deleted
	c.sendList(found)
	return nil
}

// removeFound deletes an object that a list has shown. One that was changed since is looked at again.
func (c *call) removeFound(p present) error {
	return door.Decide(c.ctx, c.busy(), func(bool) (done bool, err error) {
		if len(p.lease.Meta.Finalizers) > 0 {
			_, err = c.mark(p, false)
		} else {
			err = c.drop(p)
		}
		if !errors.Is(err, leasehold.ErrRefused) {
			return true, err
		}
		if p, err = c.present(); err != nil || p.record == nil {
			return true, err
		}
		return false, nil
	})
}
