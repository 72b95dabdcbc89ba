package btree

// A Tree has items in the order of a function. Items of which none is less than the other are the same item.
type Tree[T any] struct {
	tree tree[T, struct{}]
	less func(a, b T) bool
}

// New returns an empty tree.
func New[T any](less func(a, b T) bool) *Tree[T] { return &Tree[T]{less: less} }

// Copy returns a tree with the same items. What is done to one of both is not seen in the other.
func (t *Tree[T]) Copy() *Tree[T] { return &Tree[T]{share(&t.tree), t.less} }

// Len returns how many items there are.
func (t *Tree[T]) Len() int { return length(t.tree.root) }

// Less reports whether a comes before b.
func (t *Tree[T]) Less(a, b T) bool { return t.less(a, b) }

// Get returns the item that is the same as key, and whether there is one.
func (t *Tree[T]) Get(key T) (item T, ok bool) {
	n, i := lookUp(t.tree.root, func(items []T) (int, bool) { return searchBy(items, key, t.less) })
	if n == nil {
		return item, false
	}
	return n.keys[i], true
}

// Set adds an item, or puts it in the place of the same one and returns that.
func (t *Tree[T]) Set(item T) (before T, replaced bool) {
	find := func(items []T) (int, bool) { return searchBy(items, item, t.less) }
	before, _, replaced = put(&t.tree, find, item, struct{}{})
	return before, replaced
}

// Delete takes out the item that is the same as key, and returns it.
func (t *Tree[T]) Delete(key T) (item T, deleted bool) {
	find := func(items []T) (int, bool) { return searchBy(items, key, t.less) }
	item, _, deleted = remove(&t.tree, find, false)
	return item, deleted
}

// Scan shows all items in order, until see returns false.
func (t *Tree[T]) Scan(see func(item T) bool) {
	ascend(t.tree.root, first, func(item T, _ struct{}) bool { return see(item) })
}

// Ascend shows the items that are not less than from in order, until see returns false.
func (t *Tree[T]) Ascend(from T, see func(item T) bool) {
	find := func(items []T) (int, bool) { return searchBy(items, from, t.less) }
	ascend(t.tree.root, find, func(item T, _ struct{}) bool { return see(item) })
}

// Descend shows the items that from is not less than, from the last on, until see returns false.
func (t *Tree[T]) Descend(from T, see func(item T) bool) {
	find := func(items []T) (int, bool) { return searchBy(items, from, t.less) }
	descend(t.tree.root, find, func(item T, _ struct{}) bool { return see(item) })
}

// GetAt returns the item that has as many before it as index says, and whether there is one.
func (t *Tree[T]) GetAt(index int) (item T, ok bool) {
	n, i := place(t.tree.root, index)
	if n == nil {
		return item, false
	}
	return n.keys[i], true
}

// Min returns the first item, and whether there is one.
func (t *Tree[T]) Min() (item T, ok bool) { return t.GetAt(0) }

// searchBy returns where an item is among sorted ones, or where it would be.
func searchBy[T any](items []T, item T, less func(a, b T) bool) (at int, found bool) {
	end := len(items)
	for at < end {
		if middle := int(uint(at+end) / 2); less(items[middle], item) {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at, at < len(items) && !less(item, items[at])
}
