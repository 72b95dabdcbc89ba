package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// fileLayer reads the text of a YAML file: one mapping from keys to plain values.
func fileLayer(path string, text []byte, doors []Door) (layer, error) {
	root, err := document(path, text)
	if root == nil || err != nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: expected lines such as \"listen: 127.0.0.1:4653\"", path, root.Line)
	}
	l, problems := layer{}, []error(nil)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		origin := fmt.Sprintf("%s:%d", path, key.Line)
		err := entry(key, value, doors)
		if before, twice := l[key.Value]; twice && err == nil {
			err = fmt.Errorf("%s is already set at %s: remove one", key.Value, before.origin)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", origin, err))
			continue
		}
		l[key.Value] = given{value.Value, origin}
	}
	return l, errors.Join(problems...)
}

// document returns the root of the only document in a text, nil if it has none.
func document(path string, text []byte) (*yaml.Node, error) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(path, err)
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document begins here: only one is read, so leave \"---\" out",
			path, more.Line)
	case !errors.Is(err, io.EOF):
		return nil, syntax(path, err)
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return nil, nil // nothing but comments
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax rewrites the parser's message so that it begins with file and line, as
// editors understand it.
func syntax(path string, err error) error {
	message := err.Error()
	found := yamlLine.FindStringSubmatch(message)
	if found == nil {
		return fmt.Errorf("%s: %s", path, message)
	}
	where := path
	if found[1] != "" {
		where += ":" + found[1]
	}
	return fmt.Errorf("%s: not YAML: %s", where, message[len(found[0]):])
}

// entry says what is wrong with one line of the file, before its value is looked at.
func entry(key, value *yaml.Node, doors []Door) error {
	known, ok := Lookup(key.Value, doors...)
	switch {
	case key.Kind != yaml.ScalarNode:
		return errors.New("a key is a plain word")
	case !ok:
		return fmt.Errorf("%q is not a key that leasehold knows%s", key.Value, meant(key.Value, fileNames(doors)))
	case known.Scope == OfClient:
		return fmt.Errorf("%s is for commands that talk to a server, not for the server: use --%s or %s",
			known.Name, known.Name, known.Env())
	case known.Scope == ofFile:
		return fmt.Errorf("%s can't be set in the file that it names", known.Name)
	case value.Kind != yaml.ScalarNode:
		return fmt.Errorf("%s takes one plain value", known.Name)
	case value.Tag == "!!null":
		return fmt.Errorf("%s has no value: leave the line out to use the default", known.Name)
	}
	return nil
}

func fileNames(doors []Door) (names []string) {
	for _, key := range pick(doors, OfServer) {
		names = append(names, key.Name)
	}
	return names
}

// YAML writes settings as a file that would set them again, with their origins as
// comments if asked for.
func YAML(settings []Setting, origins bool) ([]byte, error) {
	root := yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings {
		if s.Key.Scope != OfServer {
			continue
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: s.Key.Name}
		value := &yaml.Node{}
		value.SetString(s.Value)
		if s.Key.Switch {
			value.Tag = "!!bool"
		}
		if origins {
			value.LineComment = s.Origin
		}
		root.Content = append(root.Content, key, value)
	}
	return yaml.Marshal(&root)
}
