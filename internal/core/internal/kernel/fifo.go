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

// A longFifo is a fifo in blocks, for a million things: to grow a single array of that size would hold up every other
// command. As in a fifo, copies share what they hold.
type longFifo[T any] struct {
	blocks []*[blockLen]T
	popped int // of the first block
	n      int
}

const blockLen = 256

func (q *longFifo[T]) len() int { return q.n }

func (q *longFifo[T]) push(v T) {
	end := q.popped + q.n
	if end == len(q.blocks)*blockLen {
		q.blocks = append(q.blocks, new([blockLen]T))
	}
	q.blocks[end/blockLen][end%blockLen] = v
	q.n++
}

func (q *longFifo[T]) front() *T { return q.at(0) }

// at returns the i-th of what is left, which must not be changed.
func (q *longFifo[T]) at(i int) *T {
	i += q.popped
	return &q.blocks[i/blockLen][i%blockLen]
}

func (q *longFifo[T]) pop() {
	q.n--
	if q.popped++; q.popped == blockLen {
		q.blocks, q.popped = q.blocks[1:], 0
	}
}
