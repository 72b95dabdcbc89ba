package object

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A TypeError says that a field of an object in JSON has a value of another type than it should.
type TypeError struct{ Path, Want string }

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s has to be %s", e.Path, e.Want)
}

// A treeWalk reads an object out of a tree. It remembers the first error, and which fields it does not know.
type treeWalk struct {
	unknown []string
	err     error
}

// A setter takes the value of one field.
type setter func(path string, value Tree)

// FromTree reads an object out of a tree. It returns the fields that a Lease does not have; these are not kept. The
// kind, if there is one, has to be right.
func FromTree(tree Tree) (*Lease, []string, error) {
	w, l := &treeWalk{}, &Lease{}
	var apiVersion, kind string
	w.object("", tree, map[string]setter{
		"apiVersion": w.text(&apiVersion), "kind": w.text(&kind),
		"metadata": func(path string, value Tree) { w.meta(path, value, &l.Meta) },
		"spec":     func(path string, value Tree) { w.spec(path, value, &l.Spec) },
	})
	if w.err == nil && (kind != "" && kind != Kind || apiVersion != "" && apiVersion != APIVersion) {
		w.err = &KindError{apiVersion, kind}
	}
	slices.Sort(w.unknown)
	return l, w.unknown, w.err
}

// A KindError says that an object is of another kind than a Lease.
type KindError struct{ APIVersion, Kind string }

func (e *KindError) Error() string {
	return fmt.Sprintf("the object is %s of %s, and a %s of %s is wanted", quoted(e.Kind), quoted(e.APIVersion), Kind,
		APIVersion)
}

// quoted puts a text into an error.
func quoted(s string) string { return strconv.Quote(s) }

// meta reads the metadata. What Kubernetes itself no longer uses, or what is not kept here, is passed over.
func (w *treeWalk) meta(path string, tree Tree, m *Meta) {
	ignored := func(string, Tree) {}
	w.object(path, tree, map[string]setter{
		"name": w.text(&m.Name), "generateName": w.text(&m.GenerateName), "namespace": w.text(&m.Namespace),
		"uid": w.text(&m.UID), "resourceVersion": w.text(&m.ResourceVersion),
		"generation":                 w.number64(func(n int64) { m.Generation = n }),
		"creationTimestamp":          w.time(&m.Created.Time, time.Second),
		"deletionTimestamp":          w.time(&m.Deleted.Time, time.Second),
		"deletionGracePeriodSeconds": w.number64(func(n int64) { m.GraceSeconds = &n }),
		"labels":                     w.texts(&m.Labels), "annotations": w.texts(&m.Annotations),
		"ownerReferences": w.each(func(path string, value Tree) {
			m.Owners = append(m.Owners, w.owner(path, value))
		}),
		"finalizers": w.each(func(path string, value Tree) {
			var name string
			w.text(&name)(path, value)
			m.Finalizers = append(m.Finalizers, name)
		}),
		"managedFields": ignored, "selfLink": ignored, "clusterName": ignored,
	})
}

// owner reads one owner.
func (w *treeWalk) owner(path string, tree Tree) (o Owner) {
	w.object(path, tree, map[string]setter{
		"apiVersion": w.text(&o.APIVersion), "kind": w.text(&o.Kind), "name": w.text(&o.Name), "uid": w.text(&o.UID),
		"controller": w.flag(&o.Controller), "blockOwnerDeletion": w.flag(&o.BlockOwnerDeletion),
	})
	return o
}

// spec reads what the holder writes.
func (w *treeWalk) spec(path string, tree Tree, s *Spec) {
	w.object(path, tree, map[string]setter{
		"holderIdentity":       w.optional(&s.Holder),
		"leaseDurationSeconds": w.number32(&s.DurationSeconds),
		"acquireTime":          w.time(&s.AcquireTime.Time, time.Microsecond),
		"renewTime":            w.time(&s.RenewTime.Time, time.Microsecond),
		"leaseTransitions":     w.number32(&s.Transitions),
		"strategy":             w.optional(&s.Strategy),
		"preferredHolder":      w.optional(&s.PreferredHolder),
	})
}

// wrong remembers that a field has another type than it should.
func (w *treeWalk) wrong(path, want string) {
	if w.err == nil {
		w.err = &TypeError{path, want}
	}
}

// object hands the fields of an object to their setters. A field that is null is one that is not there.
func (w *treeWalk) object(path string, tree Tree, set map[string]setter) {
	if tree == nil && path != "" {
		return
	}
	fields, ok := tree.(map[string]any)
	if !ok {
		w.wrong(path, "an object")
		return
	}
	for name, value := range fields {
		at := join(path, name)
		switch known := set[name]; {
		case known == nil:
			w.unknown = append(w.unknown, at)
		case value != nil:
			known(at, value)
		}
	}
}

// text takes a text.
func (w *treeWalk) text(into *string) setter {
	return func(path string, value Tree) {
		s, ok := value.(string)
		if !ok {
			w.wrong(path, "a string")
		}
		*into = s
	}
}

// optional takes a text that may be there and empty, which is another thing than not to be there.
func (w *treeWalk) optional(into **string) setter {
	return func(path string, value Tree) {
		*into = new(string)
		w.text(*into)(path, value)
	}
}

// flag takes true or false.
func (w *treeWalk) flag(into **bool) setter {
	return func(path string, value Tree) {
		b, ok := value.(bool)
		if !ok {
			w.wrong(path, "true or false")
		}
		*into = &b
	}
}

// number reads a whole number. Some clients write it as 15.0.
func (w *treeWalk) number(path string, value Tree, bits int) int64 {
	text, ok := value.(json.Number)
	if !ok {
		w.wrong(path, "a number")
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text.String(), ".0"), 10, bits)
	if err != nil {
		w.wrong(path, fmt.Sprintf("a whole number of %d bits", bits))
	}
	return n
}

// number32 takes a number of 32 bits.
func (w *treeWalk) number32(into **int32) setter {
	return func(path string, value Tree) { *into = new(int32(w.number(path, value, 32))) }
}

// number64 takes a number of 64 bits.
func (w *treeWalk) number64(set func(int64)) setter {
	return func(path string, value Tree) { set(w.number(path, value, 64)) }
}

// time takes a moment, which is cut to a unit.
func (w *treeWalk) time(into *time.Time, unit time.Duration) setter {
	return func(path string, value Tree) {
		text, ok := value.(string)
		t, good := parseTime(text)
		if !ok || !good {
			w.wrong(path, "a time such as 2006-01-02T15:04:05.000000Z")
			return
		}
		*into = t.UTC().Truncate(unit)
	}
}

// texts takes a map of texts.
func (w *treeWalk) texts(into *map[string]string) setter {
	return func(path string, value Tree) {
		fields, ok := value.(map[string]any)
		if !ok {
			w.wrong(path, "an object of strings")
			return
		}
		*into = make(map[string]string, len(fields))
		for name, value := range fields {
			text, ok := value.(string)
			if !ok && value != nil {
				w.wrong(join(path, name), "a string")
			}
			(*into)[name] = text
		}
	}
}

// each takes a list, item by item.
func (w *treeWalk) each(add setter) setter {
	return func(path string, value Tree) {
		items, ok := value.([]any)
		if !ok {
			w.wrong(path, "a list")
		}
		for i, item := range items {
			add(fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}
