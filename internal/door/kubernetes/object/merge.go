package object

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Merge returns a tree with a JSON merge patch applied to it: what is null in the patch goes, objects are merged, and
// everything else is replaced. Neither argument is changed.
func Merge(tree, patch Tree) Tree {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	fields, _ := tree.(map[string]any)
	merged := maps.Clone(fields)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
			continue
		}
		merged[name] = Merge(merged[name], change)
	}
	return merged
}

// StrategicMerge returns a tree with a strategic merge patch applied to it. For a Lease that is a merge patch, but
// that owners are merged by their uid, and finalizers are added. The directives $patch, $retainKeys,
// $setElementOrder and $deleteFromPrimitiveList are understood.
func StrategicMerge(tree, patch Tree) (Tree, error) { return strategic("", tree, patch) }

// mergeKeys are the lists that are merged: by the value of a field, or, if that is empty, as sets of texts.
var mergeKeys = map[string]string{"metadata.ownerReferences": "uid", "metadata.finalizers": ""}

const (
	directive      = "$patch"
	deleteFrom     = "$deleteFromPrimitiveList/"
	elementOrder   = "$setElementOrder/"
	retainKeys     = "$retainKeys"
	directiveStart = "$"
)

// strategic merges what is at a path.
func strategic(path string, tree, patch Tree) (Tree, error) {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch, nil
	}
	fields, _ := tree.(map[string]any)
	merged := maps.Clone(fields)
	switch changes[directive] {
	case "replace":
		merged = nil
	case "delete":
		return map[string]any{}, nil
	case nil, "merge":
	default:
		return nil, fmt.Errorf("%s: unknown directive %v: replace, merge and delete are allowed",
			join(path, directive), changes[directive])
	}
	if merged == nil {
		merged = map[string]any{}
	}
	retain(merged, changes)
	// Sorted, because what is deleted from a list has to be, before something is added to it.
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if err := strategicField(path, merged, name, changes[name]); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// strategicField merges one field of a patch into an object.
func strategicField(path string, merged map[string]any, name string, change Tree) error {
	at := join(path, name)
	_, isList := mergeKeys[at]
	switch list, found := strings.CutPrefix(name, deleteFrom); {
	case found:
		return deleteTexts(merged, list, change)
	case strings.HasPrefix(name, elementOrder), name == directive, name == retainKeys:
	case strings.HasPrefix(name, directiveStart):
		return fmt.Errorf("%s: unknown directive", at)
	case change == nil:
		delete(merged, name)
	case isList:
		result, err := mergeList(at, merged[name], change)
		merged[name] = result
		return err
	default:
		result, err := strategic(at, merged[name], change)
		merged[name] = result
		return err
	}
	return nil
}

// retain drops the fields that a patch does not name, if it says so.
func retain(merged, changes map[string]any) {
	keys, ok := changes[retainKeys].([]any)
	if !ok {
		return
	}
	kept := textSet(keys)
	maps.DeleteFunc(merged, func(name string, _ any) bool { return !kept[name] })
}

// deleteTexts takes texts out of a list.
func deleteTexts(merged map[string]any, name string, change Tree) error {
	list, ok := change.([]any)
	if !ok {
		return fmt.Errorf("%s%s has to be a list", deleteFrom, brief(name))
	}
	gone := textSet(list)
	kept, _ := merged[name].([]any)
	merged[name] = slices.DeleteFunc(slices.Clone(kept), func(item any) bool {
		text, ok := item.(string)
		return ok && gone[text]
	})
	return nil
}

// textSet returns the texts of a list.
func textSet(list []any) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, item := range list {
		if text, ok := item.(string); ok {
			set[text] = true
		}
	}
	return set
}

// mergeList merges a list with a key. An item with the directive delete goes; one that has the key of another is
// merged with it; others are added.
func mergeList(path string, list, change Tree) (Tree, error) {
	items, ok := change.([]any)
	if !ok {
		return nil, fmt.Errorf("%s has to be a list", path)
	}
	present, _ := list.([]any)
	m := keyed{key: mergeKeys[path], at: map[string][]int{}}
	for _, item := range present {
		m.add(item)
	}
	for _, item := range items {
		fields, _ := item.(map[string]any)
		if m.key != "" && fields == nil {
			return nil, fmt.Errorf("%s has to be a list of objects", path)
		}
		if fields != nil && fields[directive] == "replace" {
			return withoutDirectives(items), nil
		}
		at, found := m.find(item)
		switch {
		case fields != nil && fields[directive] == "delete":
			if found {
				m.remove(at)
			}
		case !found:
			m.add(item)
		case m.key != "":
			m.items[at].value = Merge(m.items[at].value, item)
		}
	}
	return m.list(), nil
}

// A keyed list finds an item by a text in it at once, however long it is.
type keyed struct {
	key   string // the field with the text; empty: the item is the text
	items []keyedItem
	at    map[string][]int // where a text is, in order
}

// A keyedItem is gone once it was removed: to close the gap each time would move the whole list.
type keyedItem struct {
	value Tree
	gone  bool
}

// textOf returns the text by which an item is found.
func (k *keyed) textOf(item Tree) (string, bool) {
	if k.key != "" {
		fields, _ := item.(map[string]any)
		item = fields[k.key]
	}
	text, ok := item.(string)
	return text, ok
}

func (k *keyed) add(item Tree) {
	if text, ok := k.textOf(item); ok {
		k.at[text] = append(k.at[text], len(k.items))
	}
	k.items = append(k.items, keyedItem{value: item})
}

// find returns the first item with the text of another.
func (k *keyed) find(item Tree) (int, bool) {
	text, ok := k.textOf(item)
	if !ok || len(k.at[text]) == 0 {
		return 0, false
	}
	return k.at[text][0], true
}

// remove takes out an item that was found.
func (k *keyed) remove(at int) {
	text, _ := k.textOf(k.items[at].value)
	k.items[at] = keyedItem{gone: true}
	k.at[text] = k.at[text][1:]
}

func (k *keyed) list() []any {
	list := make([]any, 0, len(k.items))
	for _, item := range k.items {
		if !item.gone {
			list = append(list, item.value)
		}
	}
	return list
}

// withoutDirectives returns the items of a list that replaces another.
func withoutDirectives(items []any) []any {
	return slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		fields, ok := item.(map[string]any)
		return ok && fields[directive] != nil
	})
}

// Tree returns the object as JSON has it.
func (l *Lease) Tree() (Tree, error) {
	text, err := l.JSON()
	if err != nil {
		return nil, err
	}
	tree, _, err := ParseTree(text)
	return tree, err
}

// A typed object is one with its kind, as JSON has it.
type typed struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	*Lease
}

// JSON returns the object in JSON.
func (l *Lease) JSON() ([]byte, error) { return json.Marshal(typed{Kind, APIVersion, l}) }
