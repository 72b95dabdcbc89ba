package kubernetes

import (
	"errors"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// The settings of this door.
const (
	namespaceSetting = "kubernetes-namespace"
	strictSetting    = "kubernetes-strict"
	lastingSetting   = "kubernetes-no-expiry"
)

// Kind is this door in the table of a server.
var Kind = door.Kind{Name: doorName, What: "Leases of Kubernetes", Tools: tools, Settings: []door.Setting{
	{Name: namespaceSetting, Default: leasehold.DefaultNamespace, Check: checkNamespace,
		Help: "namespace that keeps the Leases of all Kubernetes namespaces, below kubernetes/"},
	{Name: strictSetting, Check: checkSpaces,
		Help: "Kubernetes namespaces, comma-separated or *, in which nobody takes a Lease over before it has expired"},
	{Name: lastingSetting, Check: checkSpaces,
		Help: "Kubernetes namespaces, comma-separated or *, in which a Lease keeps its holder after it has expired"},
}, Open: func(b *door.Backend, s door.Settings) (door.Door, error) {
	return New(b, Config{Namespace: s[namespaceSetting], Strict: parseSpaces(s[strictSetting]),
		Lasting: parseSpaces(s[lastingSetting])}).Door(), nil
}}

// Config is what a Door can be told. The zero value is good for tests.
type Config struct {
	Namespace string // of ours, that keeps everything; empty: the default one
	Strict    Spaces // in which a holder that is alive cannot be replaced
	Lasting   Spaces // in which a holder does not expire
}

// Spaces are some namespaces of Kubernetes. The zero Spaces are none.
type Spaces struct {
	all   bool
	names map[string]bool
}

// Has reports whether a namespace is one of them.
func (s Spaces) Has(name string) bool { return s.all || s.names[name] }

// parseSpaces reads a list of namespaces.
func parseSpaces(text string) (s Spaces) {
	s.names = map[string]bool{}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		s.all = s.all || name == "*"
		s.names[name] = true
	}
	return s
}

// checkSpaces says what is wrong with a list of namespaces.
func checkSpaces(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name != "" && name != "*" && object.CheckNamespace(name) != "" {
			return errors.New("write the names of Kubernetes namespaces with commas between them, or * for all")
		}
	}
	return nil
}

// checkNamespace says what is wrong with the name of a namespace of ours.
func checkNamespace(name string) error { return door.CheckName("namespace", name, leasehold.MaxName) }
