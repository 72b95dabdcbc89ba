package azure

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/audit"
)

// refusals are the lines of the journal that tell of one, oldest first.
func (b *bench) refusals() (lines []audit.Line) {
	b.Helper()
	page, err := b.engine.Journal().Find(b.Context(), audit.Query{Kind: audit.Operation, Namespace: "default", Oldest: true, Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range page.Lines {
		if l.Outcome != audit.OK && l.Outcome != audit.Queued {
			lines = append(lines, l)
		}
	}
	return lines
}

func TestRefusalsAreInTheJournal(t *testing.T) {
	b := newBench(t)
	const one, two = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	b.ask("PUT", "/box?restype=container", "").expect(201)
	b.ask("PUT", "/box/x", "1", "x-ms-blob-type", "BlockBlob").expect(201)
	lease := func(action string, more ...string) reply {
		return b.ask("PUT", "/box/x?comp=lease", "", append([]string{"x-ms-lease-action", action}, more...)...)
	}
	acquire := func(id string) reply {
		return lease("acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", id)
	}
	write := func(id string) reply {
		return b.ask("PUT", "/box/x", "2", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", id)
	}
	acquire(one).expect(201)
	if got := b.refusals(); len(got) != 0 {
		t.Fatalf("refusals before there are any: %+v", got)
	}
	resource := "azure/" + testAccount + "/box/x"
	count := 0
	// refused expects one more line than before.
	refused := func(verb, outcome, reason string) {
		t.Helper()
		lines := b.refusals()
		if count++; len(lines) != count {
			t.Fatalf("%d refusals, want %d: %+v", len(lines), count, lines)
		}
		l := lines[count-1]
		if l.Verb != verb || l.Outcome != outcome || !strings.Contains(l.Reason, reason) || l.Resource != resource || l.Door != "azure" || l.Address == "" {
			t.Errorf("got %+v, want %s %s because of %s", l, verb, outcome, reason)
		}
	}
	acquire(two).expect(409, "LeaseAlreadyPresent")
	refused("acquire", "held", "LeaseAlreadyPresent")
	for range 3 { // whoever polls is there once
		acquire(two).expect(409, "LeaseAlreadyPresent")
	}
	write(two).expect(412, "LeaseIdMismatchWithBlobOperation")
	refused("put-record", "refused", "LeaseIdMismatch")
	b.ask("PUT", "/box/x", "2", "x-ms-blob-type", "BlockBlob").expect(412, "LeaseIdMissing")
	refused("put-record", "refused", "LeaseIdMissing")
	b.ask("DELETE", "/box/x", "").expect(412, "LeaseIdMissing")
	refused("delete-record", "refused", "LeaseIdMissing")
	lease("release", "x-ms-lease-id", two).expect(409, "LeaseIdMismatchWithLeaseOperation")
	refused("release", "held", "LeaseIdMismatch")
	lease("change", "x-ms-lease-id", two, "x-ms-proposed-lease-id", two).expect(409, "LeaseIdMismatchWithLeaseOperation")
	refused("change", "held", "LeaseIdMismatch")
	b.ask("PUT", "/box/x", "2", "x-ms-blob-type", "BlockBlob", "If-None-Match", "*", "x-ms-lease-id", one).expect(409, "BlobAlreadyExists")
	refused("put-record", "refused", "BlobAlreadyExists")
	lease("break", "x-ms-lease-break-period", "0").expect(202)
	write(one).expect(412, "LeaseLost") // a late writer
	refused("put-record", "lost", "LeaseLost")
	lease("release", "x-ms-lease-id", one).expect(200)
	lease("break").expect(409, "LeaseNotPresentWithLeaseOperation")
	refused("break", "not-found", "LeaseNotPresent")

	// What is not proven is denied, also a read.
	r := httptest.NewRequest(http.MethodGet, "https://127.0.0.1/"+testAccount+"/box/x", nil)
	b.sign(r)
	r.Header.Set("X-Ms-Version", "2020-02-10")
	b.send(r).expect(403, "AuthenticationFailed")
	refused("record", "denied", "AuthenticationFailed")

	// What is wrong in itself is not kept, and neither are reads and renewals.
	b.ask("GET", "/box/none", "").expect(404, "BlobNotFound")
	lease("renew", "x-ms-lease-id", two).expect(409, "LeaseIdMismatchWithLeaseOperation")
	lease("dance").expect(400, "InvalidHeaderValue")
	if got := b.refusals(); len(got) != count {
		t.Errorf("%d refusals, want %d", len(got), count)
	}
}
