package object

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// MaxOperations is how many operations a JSON patch may have, as in Kubernetes.
const MaxOperations = 10000

// maxMoved is how many values the operations of a patch may copy and move: a patch could otherwise double an object
// with each line, or move a long list by one place with each.
const maxMoved = 1 << 16

// textCost is how many bytes of text count as one value more. Copies of a text share its memory until the object is
// encoded, and then each has its own.
const textCost = 64

// A patchError says why an operation of a JSON patch could not be carried out.
type patchError struct {
	at     int
	reason string
}

func (e *patchError) Error() string { return fmt.Sprintf("operation %d: %s", e.at, e.reason) }

// JSONPatch carries out the operations of a JSON patch (RFC 6902) on a tree, which is of no use afterwards: the result
// is made of it. The patch is not changed.
func JSONPatch(tree, patch Tree) (Tree, error) {
	operations, ok := patch.([]any)
	if !ok {
		return nil, fmt.Errorf("a JSON patch is a list of operations")
	}
	if len(operations) > MaxOperations {
		return nil, fmt.Errorf("the patch has %d operations: at most %d are allowed", len(operations), MaxOperations)
	}
	b := budget(maxMoved)
	for i, operation := range operations {
		fields, ok := operation.(map[string]any)
		if !ok {
			return nil, &patchError{i, "it is no object"}
		}
		var reason string
		if tree, reason = b.operate(tree, fields); reason != "" {
			return nil, &patchError{i, reason}
		}
	}
	return tree, nil
}

// A budget is how many values the rest of a patch may copy and move.
type budget int

// take counts values that are copied or moved, and reports whether they may be.
func (b *budget) take(n int) bool {
	*b -= budget(n)
	return *b >= 0
}

// copy returns a copy of a value that shares nothing with it, or why there is none.
func (b *budget) copy(value Tree) (Tree, string) {
	if !b.take(1) {
		return nil, tooMuch
	}
	var bad string
	switch at := value.(type) {
	case string:
		if !b.take(len(at) / textCost) {
			return nil, tooMuch
		}
	case map[string]any:
		fields := make(map[string]any, min(len(at), int(*b)))
		for name, below := range at {
			if !b.take(len(name) / textCost) {
				return nil, tooMuch
			}
			if fields[name], bad = b.copy(below); bad != "" {
				return nil, bad
			}
		}
		return fields, ""
	case []any:
		items := make([]any, 0, min(len(at), int(*b)))
		for _, below := range at {
			if below, bad = b.copy(below); bad != "" {
				return nil, bad
			}
			items = append(items, below)
		}
		return items, ""
	}
	return value, ""
}

const tooMuch = "the patch copies too much"

// operate carries out one operation, or says why it cannot.
func (b *budget) operate(tree Tree, fields map[string]any) (Tree, string) {
	name, _ := fields["op"].(string)
	path, bad := pointer(fields, "path")
	if bad != "" {
		return nil, bad
	}
	value, given := fields["value"]
	switch name {
	case "test":
		if !given {
			return nil, "test needs a value"
		}
		return tree, test(tree, path, value)
	case "add", "replace":
		if !given {
			return nil, name + " needs a value"
		}
		if value, bad = b.copy(value); bad != "" {
			return nil, bad
		}
	case "move", "copy":
		if tree, value, bad = b.source(tree, fields, name, path); bad != "" {
			return nil, bad
		}
		name = "add"
	case "remove":
	default:
		return nil, "unknown operation " + quoted(name) + ": add, remove, replace, move, copy and test are allowed"
	}
	return b.change(tree, path, name, value)
}

// source returns the value that is moved or copied to a path, and the tree without it if it is moved.
func (b *budget) source(tree Tree, fields map[string]any, name string, path []string) (Tree, Tree, string) {
	from, bad := pointer(fields, "from")
	if bad != "" {
		return nil, nil, bad
	}
	value, bad := find(tree, from)
	if bad != "" {
		return nil, nil, bad
	}
	if name == "copy" {
		value, bad = b.copy(value)
		return tree, value, bad
	}
	if len(path) > len(from) && slices.Equal(path[:len(from)], from) {
		return nil, nil, "a value cannot be moved into itself"
	}
	tree, bad = b.change(tree, from, "remove", nil)
	return tree, value, bad
}

// unescape reads the two signs that a JSON pointer writes in another way.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// pointer reads a JSON pointer (RFC 6901).
func pointer(fields map[string]any, name string) ([]string, string) {
	text, ok := fields[name].(string)
	switch {
	case !ok:
		return nil, name + " is missing"
	case text == "":
		return nil, ""
	case text[0] != '/':
		return nil, name + " does not begin with a slash"
	}
	parts := strings.Split(text[1:], "/")
	for i := range parts {
		parts[i] = unescape.Replace(parts[i])
	}
	return parts, ""
}

// find returns the value at a path.
func find(tree Tree, path []string) (Tree, string) {
	for _, part := range path {
		switch at := tree.(type) {
		case map[string]any:
			value, found := at[part]
			if !found {
				return nil, "there is no " + quoted(brief(part))
			}
			tree = value
		case []any:
			i, bad := index(part, len(at)-1)
			if bad != "" {
				return nil, bad
			}
			tree = at[i]
		default:
			return nil, "there is nothing below " + quoted(brief(part))
		}
	}
	return tree, ""
}

// index reads the index of a list, from 0 to most.
func index(part string, most int) (int, string) {
	i, err := strconv.ParseUint(part, 10, 31)
	if err != nil || int(i) > most || len(part) > 1 && part[0] == '0' {
		return 0, quoted(brief(part)) + " is no index of the list"
	}
	return int(i), ""
}

// change adds, replaces or removes the value at a path, and returns the tree.
func (b *budget) change(tree Tree, path []string, how string, value Tree) (Tree, string) {
	if len(path) == 0 {
		if how == "remove" {
			return nil, "the object itself cannot be removed"
		}
		return value, ""
	}
	part, rest := path[0], path[1:]
	switch at := tree.(type) {
	case map[string]any:
		return b.changeField(at, part, rest, how, value)
	case []any:
		return b.changeItem(at, part, rest, how, value)
	}
	return nil, "there is nothing at " + quoted(brief(part))
}

// changeField changes a field of an object, or something below it.
func (b *budget) changeField(at map[string]any, part string, rest []string, how string, value Tree) (Tree, string) {
	inner, found := at[part]
	if !found && (len(rest) > 0 || how != "add") {
		return nil, "there is no " + quoted(brief(part))
	}
	if len(rest) == 0 && how == "remove" {
		delete(at, part)
		return at, ""
	}
	below, bad := b.change(inner, rest, how, value)
	at[part] = below
	return at, bad
}

// changeItem changes an item of a list, or something below it. Behind the last one there is room to add.
func (b *budget) changeItem(at []any, part string, rest []string, how string, value Tree) (Tree, string) {
	adds := len(rest) == 0 && how == "add"
	if adds && part == "-" {
		return append(at, value), ""
	}
	most := len(at) - 1
	if adds {
		most++
	}
	i, bad := index(part, most)
	removes := len(rest) == 0 && how == "remove"
	switch {
	case bad != "":
		return nil, bad
	case (adds || removes) && !b.take(len(at)-i):
		return nil, tooMuch
	case adds:
		return slices.Insert(at, i, value), ""
	case removes:
		return slices.Delete(at, i, i+1), ""
	}
	at[i], bad = b.change(at[i], rest, how, value)
	return at, bad
}

// test says why a value is not the expected one.
func test(tree Tree, path []string, value Tree) string {
	found, bad := find(tree, path)
	switch {
	case bad != "":
		return bad
	case !equal(found, value):
		return "test failed"
	}
	return ""
}

// equal compares two values; numbers by what they say.
func equal(a, b Tree) bool {
	x, ok := a.(json.Number)
	y, also := b.(json.Number)
	if ok && also {
		n, bad := x.Float64()
		m, worse := y.Float64()
		return x == y || bad == nil && worse == nil && n == m
	}
	return reflect.DeepEqual(a, b)
}
