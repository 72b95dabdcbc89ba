package tfstate

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
)

// The scanner says of no text that it is JSON if it is not, nor the other way round, and
// reads the same fields as encoding/json.
func FuzzReadHead(f *testing.F) {
	f.Add(`{"version":4,"terraform_version":"1.14.7","serial":7,"lineage":"L","outputs":{"a":[1,2,{"b":"\u00e4\n"}]}}`)
	f.Add(`{"serial":3,"lineage":"x","meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}`)
	f.Add(`{"version":4,"serial":0,"line\u0061ge":"y","terraform_version":"1.0"}`)
	f.Add(`{"a":tru}`)
	f.Add(`{"version":4,"serial":1e3,"lineage":"x"}`)
	f.Add(`[1]`)
	f.Fuzz(func(t *testing.T, text string) {
		s := NewScanner()
		err := s.write([]byte(text))
		if err == nil {
			err = s.End()
		}
		valid := json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
		limits := err != nil && (strings.Contains(err.Error(), "twice") || strings.Contains(err.Error(), "too long") ||
			strings.Contains(err.Error(), "too much inside"))
		if (err == nil) != valid && !limits {
			t.Fatalf("valid is %v, and the scanner says: %v", valid, err)
		}
		whole, bad := s.Head()
		if err != nil {
			return
		}
		pieces, badToo := ReadHead(iotest.OneByteReader(strings.NewReader(text)))
		// A reader that stops early may miss what is wrong further on.
		if bad == nil && (badToo != nil || whole.Serial != pieces.Serial || whole.Lineage != pieces.Lineage) {
			t.Fatalf("in one piece %+v, %v; byte by byte %+v, %v", whole, bad, pieces, badToo)
		}
		var want struct {
			Serial  json.Number
			Lineage string
		}
		if bad == nil && json.Unmarshal([]byte(text), &want) == nil && !strings.Contains(strings.ToLower(text), `\u`) &&
			exact(text) && want.Lineage != whole.Lineage {
			t.Fatalf("the lineage is %q, and was read as %q", want.Lineage, whole.Lineage)
		}
	})
}

// exact reports whether encoding/json, which takes keys for the same that differ in case,
// could have read something else.
func exact(text string) bool {
	return strings.Count(strings.ToLower(text), `"lineage"`) == strings.Count(text, `"lineage"`) &&
		strings.Count(text, `"lineage"`) == 1
}

// What a permit says survives being kept, and nothing else is taken for one.
func FuzzParsePermit(f *testing.F) {
	f.Add(`{"revision":7,"by":"ann","reason":"move","until":"2026-01-02T03:04:05Z"}`)
	f.Add(`{"revision":7}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		p := ParsePermit(text)
		if p == nil {
			return
		}
		again := ParsePermit(p.Encode())
		if again == nil || again.Revision != p.Revision || again.By != p.By || again.Reason != p.Reason {
			t.Errorf("%q is %+v, and then %+v", text, p, again)
		}
	})
}
