package keyword

import (
	"reflect"
	"slices"
	"strings"
)

// A Spec is what a grammar is made of: an operation, as HTTP has it.
type Spec struct {
	Command string       // its words, and then what stands before all keywords: LH.SESSION RENEW id
	Path    string       // as http.ServeMux writes it
	Params  []string     // of the query; one that ends with + may be given several times
	Bare    []string     // those that are true by their names alone
	Body    reflect.Type // nil: there is none
	Heads   []Head       // what HTTP has in headers
	Names   []string     // what is said to the door itself
}

// A Head is a keyword for a header.
type Head struct {
	Name, Header string
	Bare         bool // it is * by its name alone
}

// A Grammar says what the words of a command mean. It is made of the table of operations: what HTTP has in the path
// stands first, and all else are keywords, whatever HTTP has them in.
type Grammar struct {
	Name  string   // of the command, such as LH.SESSION OPEN
	Known []string // the keywords, in their order
	Many  bool     // the last of the first words may be several

	first []place
	words map[string]*term
}

// A place is what a word before all keywords says.
type place struct {
	name     string
	term     *term // nil: it is a value of the path
	whole    bool  // it is the body
	value    bool  // it is the value of a record
	optional bool  // it is left out if a keyword stands there
}

// A term is what a keyword says.
type term struct {
	name string
	from source
	head string // the header, of what HTTP has in one
	body *Field // of the body
	bare bool   // it is true by its name alone
	many bool   // it may be given several times
}

// A source is where HTTP has what a keyword says.
type source int

const (
	inQuery source = iota
	inBody
	inHead
	inName
)

// New makes a grammar.
func New(s Spec) *Grammar {
	g := &Grammar{words: map[string]*term{}}
	var places []string
	for _, word := range strings.Fields(s.Command) {
		if word == strings.ToUpper(word) && word != "*" {
			g.Name = strings.TrimSpace(g.Name + " " + word)
		} else {
			places = append(places, word)
		}
	}
	g.addAll(&s)
	for _, word := range places {
		p := place{name: strings.TrimRight(word, "+?"), optional: strings.HasSuffix(word, "?"), whole: word == "*",
			value: word == "value"}
		g.Many = g.Many || strings.HasSuffix(word, "+")
		if !strings.Contains(s.Path, "{"+p.name) {
			p.term = g.words[p.name]
		}
		g.first = append(g.first, p)
	}
	return g
}

func (g *Grammar) addAll(s *Spec) {
	for _, param := range s.Params {
		name := strings.TrimSuffix(param, "+")
		g.add(&term{name: name, many: name != param, bare: slices.Contains(s.Bare, name)})
	}
	if s.Body != nil {
		fields := Of(s.Body)
		for i := range fields {
			f := &fields[i]
			t := &term{name: f.Name, from: inBody, body: f, bare: f.Bare, many: f.Many}
			g.add(t)
			if one := f.Singular(); one != "" && g.words[one] == nil {
				g.words[one] = t
			}
		}
	}
	for _, h := range s.Heads {
		g.add(&term{name: h.Name, from: inHead, head: h.Header, bare: h.Bare})
	}
	for _, name := range s.Names {
		g.add(&term{name: name, from: inName})
	}
}

func (g *Grammar) add(t *term) {
	g.words[t.name] = t
	g.Known = append(g.Known, strings.ToUpper(t.name))
}

// find returns the term of a keyword in any case, or nil. It does not allocate.
func (g *Grammar) find(word []byte) *term {
	var lower [32]byte
	if len(word) > len(lower) {
		return nil
	}
	for i, c := range word {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return g.words[string(lower[:len(word)])]
}

// Find returns the name of a keyword that is written in any case; empty: it is none.
func (g *Grammar) Find(word []byte) string {
	if t := g.find(word); t != nil {
		return t.name
	}
	return ""
}

// Least is how many words a command has at least.
func (g *Grammar) Least() (n int) {
	for i := range g.first {
		if !g.first[i].optional {
			n++
		}
	}
	return n
}

// Usage says how a command is written.
func (g *Grammar) Usage() string {
	var b strings.Builder
	b.WriteString(g.Name)
	for _, p := range g.first {
		name := p.name
		switch {
		case p.whole:
			name = "json"
		case p.optional:
			name = "[" + name + "]"
		}
		b.WriteString(" " + name)
	}
	if g.Many {
		b.WriteString(" …")
	}
	return b.String()
}

// Unfilled returns the places that nothing takes: a mistake in the table of operations.
func (g *Grammar) Unfilled(path string) (names []string) {
	for _, p := range g.first {
		if p.term == nil && !p.whole && !p.value && !strings.Contains(path, "{"+p.name) {
			names = append(names, p.name)
		}
	}
	return names
}
