// Package agenda keeps what is to happen, in the order of time. What is added for the same moment happens in the order
// in which it was added, or a run of the simulator could not be repeated.
package agenda

import (
	"container/heap"
	"time"
)

// An Agenda is what is to happen. The zero Agenda is empty.
type Agenda struct {
	Made  uint64 // how much was added so far
	queue moments
}

// Add adds something for a moment.
func (a *Agenda) Add(at time.Duration, do func()) {
	a.Made++
	heap.Push(&a.queue, &moment{at, a.Made, do})
}

// Next takes off what happens next, up to an end; false if that is nothing.
func (a *Agenda) Next(end time.Duration) (at time.Duration, do func(), ok bool) {
	if len(a.queue) == 0 || a.queue[0].at > end {
		return 0, nil, false
	}
	m := heap.Pop(&a.queue).(*moment)
	return m.at, m.do, true
}

type moment struct {
	at   time.Duration
	made uint64
	do   func()
}

type moments []*moment

func (q moments) Len() int { return len(q) }
func (q moments) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].made < q[j].made
}
func (q moments) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *moments) Push(x any)   { *q = append(*q, x.(*moment)) }
func (q *moments) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
