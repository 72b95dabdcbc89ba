package pool

// Names is a set of names of units. It can only be asked whether it has one, so that the order of
// the map, which differs from server to server, decides nothing. Its zero value is empty.
type Names struct {
	has map[string]struct{}
}

// Add adds names.
func (n *Names) Add(names []string) {
	if n.has == nil {
		n.has = make(map[string]struct{}, len(names))
	}
	for _, name := range names {
		n.has[name] = struct{}{}
	}
}

// Has reports whether a name was added.
func (n *Names) Has(name string) bool {
	_, has := n.has[name]
	return has
}
