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

// Counts are numbers by name. They can only be asked for one of them, as a set of names. Their zero value is empty.
type Counts struct {
	of map[string]int
}

// Add adds to the number of a name.
func (c *Counts) Add(name string, n int) {
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[name] += n
}

// Of returns the number of a name.
func (c *Counts) Of(name string) int { return c.of[name] }
