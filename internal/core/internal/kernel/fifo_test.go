package kernel

import "testing"

// TestLongFifo pushes and pops across many blocks. A copy stays as it was.
func TestLongFifo(t *testing.T) {
	t.Parallel()
	var q, copied longFifo[int]
	first, next := 0, 0
	firstOfCopy, nextOfCopy := 0, 0
	same := func(q *longFifo[int], first, next int) {
		t.Helper()
		if q.len() != next-first {
			t.Fatalf("it has %d things, and not %d", q.len(), next-first)
		}
		for i := range q.len() {
			if got := *q.at(i); got != first+i {
				t.Fatalf("at %d is %d, and not %d", i, got, first+i)
			}
		}
	}
	for round := range 60 {
		for range 100 + round {
			q.push(next)
			next++
		}
		if round == 30 {
			copied, firstOfCopy, nextOfCopy = q, first, next
		}
		for range 90 {
			if got := *q.front(); got != first {
				t.Fatalf("the first is %d, and not %d", got, first)
			}
			q.pop()
			first++
		}
		same(&q, first, next)
		same(&copied, firstOfCopy, nextOfCopy)
	}
	for ; q.len() > 0; first++ {
		q.pop()
	}
	q.push(next)
	same(&q, next, next+1)
}
