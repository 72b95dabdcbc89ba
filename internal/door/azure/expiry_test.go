package azure

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

var full = flag.Bool("full", false, "also what takes long, and a quiet machine")

// TestWhenLeasesEnd measures when leases of 15 s end. They never end before; how long
// after is printed, and is for a quiet machine to tell.
func TestWhenLeasesEnd(t *testing.T) {
	if !*full {
		t.Skip("left to: go test ./internal/door/azure -run WhenLeasesEnd -full -v")
	}
	b := newBench(t)
	b.container("box")
	const leases = 100
	var mu sync.Mutex
	ends := map[string]time.Time{}
	watch := b.engine.Feed()
	done := make(chan struct{})
	began := map[string]time.Time{}
	for i := range leases {
		name := fmt.Sprintf("x%03d", i)
		b.blob("box/"+name, "")
		path := "azure/leasehold/box/" + name
		b.lease("/box/"+name, "acquire", "x-ms-lease-duration", "15").expect(201)
		var id string
		err := b.engine.Read(t.Context(), func(v core.View) { id = v.Status(leasehold.DefaultNamespace, path, 0).Holders[0].ID })
		if err != nil {
			t.Fatal(err)
		}
		began[id] = time.Now() // after the grant, by as long as the answer took
		came, forget := watch.Await(leasehold.DefaultNamespace, id)
		go func() {
			defer forget()
			<-came
			mu.Lock()
			defer mu.Unlock()
			if ends[id] = time.Now(); len(ends) == leases {
				close(done)
			}
		}()
		time.Sleep(7 * time.Millisecond) // apart from each other
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("some leases do not end")
	}
	var took []time.Duration
	for id, at := range ends {
		took = append(took, at.Sub(began[id]))
	}
	slices.Sort(took)
	t.Logf("%d leases of 15 s ended after %v to %v, half of them within %v", leases, took[0], took[leases-1], took[leases/2])
}
