package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// MaxFile is how large a document can be that is written by hand.
const MaxFile = 1 << 20

// Parse reads a document as YAML or JSON. What it does not know is an error: a rule that is misspelt must not be left
// out in silence.
func Parse(text []byte) (doc v1.Access, err error) {
	if len(text) > MaxFile {
		return doc, fmt.Errorf("it has %d bytes: at most %d are allowed", len(text), MaxFile)
	}
	var value any
	decoder := yaml.NewDecoder(bytes.NewReader(text)) // JSON is YAML too
	switch err := decoder.Decode(&value); {
	case errors.Is(err, io.EOF):
		return doc, errors.New("it is empty: write at least a binding of the role admin")
	case err != nil:
		return doc, fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return doc, errors.New("it has a second document: leave \"---\" out")
	}
	if _, ok := value.(map[string]any); !ok {
		return doc, errors.New("it has to begin with a key, such as bindings")
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return doc, fmt.Errorf("keys have to be text: %v", err)
	}
	strict := json.NewDecoder(bytes.NewReader(plain))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&doc); err != nil {
		return doc, errors.New(explain(err))
	}
	return doc, nil
}

// explain turns what encoding/json says into what the writer should do.
func explain(err error) string {
	var kind *json.UnmarshalTypeError
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "unknown key " + name + ": see leasehold access apply --help"
	}
	if errors.As(err, &kind) {
		return fmt.Sprintf("%s is a %s: it has to be a %s", kind.Field, kind.Value, kind.Type.Kind())
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
