// Package jsonbody reads the bodies of requests strictly, and says what is wrong with them in words that help.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leasehold/leasehold/internal/door"
)

// Parse reads JSON strictly: what it does not understand it does not skip.
func Parse(body []byte, into any) error {
	if flat(body, into) {
		return nil
	}
	if !utf8.Valid(body) {
		return door.Invalid("the body is not valid UTF-8")
	}
	if halfPair(body) {
		return door.Invalid(
			"the body has an escape such as \\ud800 that is half a character: write both halves, " +
				"or the character itself")
	}
	if err := door.CheckParts(body); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return explain(err, body, into)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return door.Invalid("the body goes on after its JSON object: send one object and nothing else")
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return door.Invalid("the body is %s: send a JSON object", door.Brief(string(body)))
	}
	return nil
}

// halfPair reports whether a body has an escaped surrogate without its other half.
// encoding/json would put another character in its place, and two names would
// become one.
func halfPair(body []byte) bool {
	for {
		i := bytes.IndexByte(body, '\\')
		if i < 0 || i+1 >= len(body) {
			return false
		}
		unit, ok := escape(body[i:])
		switch {
		case !ok:
			body = body[i+2:]
			continue
		case unit < 0xd800 || unit > 0xdfff:
			body = body[i+6:]
			continue
		}
		second, ok := escape(body[i+6:])
		if unit >= 0xdc00 || !ok || second < 0xdc00 || second > 0xdfff {
			return true
		}
		body = body[i+12:]
	}
}

// escape reads \uXXXX.
func escape(b []byte) (uint64, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return unit, err == nil
}

// explain turns what encoding/json says into what the caller should do.
func explain(err error, body []byte, into any) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknownField(name, into)
	}
	switch {
	case errors.As(err, &syntax):
		return door.Invalid("the body is not valid JSON: %v (at byte %d)", syntax, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return door.Invalid("the body is not valid JSON: it ends too early, after %d bytes", len(body))
	case errors.As(err, &kind) && kind.Field == "":
		return door.Invalid("the body is a JSON %s: send an object", kind.Value)
	case errors.As(err, &kind) && kind.Field == "labels" && kind.Type.Kind() == reflect.String:
		return door.Invalid("labels has a JSON %s as a value: every value has to be a string", kind.Value)
	case errors.As(err, &kind):
		return door.Invalid("%s is a JSON %s: it has to be %s", kind.Field, kind.Value, word(kind.Type))
	}
	if field := culprit(body, into); field != "" {
		return door.Invalid("%s: %v", field, err)
	}
	return door.Invalid("the body cannot be read: %v", err)
}

func unknownField(quoted string, into any) error {
	name, err := strconv.Unquote(quoted)
	if err != nil {
		name = quoted
	}
	known := fields(into)
	if len(known) == 0 {
		return door.Invalid("field %s is unknown: this request has no fields", door.Brief(name))
	}
	return door.Invalid("field %s is unknown; known are: %s", door.Brief(name), strings.Join(known, ", "))
}

// culprit finds the field whose value cannot be read, by reading each alone.
func culprit(body []byte, into any) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return ""
	}
	for _, name := range fields(into) {
		value, ok := all[name]
		if !ok {
			continue
		}
		one, _ := json.Marshal(map[string]json.RawMessage{name: value})
		if json.Unmarshal(one, reflect.New(reflect.TypeOf(into).Elem()).Interface()) != nil {
			return name
		}
	}
	return ""
}

// fields lists the JSON names of a request's fields.
func fields(request any) (names []string) {
	t := reflect.TypeOf(request).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func word(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Map:
		return "an object of strings"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string in base64"
		}
		return "a list"
	}
	return "a " + t.Kind().String()
}
