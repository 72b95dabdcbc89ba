package keyword

import (
	"strings"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/jsonbody"
)

// Words are the words of one command, sorted by what they mean. They are used again for the next command, and point
// into what was read: nothing is allocated to sort them.
type Words struct {
	grammar *Grammar
	places  [][]byte // the words before all keywords
	several [][]byte // more of the last of them
	given   []given

	// Known is what was said before; nil: nothing.
	Known *Known
}

// A given is a keyword, with what was said by it.
type given struct {
	term *term
	word []byte
}

var yes = []byte("true")

// Parse sorts the words of a command.
func (g *Grammar) Parse(w *Words, words [][]byte) error {
	w.grammar, w.places, w.given, w.several = g, w.places[:0], w.given[:0], w.several[:0]
	for i := range g.first {
		if g.first[i].optional && (len(words) == 0 || g.find(words[0]) != nil) {
			w.places = append(w.places, nil)
			continue
		}
		if len(words) == 0 {
			return door.Invalid("%s is missing: write %s", g.first[i].name, g.Usage())
		}
		w.places = append(w.places, words[0])
		words = words[1:]
	}
	for g.Many && len(words) > 0 && g.find(words[0]) == nil {
		w.several = append(w.several, words[0])
		words = words[1:]
	}
	for len(words) > 0 {
		left, err := w.take(words)
		if err != nil {
			return err
		}
		words = left
	}
	return nil
}

// take takes a keyword with its value, and returns the rest.
func (w *Words) take(words [][]byte) ([][]byte, error) {
	t := w.grammar.find(words[0])
	if t == nil {
		return nil, door.Invalid("keyword %s is unknown; known are: %s", door.Brief(string(words[0])),
			strings.Join(w.grammar.Known, ", "))
	}
	words = words[1:]
	value := yes
	switch {
	case t.bare && (len(words) == 0 || !IsBool(words[0])):
	case len(words) == 0:
		return nil, door.Invalid("keyword %s has no value: write it after the keyword", strings.ToUpper(t.name))
	default:
		value, words = words[0], words[1:]
	}
	if !t.many && w.has(t) {
		return nil, door.Invalid("keyword %s is given twice: give it once", strings.ToUpper(t.name))
	}
	w.given = append(w.given, given{t, value})
	return words, nil
}

func (w *Words) has(t *term) bool {
	for i := range w.given {
		if w.given[i].term == t {
			return true
		}
	}
	return false
}

// Word returns what was said by a keyword; nil: it was not given.
func (w *Words) Word(name string) []byte {
	for i := range w.given {
		if w.given[i].term.name == name {
			return w.given[i].word
		}
	}
	return nil
}

// Name returns what was said to the door itself by a keyword.
func (w *Words) Name(name string) (words []string) {
	for i := range w.given {
		if t := w.given[i].term; t.from == inName && t.name == name {
			return []string{string(w.given[i].word)}
		}
	}
	return nil
}

// Path returns a value of the path.
func (w *Words) Path(name string) string {
	for i := range w.places {
		if p := &w.grammar.first[i]; p.name == name && p.term == nil {
			return string(w.places[i])
		}
	}
	return ""
}

// Value returns the value of a record.
func (w *Words) Value() []byte {
	for i := range w.places {
		if w.grammar.first[i].value {
			return w.places[i]
		}
	}
	return nil
}

// Head returns what HTTP has in a header.
func (w *Words) Head(key string) []string {
	for i := range w.given {
		t := w.given[i].term
		if t.from != inHead || t.head != key {
			continue
		}
		switch value := string(w.given[i].word); {
		case !t.bare:
			return []string{value}
		case value == "true" || value == "1":
			return []string{"*"}
		}
	}
	return nil
}

// Fill fills a body from the words that belong to it, and reports whether there were any. A list that stands before all
// keywords goes to the field whose name is that of one element with an s.
func (w *Words) Fill(into any) (some bool, err error) {
	g := w.grammar
	for i, p := range g.first {
		switch word := w.places[i]; {
		case word == nil:
		case p.whole:
			return true, jsonbody.Parse(word, into)
		case p.term != nil && p.term.from == inBody && len(w.several) == 0:
			some, err = true, p.term.body.set(into, word, w.Known)
		case p.term != nil && p.term.from == inBody:
			some, err = true, w.fillList(g.words[p.name+"s"], word, into)
		}
		if err != nil {
			return some, err
		}
	}
	for i := range w.given {
		if t := w.given[i].term; t.from == inBody {
			some = true
			if err := t.body.set(into, w.given[i].word, w.Known); err != nil {
				return some, err
			}
		}
	}
	return some, nil
}

func (w *Words) fillList(t *term, first []byte, into any) error {
	err := t.body.set(into, first, nil)
	for _, word := range w.several {
		err = door.First(err, t.body.set(into, word, nil))
	}
	return err
}

// Query makes a query of the words that HTTP has there, but for the namespace. Most commands have none.
func (w *Words) Query() (q door.Query) {
	add := func(name string, value []byte) {
		if q.Values == nil {
			q.Values = map[string][]string{}
		}
		q.Values[name] = append(q.Values[name], string(value))
	}
	for i, p := range w.grammar.first {
		if p.term != nil && p.term.from == inQuery && w.places[i] != nil {
			add(p.name, w.places[i])
		}
	}
	for i := range w.given {
		if t := w.given[i].term; t.from == inQuery && t.name != "namespace" {
			add(t.name, w.given[i].word)
		}
	}
	return q
}
