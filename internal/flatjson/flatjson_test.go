package flatjson

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/internal/resp"
)

// read reads an object as encoding/json reads it into a map of any.
func read(body []byte) (map[string]any, bool) {
	all := map[string]any{}
	ok := Read(body, func(name []byte, v resp.Value) bool {
		switch v.Kind {
		case resp.Bulk:
			all[string(name)] = string(v.Text)
		case resp.Integer:
			all[string(name)] = float64(v.Int)
		case resp.Boolean:
			all[string(name)] = v.Bool()
		default:
			all[string(name)] = nil
		}
		return true
	})
	return all, ok
}

func TestRead(t *testing.T) {
	for body, fast := range map[string]bool{
		`{}`: true, ` { } `: true, `{"a":"b"}`: true, `{"a":1,"b":null,"c":true,"d":false,"e":""}` + "\n": true,
		`{"a":0}`: true, `{"a" : 9000000000000000 }`: true, `{"a":1,"a":2}`: true,
		``: false, `{`: false, `{"a"}`: false, `{"a":}`: false, `{"a":1,}`: false, `{"a":1}}`: false, `{"a":01}`: false,
		`{"a":1.5}`: false, `{"a":-1}`: false, `{"a":1e3}`: false, `{"a":[]}`: false, `{"a":{}}`: false,
		`{"a":"\n"}`: false, `{"a":"é"}`: false, "{\"a\":\"\n\"}": false, `{"a":nul}`: false, `{"a":truer}`: false,
		`{"a":"b`: false, `[]`: false, `{"a":99999999999999999999}`: false, `{,}`: false, `{"a":1 "b":2}`: false,
	} {
		if _, ok := read([]byte(body)); ok != fast {
			t.Errorf("%q is read: %v", body, ok)
		}
	}
}

// What is read at all is read as encoding/json reads it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"resource":"a/b","token":17,"ttl":null,"shared":true}`))
	f.Add([]byte(`{"a":"\u0041","b":[1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := read(body)
		if !ok {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("%q is read, and not JSON: %v", body, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q is read as %v, want %v", body, got, want)
		}
	})
}

// What is written at all is written as encoding/json writes it.
func FuzzAppendText(f *testing.F) {
	f.Add("reports/nightly")
	f.Add("a<b")
	f.Add("é\x00")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := AppendText(nil, text)
		if want, err := json.Marshal(text); ok && (err != nil || string(got) != string(want)) {
			t.Errorf("%q is written as %s, want %s", text, got, want)
		}
	})
}
