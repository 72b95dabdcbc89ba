package object

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// MaxOperations is how many operations a JSON patch may have, as in Kubernetes.
const MaxOperations = 10000

// maxCopied is how many values an operation may copy: a patch could otherwise double an object with each line.
const maxCopied = 10000

// A patchError says why an operation of a JSON patch could not be carried out.
type patchError struct {
	at     int
	reason string
}

func (e *patchError) Error() string { return fmt.Sprintf("operation %d: %s", e.at, e.reason) }

// JSONPatch returns a tree with the operations of a JSON patch (RFC 6902) carried out on it. The tree is not changed.
func JSONPatch(tree, patch Tree) (Tree, error) {
	operations, ok := patch.([]any)
	if !ok {
		return nil, fmt.Errorf("a JSON patch is a list of operations")
	}
	if len(operations) > MaxOperations {
		return nil, fmt.Errorf("the patch has %d operations: at most %d are allowed", len(operations), MaxOperations)
	}
	budget := maxCopied
	for i, operation := range operations {
		fields, ok := operation.(map[string]any)
		if !ok {
			return nil, &patchError{i, "it is no object"}
		}
		var reason string
		if tree, reason = operate(tree, fields, &budget); reason != "" {
			return nil, &patchError{i, reason}
		}
	}
	return tree, nil
}

// operate carries out one operation, or says why it cannot.
func operate(tree Tree, fields map[string]any, budget *int) (Tree, string) {
	name, _ := fields["op"].(string)
	path, bad := pointer(fields, "path")
	if bad != "" {
		return nil, bad
	}
	value, given := fields["value"]
	switch name {
	case "add", "replace", "test":
		if !given {
			return nil, name + " needs a value"
		}
	case "move", "copy":
		from, bad := pointer(fields, "from")
		if bad != "" {
			return nil, bad
		}
		if value, bad = find(tree, from); bad != "" {
			return nil, bad
		}
		if *budget -= countValues(value); *budget < 0 {
			return nil, "the patch copies too much"
		}
		if name == "copy" {
			break
		}
		if len(path) > len(from) && slices.Equal(path[:len(from)], from) {
			return nil, "a value cannot be moved into itself"
		}
		if tree, bad = change(tree, from, "remove", nil); bad != "" {
			return nil, bad
		}
	case "remove":
	default:
		return nil, "unknown operation " + quoted(name) + ": add, remove, replace, move, copy and test are allowed"
	}
	switch name {
	case "test":
		return tree, test(tree, path, value)
	case "move", "copy":
		name = "add"
	}
	return change(tree, path, name, value)
}

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
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
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
				return nil, "there is no " + quoted(part)
			}
			tree = value
		case []any:
			i, bad := index(part, len(at)-1)
			if bad != "" {
				return nil, bad
			}
			tree = at[i]
		default:
			return nil, "there is nothing below " + quoted(part)
		}
	}
	return tree, ""
}

// index reads the index of a list, from 0 to most.
func index(part string, most int) (int, string) {
	i, err := strconv.ParseUint(part, 10, 31)
	if err != nil || int(i) > most || len(part) > 1 && part[0] == '0' {
		return 0, quoted(part) + " is no index of the list"
	}
	return int(i), ""
}

// change returns a tree in which the value at a path was added, replaced or removed.
func change(tree Tree, path []string, how string, value Tree) (Tree, string) {
	if len(path) == 0 {
		if how == "remove" {
			return nil, "the object itself cannot be removed"
		}
		return value, ""
	}
	part, rest := path[0], path[1:]
	switch at := tree.(type) {
	case map[string]any:
		return changeField(at, part, rest, how, value)
	case []any:
		return changeItem(at, part, rest, how, value)
	}
	return nil, "there is nothing at " + quoted(part)
}

// changeField changes a field of an object, or something below it.
func changeField(at map[string]any, part string, rest []string, how string, value Tree) (Tree, string) {
	inner, found := at[part]
	if !found && (len(rest) > 0 || how != "add") {
		return nil, "there is no " + quoted(part)
	}
	changed := maps.Clone(at)
	if len(rest) == 0 && how == "remove" {
		delete(changed, part)
		return changed, ""
	}
	below, bad := change(inner, rest, how, value)
	changed[part] = below
	return changed, bad
}

// changeItem changes an item of a list, or something below it. Behind the last one there is room to add.
func changeItem(at []any, part string, rest []string, how string, value Tree) (Tree, string) {
	adds := len(rest) == 0 && how == "add"
	if adds && part == "-" {
		return append(slices.Clone(at), value), ""
	}
	most := len(at) - 1
	if adds {
		most++
	}
	i, bad := index(part, most)
	switch {
	case bad != "":
		return nil, bad
	case adds:
		return slices.Insert(slices.Clone(at), i, value), ""
	case len(rest) == 0 && how == "remove":
		return slices.Delete(slices.Clone(at), i, i+1), ""
	}
	changed := slices.Clone(at)
	changed[i], bad = change(at[i], rest, how, value)
	return changed, bad
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

// countValues returns how many values a tree has.
func countValues(tree Tree) (n int) {
	switch at := tree.(type) {
	case map[string]any:
		for _, value := range at {
			n += countValues(value)
		}
	case []any:
		for _, value := range at {
			n += countValues(value)
		}
	}
	return n + 1
}
