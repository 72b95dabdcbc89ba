package azure

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

// Whatever a note says, the write that carries it is done, others are told something that can be shown, and the
// holder can go on: renew after its end, and take the lease again.
func TestHostileNotes(t *testing.T) {
	long := strings.Repeat("é<\x00", 400)
	for name, n := range map[string]note{
		"long":     {ID: idA, Who: long, Operation: "x"},
		"reasons":  {ID: idA, Who: "ann", Operation: long[:800], Info: long[:800]},
		"controls": {ID: idA, Who: "\x00\x1b", Operation: "\x1b[2J\r\n", Info: "\x00", Version: "\x00\n" + long[:500]},
		"nothing":  {ID: idA},
		"another":  {ID: idA, Who: "root@server", Operation: "break"},
		"id":       {ID: "{" + strings.ToUpper(idA) + "}", Who: "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.container("tfstate")
			b.blob("tfstate/demo", "{}")
			b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA).expect(201)
			headers := noted(n)
			headers[1] = idA
			b.ask("PUT", "/tfstate/demo?comp=metadata", "", headers...).expect(200)
			h := b.status("tfstate/demo").Holders[0]
			for _, text := range append([]leasehold.Label{{Value: h.Holder}, {Value: h.Reason}}, h.Labels...) {
				if !utf8.ValidString(text.Value) || strings.ContainsFunc(text.Value, unicode.IsControl) {
					t.Errorf("%q cannot be shown", text.Value)
				}
			}
			if h.Holder == "" {
				t.Error("the holder has no name")
			}
			b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "15").expect(409, "LeaseAlreadyPresent")
			b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "30", "x-ms-proposed-lease-id", idA).expect(201)
			got := b.ask("HEAD", "/tfstate/demo", "").expect(200)
			if _, err := base64.StdEncoding.DecodeString(got.header.Get("x-ms-meta-terraformlockid")); err != nil {
				t.Error(err)
			}
			b.lease("/tfstate/demo", "release", "x-ms-lease-id", idA).expect(200)
		})
	}
}
