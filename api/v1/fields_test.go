package v1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/words"
)

// fill sets every field of a value to something that is not zero.
func fill(v reflect.Value, depth int) {
	switch at := v.Addr().Interface().(type) {
	case *Time:
		at.Time = time.Date(2026, 11, 16, 20, 0, 0, 123e6, time.UTC)
		return
	case *TTL:
		at.Duration = Duration(30 * time.Second)
		return
	case *[]byte:
		*at = []byte("value")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(90 * time.Second))
	case reflect.Uint64:
		v.SetUint(77)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"key": "label"}))
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth)
		}
	default:
		panic(v.Kind())
	}
}

// asRESP writes JSON as a server writes the same fields in RESP.
func asRESP(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = fmt.Appendf(b, "%%%d\r\n", len(v))
		for key, value := range v {
			b = asRESP(resp.AppendBulk(b, key), value)
		}
		return b
	case []any:
		b = resp.AppendArray(b, len(v))
		for _, item := range v {
			b = asRESP(b, item)
		}
		return b
	case string:
		return resp.AppendBulk(b, v)
	case json.Number:
		return fmt.Appendf(b, ":%s\r\n", v)
	case bool:
		return fmt.Appendf(b, "#%c\r\n", fmt.Sprint(v)[0])
	}
	return append(b, "_\r\n"...)
}

// Each field of an answer is read, as by JSON.
func TestAnswersHaveAllFields(t *testing.T) {
	for _, answer := range []any{&Lease{}, &Session{}, &Resource{}, &Record{}, &Deleted{}} {
		for _, empty := range []bool{false, true} {
			want := reflect.New(reflect.TypeOf(answer).Elem())
			if !empty {
				fill(want.Elem(), 2)
			}
			if record, ok := want.Interface().(*Record); ok && !empty {
				*record.Text = string(record.Value)
			}
			text, err := json.Marshal(want.Interface())
			if err != nil {
				t.Fatal(err)
			}
			decoder := json.NewDecoder(strings.NewReader(string(text)))
			decoder.UseNumber()
			var fields map[string]any
			if err := decoder.Decode(&fields); err != nil {
				t.Fatal(err)
			}
			if _, ok := fields["value"]; ok {
				fields["value"] = "value" // as it is, and not in base64
			}
			v, err := resp.NewReader(strings.NewReader(string(asRESP(nil, fields)))).Read()
			if err != nil {
				t.Fatal(err)
			}
			x := &exchange{answer: answer}
			if _, err := x.Take(v); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(answer)
			if err != nil || string(got) != string(text) {
				t.Errorf("%T: %v\n%s\n%s", answer, err, got, text)
			}
		}
	}
}

// Each field of a request is written, under its name in JSON.
func TestCommandsHaveAllFields(t *testing.T) {
	for _, command := range []command{
		&acquireCommand{}, &renewCommand{}, &releaseCommand{}, &changeCommand{}, &breakCommand{}, &openCommand{},
	} {
		body := reflect.ValueOf(command).Elem().Field(0)
		fill(body, 1)
		e := &encoder{words.Encoder{Tag: "7", Key: "once"}}
		if !command.resp(e) {
			t.Fatalf("%T cannot be said", command)
		}
		text, err := e.End()
		if err != nil {
			t.Fatal(err)
		}
		v, err := resp.NewReader(strings.NewReader(string(text))).Read()
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, item := range v.Items {
			words = append(words, string(item.Text))
		}
		for i := range body.NumField() {
			name, _, _ := strings.Cut(body.Type().Field(i).Tag.Get("json"), ",")
			_, release := command.(*releaseCommand)
			if (i == 0 || release && name == "ids") && words[1] == "text" {
				continue // it stands first
			}
			if !slices.Contains(words, strings.ToUpper(name)) {
				t.Errorf("%T says nothing of %s: %q", command, name, words)
			}
		}
		if !slices.Contains(words, "KEY") {
			t.Errorf("%T has no key: %q", command, words)
		}
	}
}

// Text that no name can have is refused before it is sent, as by HTTP.
func TestCommandsHaveText(t *testing.T) {
	bad := "a\xffb"
	for _, command := range []command{
		&acquireCommand{AcquireRequest{Resource: bad}}, &acquireCommand{AcquireRequest{Holder: bad}},
		&acquireCommand{AcquireRequest{Labels: map[string]string{"a": bad}}},
		&acquireCommand{AcquireRequest{Also: []AcquireItem{{Resource: bad}}}},
		&releaseCommand{ReleaseRequest{IDs: []string{"a", bad}}}, &closeSessionCommand{bad},
	} {
		e := &encoder{}
		if !command.resp(e) {
			t.Fatalf("%T cannot be said", command)
		}
		if _, err := e.End(); err == nil || !strings.Contains(err.Error(), "is not valid UTF-8") {
			t.Errorf("%T: %v", command, err)
		}
	}
}

// What RESP cannot say as HTTP does is left to HTTP.
func TestCommandsThatNeedHTTP(t *testing.T) {
	for _, command := range []command{
		&acquireCommand{AcquireRequest{Resource: "r", Wait: 1, Session: "s"}}, // its wait ends with its request
		&acquireCommand{AcquireRequest{Resource: "r", Wait: 1, ID: "a"}},
		&acquireCommand{AcquireRequest{Resource: "r", TTL: TTL{None: true}}},
		&releaseCommand{ReleaseRequest{IDs: []string{"a", "withdraw"}}},
		&putCommand{PutRequest{Path: "p", Body: strings.NewReader("x")}},
		&putCommand{PutRequest{Path: "p", Value: make([]byte, 1<<20)}},
		&deleteCommand{DeleteRequest{Prefix: "p"}},
	} {
		if command.resp(&encoder{}) {
			t.Errorf("%+v is said", command)
		}
	}
}
