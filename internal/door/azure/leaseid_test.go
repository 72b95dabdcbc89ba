package azure

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// TestLeasesAcrossTheRaise leases blobs below level 4, where the GUID is in the lease's id, and
// goes on with them after the level was raised, when it is a field.
func TestLeasesAcrossTheRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchAt(t, core.Level3)
		b.container("box")
		for _, blob := range []string{"/box/live", "/box/ended"} {
			b.blob(blob[1:], "text")
			b.lease(blob, "acquire", "x-ms-proposed-lease-id", idA, "x-ms-lease-duration", "15").expect(201)
		}
		time.Sleep(10 * time.Second)
		b.lease("/box/live", "renew", "x-ms-lease-id", idA).expect(200)
		time.Sleep(10 * time.Second)
		if err := b.engine.Raise(core.Level4); err != nil {
			t.Fatal(err)
		}

		b.lease("/box/live", "renew", "x-ms-lease-id", idA).expect(200)
		b.lease("/box/live", "change", "x-ms-lease-id", idA, "x-ms-proposed-lease-id", idB).expect(200)
		b.foreign("/box/live", idB)
		b.lease("/box/live", "renew", "x-ms-lease-id", idA).expect(409, "LeaseIdMismatchWithLeaseOperation")

		b.lease("/box/ended", "renew", "x-ms-lease-id", idA).expect(200) // a new grant, of the same duration
		b.foreign("/box/ended", idA)
		time.Sleep(16 * time.Second)
		b.lease("/box/ended", "renew", "x-ms-lease-id", idA).expect(200) // as one of its own level
		b.foreign("/box/ended", idA)
	})
}

// foreign expects a blob to be leased for 15 s under a foreign id.
func (b *bench) foreign(blob, want string) {
	b.Helper()
	var s leasehold.Status
	at := azureblob.Place{Account: testAccount, Container: "box", Blob: blob[len("/box/"):]}
	if err := b.engine.Read(b.Context(), func(v core.View) { s = v.Status("default", at.Resource(), 0) }); err != nil {
		b.Fatal(err)
	}
	if len(s.Holders) != 1 || s.Holders[0].Foreign != want || s.Holders[0].TTL != 15*time.Second {
		b.Errorf("%s is leased as %+v, want %s", blob, s.Holders, want)
	}
}
