package limit_test

import (
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/internal/limit"
)

// Whoever takes all it gets leaves some for the next one, who does too.
func TestABudgetIsShared(t *testing.T) {
	b := &limit.Budget{Most: 1 << 20, Alone: 3 << 18}
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
		defer b.Give(client, n)
	}
	if b.Used() > b.Most {
		t.Errorf("%d are used, of at most %d", b.Used(), b.Most)
	}
	if b.Take("late", b.Most) {
		t.Error("somebody got all of it")
	}
}
