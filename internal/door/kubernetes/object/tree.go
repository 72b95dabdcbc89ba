package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A Tree is a value of JSON: nil, bool, json.Number, string, []any or map[string]any.
type Tree = any

// What a text may make, whatever its form: a Lease needs four levels and has some hundreds of values.
const (
	maxDepth  = 64
	maxValues = 1 << 16
	maxTwice  = 16  // fields that are named as standing twice
	maxPath   = 256 // bytes of a path in an error
)

// An allowance is what a text may still make.
type allowance struct{ values int }

// take counts one value at a place, or says why there may be no more.
func (a *allowance) take(at *place) error {
	if at.depth > maxDepth {
		return fmt.Errorf("%v is nested deeper than %d levels", at, maxDepth)
	}
	if a.values++; a.values > maxValues {
		return fmt.Errorf("there are more than %d values", maxValues)
	}
	return nil
}

// A place is where a value stands. Its path is written only when it is asked for: to write that of each value would
// take the length of a path times the number of values.
type place struct {
	up    *place // nil: the whole
	name  string // of a field
	index int    // of an item, if name is empty
	depth int
}

func (p *place) field(name string) *place { return &place{up: p, name: name, depth: p.depth + 1} }

func (p *place) item(i int) *place { return &place{up: p, index: i, depth: p.depth + 1} }

// String returns the path, or its end if it is long.
func (p *place) String() string {
	path := ""
	for ; p.up != nil && len(path) < maxPath; p = p.up {
		switch {
		case p.name == "":
			path = "[" + strconv.Itoa(p.index) + "]" + path
		case path == "" || path[0] == '[':
			path = brief(p.name) + path
		default:
			path = brief(p.name) + "." + path
		}
	}
	return path
}

// brief returns a name that is short enough for an error.
func brief(name string) string {
	if len(name) > maxPath {
		return name[:maxPath] + "…"
	}
	return name
}

// A treeReader reads a value, and collects which fields stand twice in an object: of these the last counts.
type treeReader struct {
	*json.Decoder
	allowance
	twice []string
}

// ParseTree reads JSON. It returns the paths of the first fields that stand twice.
func ParseTree(text []byte) (tree Tree, twice []string, err error) {
	r := treeReader{Decoder: json.NewDecoder(bytes.NewReader(text))}
	r.UseNumber()
	tree, err = r.value(&place{})
	if err != nil {
		return nil, nil, err
	}
	if _, err := r.Token(); err != io.EOF {
		return nil, nil, errors.New("there is something behind the JSON value")
	}
	return tree, r.twice, nil
}

// value reads the next value, which is at a place.
func (r *treeReader) value(at *place) (Tree, error) {
	if err := r.take(at); err != nil {
		return nil, err
	}
	token, err := r.Token()
	if err != nil {
		return nil, unexpectedEnd(err)
	}
	switch token {
	case json.Delim('{'):
		return r.fields(at)
	case json.Delim('['):
		return r.items(at)
	}
	return token, nil
}

// fields reads an object up to its end.
func (r *treeReader) fields(at *place) (Tree, error) {
	all := map[string]any{}
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return nil, unexpectedEnd(err)
		}
		name := key.(string) // the decoder sees to that
		below := at.field(name)
		if _, found := all[name]; found && len(r.twice) < maxTwice {
			r.twice = append(r.twice, below.String())
		}
		if all[name], err = r.value(below); err != nil {
			return nil, err
		}
	}
	_, err := r.Token()
	return all, unexpectedEnd(err)
}

// items reads a list up to its end.
func (r *treeReader) items(at *place) (Tree, error) {
	all := []any{}
	for r.More() {
		item, err := r.value(at.item(len(all)))
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	_, err := r.Token()
	return all, unexpectedEnd(err)
}

// unexpectedEnd says that a text ends too early.
func unexpectedEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// join names a field below a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
