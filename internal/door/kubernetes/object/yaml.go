package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// errAlias is the error of a text that names a part of itself. A few hundred bytes of such names stand for more values
// than a machine has memory for, and nobody writes a Lease with them.
var errAlias = errors.New("anchors and aliases are not allowed: write the value out where it is needed")

// ParseYAML reads YAML. JSON is YAML too. What it makes is no larger than what it reads: see errAlias.
func ParseYAML(text []byte) (Tree, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return (&allowance{}).tree(document.Content[0], &place{})
}

// tree returns the value of a node.
func (a *allowance) tree(n *yaml.Node, at *place) (Tree, error) {
	if err := a.take(at); err != nil {
		return nil, err
	}
	if n.Anchor != "" {
		return nil, errAlias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return a.mapping(n, at)
	case yaml.SequenceNode:
		items := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if items[i], err = a.tree(item, at.item(i)); err != nil {
				return nil, err
			}
		}
		return items, nil
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, errAlias
}

// mapping returns an object. A key that stands twice is an error, as YAML has it.
func (a *allowance) mapping(n *yaml.Node, at *place) (Tree, error) {
	fields := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Anchor != "" || key.Kind == yaml.AliasNode || key.ShortTag() == "!!merge":
			return nil, errAlias
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			return nil, fmt.Errorf("line %d: a key has to be text", key.Line)
		}
		below := at.field(key.Value)
		if _, found := fields[key.Value]; found {
			return nil, fmt.Errorf("line %d: %v stands twice", key.Line, below)
		}
		var err error
		if fields[key.Value], err = a.tree(value, below); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// scalar returns a single value. A time stays the text that it is.
func scalar(n *yaml.Node) (Tree, error) {
	if n.ShortTag() == "!!timestamp" {
		return n.Value, nil
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case int, int64, uint64:
		return json.Number(fmt.Sprint(v)), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("line %d: %s is no number of JSON", n.Line, n.Value)
		}
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64)), nil
	}
	return value, nil
}
