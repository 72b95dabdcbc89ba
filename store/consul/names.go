package consul

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// escape begins a byte of a name that is written as two hex digits.
const escape = '='

// keys makes the keys of one namespace. A prefix of a name is a prefix of its key.
type keys struct{ root string }

func newKeys(prefix, namespace string) keys {
	name := strings.ReplaceAll(escaped(namespace), "/", "=2f")
	return keys{strings.Trim(prefix, "/") + "/" + name + "/"}
}

func (k keys) leases() string               { return k.root + "l/" }
func (k keys) lease(resource string) string { return k.leases() + escaped(resource) }
func (k keys) last(resource string) string  { return k.root + "e/" + escaped(resource) }
func (k keys) mark(id string) string        { return k.root + "m/" + escaped(id) }

// resource returns the name of a lease's key.
func (k keys) resource(key string) (string, error) {
	name, ok := strings.CutPrefix(key, k.leases())
	if !ok || name == "" {
		return "", fmt.Errorf("%q is not the key of a lease", key)
	}
	return unescaped(name)
}

// escaped returns a name for a key. Keys are part of URL paths, so that no segment may be empty or begin
// with a dot; what is escaped depends only on what comes before it.
func escaped(name string) string {
	var b strings.Builder
	begins := true
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
		if letter || !begins && (c == '.' || c == '/') {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%c%02x", escape, c)
		}
		begins = c == '/' && !begins
	}
	return b.String()
}

func unescaped(s string) (string, error) { return store.Unescape(s, escape) }
