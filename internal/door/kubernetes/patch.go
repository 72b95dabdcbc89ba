package kubernetes

import (
	"errors"
	"net/http"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// The content types of patches.
const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// A change is a patch that was read.
type change struct {
	tree  object.Tree
	twice []string
	apply func(tree, patch object.Tree) (object.Tree, error)
	makes bool // an object that is not there is made
}

// sentChange reads the patch that was sent.
func (c *call) sentChange() (p change, err error) {
	text, contentType, err := c.body()
	if err != nil {
		return p, err
	}
	switch contentType {
	case mergePatch:
		p.apply = mergeChange
	case strategicPatch:
		p.apply = object.StrategicMerge
	case jsonPatch:
		p.apply = object.JSONPatch
	case applyPatch:
		p.apply, p.makes = mergeChange, true
		if c.query.Get("fieldManager") == "" {
			return p, invalid("PatchOptions.meta.k8s.io", "",
				object.Required("fieldManager", "is required for apply patch"))
		}
		if p.tree, err = object.ParseYAML(text); err != nil {
			return p, badRequest("error decoding YAML: %v", err)
		}
		return p, nil
	default:
		return p, &apiError{Code: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
			Message: "the body of the request was in an unknown format - accepted media types include: " +
				jsonPatch + ", " + mergePatch + ", " + strategicPatch + ", " + applyPatch}
	}
	if p.tree, p.twice, err = object.ParseTree(text); err != nil {
		return p, badRequest("error decoding patch: %v", err)
	}
	return p, nil
}

// mergeChange applies a merge patch, which has to be of an object.
func mergeChange(tree, patch object.Tree) (object.Tree, error) {
	if _, ok := patch.(map[string]any); !ok {
		return nil, errors.New("the patch has to be an object")
	}
	return object.Merge(tree, patch), nil
}

// patch changes a part of an object. Unless the patch names a version, it is applied to whichever is there.
func (c *call) patch() error {
	p, err := c.sentChange()
	if err != nil {
		return err
	}
	var l *object.Lease
	status := http.StatusOK
	err = door.Decide(c.ctx, c.busy(), func(bool) (done bool, err error) {
		at, err := c.present()
		switch {
		case err != nil:
			return false, err
		case at.record == nil && p.makes:
			status = http.StatusCreated
			l, err = c.makeFrom(p)
			return !isAlreadyThere(err), unlessAlreadyThere(err)
		case at.record == nil:
			return false, notFound(c.name)
		}
		status = http.StatusOK
		var named bool
		if l, named, err = c.patched(p, at); err != nil {
			return false, err
		}
		if err = c.change(l, at); !named && isModified(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return err
	}
	c.sendLease(status, l)
	return nil
}

// patched returns an object as a patch changes it, and whether the patch names the version that it is for.
func (c *call) patched(p change, at present) (l *object.Lease, named bool, err error) {
	tree, err := at.lease.Tree()
	if err != nil {
		return nil, false, err
	}
	if tree, err = p.apply(tree, p.tree); err != nil {
		return nil, false, invalidPatch(c.name, err)
	}
	if l, err = c.fromTree(tree, p.twice); err != nil {
		return nil, false, err
	}
	if err := c.checkNames(l); err != nil {
		return nil, false, err
	}
	m, was := &l.Meta, &at.lease.Meta
	named = namesVersion(p.tree)
	switch {
	case m.UID != was.UID && m.UID != "":
		return nil, named, wrongUID(c.name, m.UID, was.UID)
	case m.ResourceVersion != was.ResourceVersion && m.ResourceVersion != "":
		return nil, named, modified(c.name)
	}
	return l, named, nil
}

// namesVersion reports whether a patch is for one version of an object.
func namesVersion(patch object.Tree) bool {
	fields, _ := patch.(map[string]any)
	meta, _ := fields["metadata"].(map[string]any)
	version, _ := meta["resourceVersion"].(string)
	return version != ""
}

// invalidPatch is the error of a patch that cannot be applied.
func invalidPatch(name string, err error) error {
	return &apiError{Code: http.StatusUnprocessableEntity, Reason: "Invalid",
		Message: "the server rejected our request due to an error in our request: the patch for " + name +
			" cannot be applied: " + err.Error()}
}

// makeFrom makes an object of a patch that is applied where none is.
func (c *call) makeFrom(p change) (*object.Lease, error) {
	l, err := c.fromTree(p.tree, p.twice)
	if err != nil {
		return nil, err
	}
	if err := c.checkNames(l); err != nil {
		return nil, err
	}
	if l.Meta.UID != "" {
		return nil, wrongUID(c.name, l.Meta.UID, "")
	}
	return l, c.make(l)
}

// isAlreadyThere reports whether somebody else made the object in the meantime: then the patch is applied to that.
func isAlreadyThere(err error) bool {
	var e *apiError
	return errors.As(err, &e) && e.Reason == "AlreadyExists"
}

// unlessAlreadyThere returns the error, unless the step is to look again for it.
func unlessAlreadyThere(err error) error {
	if isAlreadyThere(err) {
		return nil
	}
	return err
}
