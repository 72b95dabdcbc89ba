// Package keyword fills the requests of the API from words: the arguments of a command of RESP, where HTTP has JSON.
//
// A field is named by its JSON name, in any case. Text, numbers and durations are written plainly, booleans stand bare;
// a list is a word for each element, or JSON, and so is an object.
package keyword

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
)

// A Field is one field of a request.
type Field struct {
	Name string // in JSON
	Bare bool   // it is true by its name alone
	Many bool   // it may be given several times

	index int
}

// Fields are the fields of a request, in their order.
type Fields []Field

var made sync.Map // reflect.Type → Fields

// Of returns the fields of a request's type.
func Of(t reflect.Type) Fields {
	if had, ok := made.Load(t); ok {
		return had.(Fields)
	}
	var all Fields
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		kind := f.Type.Kind()
		all = append(all, Field{Name: name, index: i, Bare: kind == reflect.Bool,
			Many: kind == reflect.Map || kind == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8})
	}
	made.Store(t, all)
	return all
}

// Singular returns the name of a field that may be given several times, for one of them: label for labels.
func (f *Field) Singular() string {
	if one, ok := strings.CutSuffix(f.Name, "s"); ok && f.Many && one != "" {
		return one
	}
	return ""
}

// Set sets the field of a request, which is a pointer to a struct. The word is not kept.
func (f *Field) Set(request any, word []byte) error { return f.set(request, word, nil) }

func (f *Field) set(request any, word []byte, known *Known) error {
	if !utf8.Valid(word) && !isBytes(request, f.index) {
		return door.Invalid("%s is not valid UTF-8", f.Name)
	}
	field := reflect.ValueOf(request).Elem().Field(f.index)
	if text, ok := field.Addr().Interface().(*string); ok {
		*text = known.text(f.index, word)
		return nil
	}
	if err := set(field, word); err != nil {
		return door.Invalid("%s: %v", f.Name, err)
	}
	return nil
}

func isBytes(request any, i int) bool {
	t := reflect.TypeOf(request).Elem().Field(i).Type
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// set sets what is asked for most without a detour.
func set(field reflect.Value, word []byte) error {
	switch into := field.Addr().Interface().(type) {
	case *string:
		*into = string(word)
		return nil
	case *bool:
		return setBool(into, word)
	case *v1.Duration:
		d, err := v1.ParseDuration(string(word))
		*into = v1.Duration(d)
		return err
	case *v1.TTL:
		return setTTL(into, word)
	case *[]string:
		if len(word) == 0 || word[0] != '[' {
			*into = append(*into, string(word))
			return nil
		}
	case *map[string]string:
		if len(word) == 0 || word[0] != '{' {
			return setLabel(into, word)
		}
	case *[]byte:
		*into = bytes.Clone(word)
		return nil
	}
	return setKind(field, word)
}

// setKind sets what is told by its kind alone, and the rest by way of JSON.
func setKind(field reflect.Value, word []byte) error {
	_, reads := field.Addr().Interface().(json.Unmarshaler)
	switch kind := field.Kind(); {
	case kind == reflect.Pointer:
		made := reflect.New(field.Type().Elem())
		if err := set(made.Elem(), word); err != nil {
			return err
		}
		field.Set(made)
		return nil
	case reads:
	case field.CanInt():
		n, err := strconv.ParseInt(string(word), 10, field.Type().Bits())
		if err != nil {
			return door.Invalid("%s is not a whole number", door.Brief(string(word)))
		}
		field.SetInt(n)
		return nil
	case field.CanUint():
		n, err := strconv.ParseUint(string(word), 10, field.Type().Bits())
		if err != nil {
			return door.Invalid("%s is not a whole number, 0 or more", door.Brief(string(word)))
		}
		field.SetUint(n)
		return nil
	case kind == reflect.Slice && len(word) > 0 && word[0] == '{':
		one := reflect.New(field.Type().Elem())
		if err := strict(word, one.Interface()); err != nil {
			return err
		}
		field.Set(reflect.Append(field, one.Elem()))
		return nil
	}
	return setJSON(field, word)
}

// setJSON reads a word as JSON, or as the text that it is if that is not what it has to be.
func setJSON(field reflect.Value, word []byte) error {
	if json.Valid(word) {
		err := strict(word, field.Addr().Interface())
		if err == nil || word[0] == '{' || word[0] == '[' {
			return err
		}
	}
	field.SetZero()
	quoted, err := json.Marshal(string(word))
	if err != nil {
		return err
	}
	return strict(quoted, field.Addr().Interface())
}

// strict reads JSON whose fields are all known.
func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return door.Invalid("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if decoder.More() {
		return door.Invalid("%s goes on after its JSON", door.Brief(string(text)))
	}
	return nil
}

func setBool(into *bool, word []byte) error {
	switch string(word) {
	case "true", "1":
		*into = true
	case "false", "0":
		*into = false
	default:
		return door.Invalid("%s is neither true nor false", door.Brief(string(word)))
	}
	return nil
}

// IsBool reports whether a word is yes or no, and so may follow the name of what is yes by its name alone.
func IsBool(word []byte) bool {
	switch string(word) {
	case "true", "false", "1", "0":
		return true
	}
	return false
}

func setTTL(into *v1.TTL, word []byte) error {
	switch string(word) {
	case "none", "null":
		*into = v1.TTL{None: true}
		return nil
	case "auto", "unattended":
		*into = v1.TTL{Auto: string(word) == "auto", Unattended: string(word) != "auto"}
		return nil
	}
	d, err := v1.ParseDuration(string(word))
	if err == nil && d <= 0 {
		err = door.Invalid("%v is too short: write a duration above zero, or none", d)
	}
	*into = v1.TTL{Duration: v1.Duration(d)}
	return err
}

// setLabel adds key=value to a map.
func setLabel(into *map[string]string, word []byte) error {
	key, value, ok := strings.Cut(string(word), "=")
	if !ok {
		return door.Invalid("%s has no =: write key=value", door.Brief(key))
	}
	if *into == nil {
		*into = map[string]string{}
	}
	if _, twice := (*into)[key]; twice {
		return door.Invalid("%s is given twice: give each key once", door.Brief(key))
	}
	(*into)[key] = value
	return nil
}
