package etcd

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// The keys of a namespace. Names are escaped so that keys have the order of names, and a prefix of a
// name is a prefix of its keys: the escape character is the smallest byte that a key can have, and
// the separator sorts before everything that can follow it in a name.
const (
	escape    = '#'
	separator = "##"
	leasePart = "l/"
	markPart  = "m/"
	lastPart  = "e/"
	holdEnd   = separator + "h"
	waitEnd   = separator + "w/"
)

// keys makes the keys of one namespace.
type keys struct{ root string }

func newKeys(prefix, namespace string) keys {
	// A slash would end the namespace's part.
	name := strings.ReplaceAll(escaped(namespace), "/", "#2f")
	return keys{strings.TrimRight(prefix, "/") + "/" + name + "/"}
}

func (k keys) leases() string                    { return k.root + leasePart }
func (k keys) prefixed(prefix string) string     { return k.leases() + escaped(prefix) }
func (k keys) resource(resource string) string   { return k.prefixed(resource) + separator }
func (k keys) holder(resource string) string     { return k.prefixed(resource) + holdEnd }
func (k keys) waiters(resource string) string    { return k.prefixed(resource) + waitEnd }
func (k keys) waiter(resource, id string) string { return k.waiters(resource) + escaped(id) }
func (k keys) mark(id string) string             { return k.root + markPart + escaped(id) }
func (k keys) last(resource string) string       { return k.root + lastPart + escaped(resource) }

// parse returns the resource of a lease or a waiter, and the waiter's id.
func (k keys) parse(key string) (resource, waiter string, err error) {
	rest, ok := strings.CutPrefix(key, k.leases())
	name, end, found := strings.Cut(rest, separator)
	if !ok || !found {
		return "", "", fmt.Errorf("%q is not the key of a lease", key)
	}
	if resource, err = unescaped(name); err != nil || end == "h" {
		return resource, "", err
	}
	id, ok := strings.CutPrefix(end, "w/")
	if !ok {
		return "", "", fmt.Errorf("%q is not the key of a lease", key)
	}
	waiter, err = unescaped(id)
	return resource, waiter, err
}

func escaped(name string) string {
	if !strings.ContainsFunc(name, func(c rune) bool { return c <= escape }) {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c <= escape {
			fmt.Fprintf(&b, "%c%02x", escape, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescaped(s string) (string, error) { return store.Unescape(s, escape) }
