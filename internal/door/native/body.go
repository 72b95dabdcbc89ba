package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
)

// buffers are for bodies on their way in. What is read from one is copied out of
// it before it is given back.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept is the largest buffer that is kept for the next request: one large body
// must not keep its memory for ever.
const maxKept = 32 << 10

// read reads the body into a request of the API.
func (c *call) read(into any) error {
	some, err := c.readAny(into)
	if err == nil && !some {
		return invalid("the body is empty: send a JSON object")
	}
	return err
}

// readOptional reads a body of which every field may be left out, and so all.
func (c *call) readOptional(into any) error {
	_, err := c.readAny(into)
	return err
}

// readAny reads the body, and reports whether there was one.
func (c *call) readAny(into any) (some bool, err error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= maxKept {
			buffers.Put(buffer)
		}
	}()
	buffer.Reset()
	if err := c.readBody(buffer); err != nil || buffer.Len() == 0 {
		return false, err
	}
	return true, parse(buffer.Bytes(), into)
}

func (c *call) readBody(buffer *bytes.Buffer) error {
	if c.r.ContentLength == 0 {
		return nil
	}
	if err := checkType(c.r.Header["Content-Type"]); err != nil {
		return err
	}
	return c.receive(buffer, c.mostBody())
}

// mostBody returns how large a JSON body may be.
func (c *call) mostBody() int {
	if c.maxBody != 0 {
		return c.maxBody
	}
	return v1.MaxBody
}

// receive reads a body of at most that many bytes.
func (c *call) receive(buffer *bytes.Buffer, most int) error {
	_, err := buffer.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, int64(most)))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return door.Invalidly(http.StatusRequestEntityTooLarge,
			"the body has more than %d bytes, which is the most there can be", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return door.Invalidly(http.StatusRequestTimeout, "the body did not arrive within %v", readTime)
	}
	return invalid("the body cannot be read: %v", err)
}

// checkType lets JSON pass. What does not say what it is is taken for JSON too, and so
// is what "curl -d" says without being asked. (A form on a page of another site says
// the same; that is refused for where it comes from.)
func checkType(values []string) error {
	if len(values) == 0 || len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(values[0])
	if len(values) == 1 && err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded") {
		return nil
	}
	return door.Invalidly(http.StatusUnsupportedMediaType,
		"the body is %s: send JSON, with the header Content-Type: application/json", brief(strings.Join(values, ", ")))
}

// parse reads JSON strictly: what it does not understand it does not skip.
func parse(body []byte, into any) error {
	if !utf8.Valid(body) {
		return invalid("the body is not valid UTF-8")
	}
	if halfPair(body) {
		return invalid(
			"the body has an escape such as \\ud800 that is half a character: write both halves, " +
				"or the character itself")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return explain(err, body, into)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return invalid("the body goes on after its JSON object: send one object and nothing else")
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return invalid("the body is %s: send a JSON object", brief(string(body)))
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
		return invalid("the body is not valid JSON: %v (at byte %d)", syntax, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return invalid("the body is not valid JSON: it ends too early, after %d bytes", len(body))
	case errors.As(err, &kind) && kind.Field == "":
		return invalid("the body is a JSON %s: send an object", kind.Value)
	case errors.As(err, &kind) && kind.Field == "labels" && kind.Type.Kind() == reflect.String:
		return invalid("labels has a JSON %s as a value: every value has to be a string", kind.Value)
	case errors.As(err, &kind):
		return invalid("%s is a JSON %s: it has to be %s", kind.Field, kind.Value, word(kind.Type))
	}
	if field := culprit(body, into); field != "" {
		return invalid("%s: %v", field, err)
	}
	return invalid("the body cannot be read: %v", err)
}

func unknownField(quoted string, into any) error {
	name, err := strconv.Unquote(quoted)
	if err != nil {
		name = quoted
	}
	known := fields(into)
	if len(known) == 0 {
		return invalid("field %s is unknown: this request has no fields", brief(name))
	}
	return invalid("field %s is unknown; known are: %s", brief(name), strings.Join(known, ", "))
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
