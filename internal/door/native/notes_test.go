package native

import (
	"strings"
	"testing"
)

// A value is shown as text exactly if it is text, and always in base64.
func TestValuesAsText(t *testing.T) {
	door := newDoor(t, Config{})
	for value, text := range map[string]string{
		"max=10\n\ttab \"quoted\" \\ ü": `"text":"max=10\n\ttab \"quoted\" \\ ü"`, "": `"text":""`, "a\x00b": "", "\xff": "", "\x7f": "",
	} {
		ask(t, door, "PUT", "/v1/records/r", value).expect(200)
		a := ask(t, door, "GET", "/v1/records/r", "").expect(200, `"value":"`)
		if text == "" {
			a.without(`"text"`)
		} else {
			a.expect(200, text)
		}
		ask(t, door, "GET", "/v1/records?keys=true", "").expect(200).without(`"text"`)
	}
	ask(t, door, "POST", "/v1/txn", `{"then":[{"do":"put","path":"r","text":"max=30"},{"do":"get","path":"r"}]}`).
		expect(200, `"text":"max=30"`)
	ask(t, door, "POST", "/v1/txn", `{"then":[{"do":"put","path":"r","text":"a","value":"YQ=="}]}`).
		expect(400, "value, in base64, and text are both given")
}

// A note is kept with the lease, and says when it was written.
func TestNotes(t *testing.T) {
	door := newDoor(t, Config{})
	ask(t, door, "POST", "/v1/acquire", `{"resource":"r","holder":"ann","id":"a"}`).expect(200, `"door":"native"`)
	ask(t, door, "POST", "/v1/renew", `{"id":"a","note":"epoch 3 of 10"}`).expect(200, `"note":"epoch 3 of 10","noted":"`)
	ask(t, door, "POST", "/v1/renew", `{"id":"a"}`).expect(200, `"note":"epoch 3 of 10"`)
	ask(t, door, "GET", "/v1/resources?holder=a*", "").expect(200, `"note":"epoch 3 of 10"`)
	ask(t, door, "POST", "/v1/renew", `{"id":"a","note":""}`).expect(200).without(`"note"`)
	ask(t, door, "POST", "/v1/renew", `{"id":"a","note":"`+strings.Repeat("x", 257)+`"}`).
		expect(400, "note has 257 bytes: at most 256 are allowed")
}
