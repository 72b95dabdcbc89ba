package native

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func record(door http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	door.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

// Whatever is wrong with a body, the answer says what, where, and what to do.
func TestBodiesThatAreWrong(t *testing.T) {
	door := newDoor(t, Config{})
	long := strings.Repeat("n", 1025)
	for _, test := range []struct{ name, path, body, detail string }{
		{"empty", "acquire", ``, "the body is empty"},
		{"blank", "acquire", "  \n", "ends too early"},
		{"cut off", "acquire", `{"resource":"r"`, "ends too early, after 15 bytes"},
		{"not JSON", "acquire", `resource=r&holder=h`, "not valid JSON: invalid character 'r' looking for beginning of value (at byte 1)"},
		{"an array", "acquire", `[{"resource":"r"}]`, "the body is a JSON array: send an object"},
		{"a string", "acquire", `"r"`, "the body is a JSON string: send an object"},
		{"null", "acquire", `null`, "send a JSON object"},
		{"a number", "acquire", `7`, "the body is a JSON number: send an object"},
		{"two objects", "acquire", `{"resource":"r","holder":"h"}{}`, "goes on after its JSON object"},
		{"rubbish after", "acquire", `{"resource":"r","holder":"h"} x`, "goes on after its JSON object"},
		{"unknown field", "acquire", `{"resource":"r","hodler":"h"}`, `field \"hodler\" is unknown; known are: resource, holder, id, shared`},
		{"unknown long field", "acquire", `{"` + long + `":"h"}`, `…`},
		{"trailing comma", "acquire", `{"resource":"r",}`, "not valid JSON"},
		{"single quotes", "acquire", `{'resource':'r'}`, "not valid JSON"},
		{"deep", "acquire", strings.Repeat(`{"labels":`, 12000), "exceeded max depth"},
		{"deep array in labels", "acquire", `{"labels":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}`, "labels is a JSON array: it has to be an object of strings"},
		{"not UTF-8", "acquire", "{\"resource\":\"r\xff\"}", "not valid UTF-8"},
		{"half a character", "acquire", `{"resource":"\ud800","holder":"h"}`, "half a character"},
		{"the other half", "acquire", `{"resource":"\udc00x","holder":"h"}`, "half a character"},
		{"two first halves", "acquire", `{"resource":"\ud800\ud800","holder":"h"}`, "half a character"},
		{"half at the end", "acquire", `{"resource":"\ud8`, "ends too early"},
		{"a field of the wrong kind", "acquire", `{"resource":7,"holder":"h"}`, "resource is a JSON number: it has to be a string"},
		{"labels of the wrong kind", "acquire", `{"resource":"r","holder":"h","labels":{"a":1}}`, "labels has a JSON number as a value: every value has to be a string"},
		{"no resource", "acquire", `{"holder":"h"}`, "resource is missing"},
		{"no holder", "acquire", `{"resource":"r"}`, "holder is missing: say who asks"},
		{"empty holder", "acquire", `{"resource":"r","holder":null}`, "holder is missing"},
		{"empty segment", "acquire", `{"resource":"a//b","holder":"h"}`, `has the segment \"\"`},
		{"leading slash", "acquire", `{"resource":"/a","holder":"h"}`, `has the segment \"\"`},
		{"dot", "acquire", `{"resource":"a/./b","holder":"h"}`, `has the segment \".\"`},
		{"dots", "acquire", `{"resource":"..","holder":"h"}`, `has the segment \"..\"`},
		{"long resource", "acquire", `{"resource":"` + long + `","holder":"h"}`, "resource has 1025 bytes: at most 1024"},
		{"long holder", "acquire", `{"resource":"r","holder":"` + long + `"}`, "holder has 1025 bytes"},
		{"long id", "acquire", `{"resource":"r","holder":"h","id":"` + long + `"}`, "id has 1025 bytes"},
		{"long reason", "acquire", `{"resource":"r","holder":"h","reason":"` + long + `"}`, "reason has 1025 bytes"},
		{"long session", "acquire", `{"resource":"r","holder":"h","session":"` + long + `"}`, "session has 1025 bytes"},
		{"control character", "acquire", `{"resource":"a\u0007","holder":"h"}`, "control character U+0007 at byte 1"},
		{"newline in the holder", "acquire", `{"resource":"a","holder":"h\n"}`, "holder"},
		{"delete in the reason", "acquire", `{"resource":"a","holder":"h","reason":"\u007f"}`, "reason"},
		{"control character in a label", "acquire", `{"resource":"a","holder":"h","labels":{"k":"\u0001"}}`, `label \"k\"`},
		{"label without key", "acquire", `{"resource":"a","holder":"h","labels":{"":"v"}}`, "key of a label"},
		{"too many labels", "acquire", `{"resource":"a","holder":"h","labels":{"k":"` + strings.Repeat("v", 4096) + `"}}`, "labels have 4097 bytes"},
		{"ttl without unit", "acquire", `{"resource":"r","holder":"h","ttl":30}`, `ttl: 30 is not a duration: write a string with a unit, such as \"30s\"`},
		{"ttl with a bad unit", "acquire", `{"resource":"r","holder":"h","ttl":"5 minutes"}`, `ttl: \"5 minutes\" is not a duration`},
		{"ttl of zero", "acquire", `{"resource":"r","holder":"h","ttl":"0s"}`, "ttl: 0s is too short: write a duration above zero, or null"},
		{"ttl below zero", "acquire", `{"resource":"r","holder":"h","ttl":"-5s"}`, "ttl: -5s is too short"},
		{"ttl of next to nothing", "acquire", `{"resource":"r","holder":"h","ttl":"99ms"}`, "ttl 99ms is out of range"},
		{"ttl for ever", "acquire", `{"resource":"r","holder":"h","ttl":"31d"}`, "out of range"},
		{"ttl beyond numbers", "acquire", `{"resource":"r","holder":"h","ttl":"65535d999999h"}`, "ttl"},
		{"ttl auto of a session", "sessions", `{"ttl":"auto"}`, "nothing that its ttl could be learned from"},
		{"ttl auto and session", "acquire", `{"resource":"r","holder":"h","ttl":"auto","session":"s"}`, "not both"},
		{"ttl and session", "acquire", `{"resource":"r","holder":"h","ttl":"30s","session":"s"}`, "not both"},
		{"wait below zero", "acquire", `{"resource":"r","holder":"h","wait":"-1s"}`, "wait -1s is out of range"},
		{"wait too long", "acquire", `{"resource":"r","holder":"h","wait":"25h"}`, "wait 25h0m0s is out of range"},
		{"wait of the wrong kind", "acquire", `{"resource":"r","holder":"h","wait":{}}`, "wait: {} is not a duration"},
		{"grace too long", "acquire", `{"resource":"r","holder":"h","grace":"2d"}`, "grace"},
		{"hold limit too long", "acquire", `{"resource":"r","holder":"h","hold_limit":"366d"}`, "hold limit"},
		{"hold limit of the wrong kind", "acquire", `{"resource":"r","holder":"h","hold_limit":"long"}`, "hold_limit: "},
		{"renew nothing", "renew", `{}`, "id is missing"},
		{"renew with more", "renew", `{"id":"a","ttl":"30s"}`, `field \"ttl\" is unknown; known are: id`},
		{"release nothing", "release", `{"id":""}`, "id is missing"},
		{"change nothing", "change", `{"id":"a"}`, "change needs a new holder, a new id, or both"},
		{"change nobody", "change", `{"holder":"a"}`, "id is missing"},
		{"change to a bad id", "change", `{"id":"a","new_id":"\u0000"}`, "new_id"},
		{"break nothing", "break", `{}`, "break names a lease id, or a resource together with the token"},
		{"break without token", "break", `{"resource":"r"}`, "together with the token"},
		{"break both", "break", `{"resource":"r","token":1,"id":"a"}`, "not both"},
		{"break with a bad token", "break", `{"resource":"r","token":-1}`, "token is a JSON number -1: it has to be a whole number, 0 or more"},
		{"break with a broken token", "break", `{"resource":"r","token":1.5}`, "token is a JSON number 1.5"},
		{"break a bad resource", "break", `{"resource":"a//b","token":1}`, "has the segment"},
		{"break period below zero", "break", `{"id":"a","period":"-1s"}`, "period -1s is out of range"},
		{"break period of the wrong kind", "break", `{"id":"a","period":"soon"}`, "period: "},
		{"session without ttl", "sessions", `{"ttl":null}`, "a session always has one"},
		{"session with a bad ttl", "sessions", `{"ttl":"1ms"}`, "ttl 1ms is out of range"},
		{"session with a bad id", "sessions", `{"id":"\u0085"}`, "control character U+0085"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ask(t, door, "POST", "/v1/"+test.path, test.body).expect(400, `"code":"invalid"`, test.detail)
		})
	}
	ask(t, door, "GET", "/v1/resources?all", "").expect(200, `"items":[]`)
}

func TestBodiesThatAreRight(t *testing.T) {
	door := newDoor(t, Config{})
	for i, test := range []struct{ body, kind string }{
		{`{"resource":"\ud83d\ude00","holder":"h"}`, ""},
		{`{"resource":"\\ud800","holder":"h"}`, "application/json"},
		{" \r\n\t{\"resource\":\"a\\/b\",\"holder\":\"h\"}\n\n", "application/json; charset=utf-8"},
		{`{"resource":"c","holder":"h","labels":{"k":"` + strings.Repeat("v", 4095) + `"}}`, "APPLICATION/JSON"},
		{`{"resource":"` + strings.Repeat("d", 1024) + `","holder":"h"}` + strings.Repeat(" ", 100<<10), "application/json"},
	} {
		var headers []string
		if test.kind != "" {
			headers = []string{"Content-Type", test.kind}
		}
		if a := ask(t, door, "POST", "/v1/acquire", test.body, headers...); a.status != 200 {
			t.Errorf("body %d: %s", i, a.body)
		}
	}
}

func TestBodyLimits(t *testing.T) {
	door := newDoor(t, Config{})
	body := func(size int) string {
		s := `{"resource":"r","holder":"h"`
		return s + strings.Repeat(" ", size-len(s)-1) + "}"
	}
	ask(t, door, "POST", "/v1/acquire", body(v1.MaxBody)).expect(200)
	ask(t, door, "POST", "/v1/acquire", body(v1.MaxBody+1)).expect(413, `"code":"invalid"`, "more than 131072 bytes")
	ask(t, door, "POST", "/v1/acquire", `{"resource":"curl","holder":"h"}`, "Content-Type", "application/x-www-form-urlencoded").expect(200)
	ask(t, door, "POST", "/v1/acquire", `{"resource":"form","holder":"h"}`, "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://elsewhere.example").expect(403)
	for _, kind := range []string{"text/plain", "", "application/json; =", "multipart/form-data"} {
		ask(t, door, "POST", "/v1/acquire", `{}`, "Content-Type", kind).expect(415, `"code":"invalid"`, "Content-Type: application/json")
	}
	ask(t, door, "POST", "/v1/acquire", `{}`, "Content-Type", "application/json", "Content-Type", "text/plain").expect(415)
	ask(t, door, "POST", "/v1/sessions/s/renew", `x`, "Content-Type", "text/plain").expect(415)
}
