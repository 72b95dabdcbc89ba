package kubernetes

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	"github.com/leasehold/leasehold"
)

const (
	maxName  = 253 // of an object
	maxLabel = 63  // of the value of a label
	slugSize = 30
	hashSize = 26 // 130 bits
)

var (
	plain  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	hashed = regexp.MustCompile(`--[0-9a-v]{26}$`)

	alphabet = base32.HexEncoding.WithPadding(base32.NoPadding)
)

// objectName returns the name of the Lease for a resource. What Kubernetes allows is kept, so that a
// Lease can be shared with others. Everything else, and all that is not in the default namespace, is
// told apart by a hash, behind as much of the name as is readable.
func objectName(namespace, resource string) string {
	if namespace == leasehold.DefaultNamespace && isPlain(resource, maxName) {
		return resource
	}
	return slug(resource) + hash(namespace, resource)
}

// labelOf returns a namespace as the value of a label.
func labelOf(namespace string) string {
	if isPlain(namespace, maxLabel) {
		return namespace
	}
	return slug(namespace) + hash(namespace)
}

// isPlain reports whether a name can be kept. One that looks as if it had a hash cannot.
func isPlain(name string, most int) bool {
	return len(name) <= most && plain.MatchString(name) && !hashed.MatchString(name)
}

// slug returns the readable part of a name.
func slug(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		if b.Len() >= slugSize {
			break
		}
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
	}
	if s := strings.TrimSuffix(b.String(), "-"); s != "" {
		return s
	}
	return "x" // a name begins with a letter or a digit
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "--" + strings.ToLower(alphabet.EncodeToString(h.Sum(nil)))[:hashSize]
}
