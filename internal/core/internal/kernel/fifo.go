package kernel

// A fifo is a queue whose copies stay as they are: what one copy holds is never
// written again, only appended to or left behind.
type fifo[T any] struct{ items []T }

func (q *fifo[T]) len() int { return len(q.items) }

func (q *fifo[T]) push(v T) {
	if len(q.items) == cap(q.items) {
		// A new array for what is left lets the old one, with all that was popped
		// from it, go.
		items := make([]T, len(q.items), 2*len(q.items)+16)
		copy(items, q.items)
		q.items = items
	}
	q.items = append(q.items, v)
}

func (q *fifo[T]) front() T { return q.items[0] }

func (q *fifo[T]) pop() { q.items = q.items[1:] }
