package redis

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// names makes the keys of one namespace.
type names struct{ base string }

// DefaultPrefix begins all keys unless Config.Prefix says otherwise.
const DefaultPrefix = "leasehold"

func newNames(prefix, namespace string) names {
	return names{prefix + ":{" + escape(namespace) + "}:"}
}

func (n names) record() string               { return n.base + "record" }
func (n names) index() string                { return n.base + "index" }
func (n names) channel() string              { return n.base + "wake" }
func (n names) lease(resource string) string { return n.base + "lease:" + resource }
func (n names) mark(id string) string        { return n.base + "id:" + id }

// queue returns the three keys of a queue: the order, the deadlines, and who waits.
func (n names) queue(resource string) []string {
	return []string{n.base + "queue:" + resource, n.base + "alive:" + resource, n.base + "notes:" + resource}
}

// escape returns a namespace such that it can be a hash tag. The first brace that closes ends a tag,
// and everything after it is plain text to Redis: so resources and ids, which follow, need no escape.
func escape(namespace string) string {
	var b strings.Builder
	for _, c := range []byte(namespace) {
		if plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._/", c) >= 0
}

// checkNames refuses what cannot be the name of a lease. Without it, an empty id would be nobody's and
// everybody's.
func checkNames(refs ...store.Ref) error {
	for _, r := range refs {
		if err := checkName("resource", r.Resource); err != nil {
			return err
		}
		if err := checkName("lease id", r.ID); err != nil {
			return err
		}
	}
	return nil
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return invalid("the %s is empty", what)
	case len(name) > leasehold.MaxName:
		return invalid("the %s has %d bytes: %d are allowed", what, len(name), leasehold.MaxName)
	case !utf8.ValidString(name):
		return invalid("the %s is not UTF-8", what)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

func checkPrefix(prefix string) error {
	if prefix == "" || strings.ContainsAny(prefix, "{}") {
		return invalid("the prefix %q: it must not be empty or contain braces, which would change the hash tag", prefix)
	}
	return nil
}
