package limit

import (
	"fmt"
	"testing"
)

// Whoever takes all it gets leaves some for the next one, who does too.
func TestABudgetIsShared(t *testing.T) {
	b := &Budget{Most: 1 << 20, Alone: 3 << 18}
	for i := range 4 {
		client, n := fmt.Sprint(i), 0
		for b.Take(client, 4096) {
			n += 4096
		}
		if n == 0 {
			t.Fatalf("nothing is left for client %d", i)
		}
		if i == 0 && n > b.Alone {
			t.Errorf("one client has %d of %d", n, b.Alone)
		}
		defer func() {
			if b.Give(client, n); i == 0 && (b.Now() != 0 || len(b.by) != 0) {
				t.Errorf("%d are taken by %d clients after all have given back", b.Now(), len(b.by))
			}
		}()
	}
	if b.Now() > b.Most {
		t.Errorf("%d are used, of at most %d", b.Now(), b.Most)
	}
	if b.Take("late", b.Most) {
		t.Error("somebody got all of it")
	}
}
