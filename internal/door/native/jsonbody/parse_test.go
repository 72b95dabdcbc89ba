package jsonbody

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// halfPair says of every string what a strict reader would.
func TestHalfPair(t *testing.T) {
	for body, want := range map[string]bool{
		``: false, `\`: false, `\u`: false, `\ud800`: true, `\uD83D\uDE00`: false, `\ud83d\n`: true, `\ud83dx\ude00`: true,
		`\\ud800`: false, `\\\ud800`: true, `\ude00`: true, `\ud83d\ude00\ud83d`: true, `\uzzzz`: false, `\u00e9`: false,
	} {
		if got := halfPair([]byte(body)); got != want {
			t.Errorf("halfPair(%s) = %v", body, got)
		}
	}
}

// fields lists what encoding/json would accept.
func TestFields(t *testing.T) {
	for _, r := range []any{&v1.AcquireRequest{}, &v1.BreakRequest{}, &v1.SessionRequest{}, &v1.ChangeRequest{}} {
		for _, name := range fields(r) {
			decoder := json.NewDecoder(strings.NewReader(fmt.Sprintf(`{%q: null}`, name)))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(r); err != nil {
				t.Errorf("%T has no %s: %v", r, name, err)
			}
		}
	}
}

func BenchmarkParseAcquire(b *testing.B) {
	body := []byte(`{"resource":"jobs/nightly","holder":"bench","ttl":"30s","id":"c123456"}`)
	b.ReportAllocs()
	for b.Loop() {
		var r v1.AcquireRequest
		if err := Parse(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}
