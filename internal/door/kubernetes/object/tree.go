package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A Tree is a value of JSON: nil, bool, json.Number, string, []any or map[string]any.
type Tree = any

// maxDepth is how deep objects may be nested: a Lease needs four levels.
const maxDepth = 64

// A treeReader reads a value, and collects which fields stand twice in an object: of these the last counts.
type treeReader struct {
	*json.Decoder
	twice []string
}

// ParseTree reads JSON. It returns the paths of fields that stand twice.
func ParseTree(text []byte) (tree Tree, twice []string, err error) {
	r := treeReader{Decoder: json.NewDecoder(bytes.NewReader(text))}
	r.UseNumber()
	tree, err = r.value("", 0)
	if err != nil {
		return nil, nil, err
	}
	if _, err := r.Token(); err != io.EOF {
		return nil, nil, errors.New("there is something behind the JSON value")
	}
	return tree, r.twice, nil
}

// value reads the next value, which is at a path.
func (r *treeReader) value(path string, depth int) (Tree, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s is nested deeper than %d levels", path, maxDepth)
	}
	token, err := r.Token()
	if err != nil {
		return nil, unexpectedEnd(err)
	}
	switch token {
	case json.Delim('{'):
		return r.fields(path, depth)
	case json.Delim('['):
		return r.items(path, depth)
	}
	return token, nil
}

// fields reads an object up to its end.
func (r *treeReader) fields(path string, depth int) (Tree, error) {
	all := map[string]any{}
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return nil, unexpectedEnd(err)
		}
		name := key.(string) // the decoder sees to that
		at := join(path, name)
		if _, found := all[name]; found {
			r.twice = append(r.twice, at)
		}
		if all[name], err = r.value(at, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := r.Token()
	return all, unexpectedEnd(err)
}

// items reads a list up to its end.
func (r *treeReader) items(path string, depth int) (Tree, error) {
	all := []any{}
	for r.More() {
		item, err := r.value(fmt.Sprintf("%s[%d]", path, len(all)), depth+1)
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
