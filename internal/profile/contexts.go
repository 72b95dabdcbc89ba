package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Context is what a name stands for: the values of settings, by their names.
type Context map[string]string

// Settings are those that a context may have.
var Settings = []string{"server", "ca", "cert", "key", "token-file", "namespace", "holder", Insecure}

// Insecure as a setting of a context.
const Insecure = "insecure"

// Contexts are all of a person, and the one that is used if no other is named.
type Contexts struct {
	Current string             `json:"current,omitempty"`
	All     map[string]Context `json:"contexts"`
}

// Contexts reads the contexts.
func (d Dir) Contexts() (Contexts, error) {
	c := Contexts{All: map[string]Context{}}
	if err := d.read(contextsFile, &c); err != nil {
		return Contexts{}, err
	}
	for name, settings := range c.All {
		for key := range settings {
			if !slices.Contains(Settings, key) {
				return Contexts{}, fmt.Errorf("context %s has %q: a context has %s", name, key,
					strings.Join(Settings, ", "))
			}
		}
	}
	return c, nil
}

// SaveContexts replaces the contexts.
func (d Dir) SaveContexts(c Contexts) error { return d.write(contextsFile, c) }

// Names returns the names of all contexts, sorted.
func (c Contexts) Names() []string { return slices.Sorted(maps.Keys(c.All)) }

// Unknown returns the error of a context that does not exist.
func (c Contexts) Unknown(name string) error {
	if len(c.All) == 0 {
		return fmt.Errorf("there is no context %s: make it with leasehold context set %s --server URL", name, name)
	}
	return fmt.Errorf("there is no context %s: there are %s", name, strings.Join(c.Names(), ", "))
}

// CheckName says what is wrong with the name of a context.
func CheckName(name string) error {
	if name == "" || len(name) > 64 || strings.ContainsAny(name, "/: \t\n") || name[0] == '-' {
		return fmt.Errorf("%q cannot name a context: write 1 to 64 characters without blanks, slashes and colons", name)
	}
	return nil
}
