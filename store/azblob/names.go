package azblob

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// names makes the names of blobs of one namespace.
type names struct{ root string }

func newNames(prefix, namespace string) names {
	root := strings.Trim(prefix, "/")
	if root != "" {
		root += "/"
	}
	return names{root + escaped(namespace) + "/"}
}

func (n names) leases() string { return n.root + "l/" }
func (n names) marks() string  { return n.root + "m/" }

// longest is the longest name that is written as it is. Azure allows 1,024 characters for all of it.
const longest = 800

// resource is the blob of a resource. A very long name is written as its hash; the metadata have it in full.
func (n names) resource(resource string) string {
	text := escaped(resource)
	if len(text) > longest {
		text = hashPrefix + hashed(resource)
	}
	return n.leases() + text
}

const hashPrefix = "=-"

func (n names) mark(id string) string { return n.marks() + hashed(id) }

func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// leaseID is the id that Azure knows a lease by, which has to be a UUID.
func leaseID(id string) string {
	h := hashed(id)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:32]}, "-")
}

// escaped writes a name with letters, digits and a few others that no system on the way changes.
func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func unescaped(s string) (string, error) { return store.Unescape(s, '=') }

// Metadata are headers, so names are written in base64.
func toHeader(s string) *string {
	text := base64.RawURLEncoding.EncodeToString([]byte(s))
	return &text
}

func fromHeader(s string) string {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return string(text)
}
