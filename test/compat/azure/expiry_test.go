package azure

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// TestFifteenSeconds measures, by the server's own history, how long leases of 15 s last.
// It prints, and judges nothing: that is for a quiet machine, and for a reader.
func TestFifteenSeconds(t *testing.T) {
	if !*full {
		t.Skip("left to: make compat")
	}
	s := startServer(t)
	s.leasehold(t, "azure", "container", "create", accountName, "timed")
	box := newStore(t, "leasehold", s.pathStyle(), s.key, s.client()).sdk.NewContainerClient("timed")
	const leases = 100
	name := func(i int) string { return fmt.Sprintf("x%03d", i) }
	for i := range leases {
		b := box.NewBlockBlobClient(name(i))
		_, err := b.Upload(t.Context(), nopCloser(""), nil)
		check(t, err)
		l, err := lease.NewBlobClient(b, nil)
		check(t, err)
		_, err = l.AcquireLease(t.Context(), 15, nil)
		check(t, err)
	}
	var lasted []time.Duration
	for i := range leases {
		waitFor(t, "a lease to end", func() bool {
			d, over := s.lasted(t, "azure/"+accountName+"/timed/"+name(i))
			if over {
				lasted = append(lasted, d)
			}
			return over
		})
	}
	slices.Sort(lasted)
	t.Logf("%d leases of 15 s lasted from %v to %v, half of them up to %v", leases, lasted[0], lasted[leases-1], lasted[leases/2])
}

// lasted tells how long the one lease on a resource lasted.
func (s *server) lasted(t *testing.T, resource string) (time.Duration, bool) {
	t.Helper()
	answer, err := http.Get(s.native + "/v1/history?resource=" + resource)
	check(t, err)
	defer answer.Body.Close()
	var page struct {
		Items []struct {
			Kind string    `json:"kind"`
			At   time.Time `json:"at"`
		} `json:"items"`
	}
	check(t, json.NewDecoder(answer.Body).Decode(&page))
	var began, ended time.Time
	for _, e := range page.Items {
		switch e.Kind {
		case "acquired":
			began = e.At
		case "ended":
			ended = e.At
		}
	}
	return ended.Sub(began), !ended.IsZero()
}
