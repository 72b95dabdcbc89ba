package jsonbody

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// What is read fast is what encoding/json would have read strictly.
func FuzzFlat(f *testing.F) {
	for _, body := range []string{
		`{"resource":"a/b","holder":"h","id":"1","session":"s"}`, `{"resource":"a","ttl":"30s"}`, `{"ttl":"-1s"}`,
		`{"resource":"a","ttl":"auto"}`, `{"id":"1","id":"2"}`, `{"ID":"1"}`, `{"id":null}`, `{"id":1}`, `{"id":"1","x":"2"}`,
		`{"resource":"a","resource":null}`, `{"resource":"a","labels":{"a":"b"}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, r := range []any{&v1.AcquireRequest{}, &v1.ReleaseRequest{}, &v1.RenewRequest{}} {
			want := reflect.New(reflect.TypeOf(r).Elem()).Interface()
			if !flat(body, r) {
				if !reflect.DeepEqual(r, want) {
					t.Errorf("%q leaves %+v behind", body, r)
				}
				continue
			}
			decoder := json.NewDecoder(bytes.NewReader(body))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(want); err != nil || !reflect.DeepEqual(r, want) {
				t.Errorf("%q is read as %+v, want %+v, %v", body, r, want, err)
			}
		}
	})
}
