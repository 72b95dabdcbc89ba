package flatjson

import (
	"reflect"
	"testing"
	"time"
)

type request struct {
	Name  string            `json:"name"`
	Note  *string           `json:"note,omitempty"`
	Tags  map[string]string `json:"tags"`
	IDs   []string          `json:"ids"`
	Parts []request         `json:"parts"`
	Inner *request          `json:"inner"`
	Count int               `json:"count"`
	At    *time.Time        `json:"at"`
	Data  []byte            `json:"data"`
}

func TestCheckTexts(t *testing.T) {
	bad, now := "a\xff", time.Now()
	for want, r := range map[string]request{
		"": {Name: "é", Tags: map[string]string{"a": "b"}, IDs: []string{"c"}, Parts: []request{{}}, Inner: &request{},
			At: &now, Data: []byte(bad)},
		`name "a\xff" is not valid UTF-8`:          {Name: bad},
		`note "a\xff" is not valid UTF-8`:          {Note: &bad},
		`tags: "a\xff=" is not valid UTF-8`:        {Tags: map[string]string{bad: ""}},
		`ids: "a\xff" is not valid UTF-8`:          {IDs: []string{"", bad}},
		`parts 2: name "a\xff" is not valid UTF-8`: {Parts: []request{{}, {Name: bad}}},
		`parts 1: ids: "a\xff" is not valid UTF-8`: {Inner: &request{Parts: []request{{IDs: []string{bad}}}}},
	} {
		got := ""
		if err := CheckTexts(reflect.ValueOf(r)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q is reported, want %q", got, want)
		}
	}
}
