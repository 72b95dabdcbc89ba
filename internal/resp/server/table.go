package server

import (
	"maps"
	"slices"
	"strings"
)

// maxName is how long a name can be to be looked for.
const maxName = 64

// A table has all commands by name. An entry is a command, or a word that others begin with.
type table map[string]*entry

type entry struct {
	name    string // all its words
	command *Command
	builtin func(*Conn, [][]byte) // of the server itself
	subs    table                 // by their second word
	blocks  bool                  // the builtin may block: it asks who somebody is, or ends what waits
	always  bool                  // answered also while the server drains
}

func newTable(commands []*Command) table {
	t := table{}
	for name, b := range builtins {
		b.name = name
		t.add(name, b)
	}
	for _, c := range commands {
		t.add(c.Name, entry{name: c.Name, command: c})
	}
	return t
}

func (t table) add(name string, e entry) {
	first, second, two := strings.Cut(name, " ")
	if !two {
		if had := t[first]; had != nil {
			e.subs = had.subs
		}
		t[first] = &e
		return
	}
	if t[first] == nil {
		t[first] = &entry{}
	}
	if t[first].subs == nil {
		t[first].subs = table{}
	}
	t[first].subs.add(second, e)
}

// find returns the entry of a word in any case, or nil. It does not allocate.
func (t table) find(word []byte) *entry {
	if len(word) > maxName {
		return nil
	}
	var upper [maxName]byte
	for i, c := range word {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	return t[string(upper[:len(word)])]
}

// of returns the entry of a command and its arguments. The entry is nil if there is none, and
// has neither command nor builtin if a second word is missing or unknown.
func (t table) of(words [][]byte) (*entry, [][]byte) {
	e := t.find(words[0])
	if e == nil {
		return nil, nil
	}
	if e.subs != nil && len(words) > 1 {
		if sub := e.subs.find(words[1]); sub != nil {
			return sub, words[2:]
		}
	}
	return e, words[1:]
}

func (t table) names() []string { return slices.Sorted(maps.Keys(t)) }
