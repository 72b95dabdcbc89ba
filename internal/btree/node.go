// Package btree has ordered maps, sets and trees that are copied in an instant: copies share their nodes, and each
// makes a node its own before it changes it.
//
// What is done to nodes is done by functions and not by methods, and few of them: a package that sees a type with such
// a tree in it compiles all methods of the tree again, and what they call (decision 54). None of it is safe for use by
// several goroutines while one of them changes or copies the same tree.
package btree

// A node has at most most items, and, unless it is the root, at least least of them.
const (
	most  = 63
	least = most / 2
)

// An owner is whom a node belongs to. It is not empty, so that each one has an address of its own.
type owner struct{ _ byte }

// A node is a leaf if it has no children; otherwise it has one child more than keys.
// Keys stand apart from values, so that a search reads nothing but keys.
type node[K, V any] struct {
	owner    *owner
	count    int // items here and below
	keys     []K
	values   []V
	children []*node[K, V]
}

// A tree may change the nodes that have its owner. An owner of nil is enough for a tree that was never copied.
type tree[K, V any] struct {
	root  *node[K, V]
	owner *owner
}

// finder returns where a key is in those of a node, or where it would be.
type finder[K any] func(keys []K) (at int, found bool)

func first[K any]([]K) (int, bool)       { return 0, false }
func behind[K any](keys []K) (int, bool) { return len(keys), false }

func length[K, V any](n *node[K, V]) int {
	if n == nil {
		return 0
	}
	return n.count
}

func share[K, V any](t *tree[K, V]) tree[K, V] {
	t.owner = new(owner)
	return tree[K, V]{t.root, new(owner)}
}

// own makes a node one of the owner's, by a copy if it is not, and returns it.
func own[K, V any](at **node[K, V], by *owner) *node[K, V] {
	n := *at
	if n.owner != by {
		n = &node[K, V]{by, n.count, clone(n.keys), clone(n.values), clone(n.children)}
		*at = n
	}
	return n
}

// lookUp returns the node that has a key, and where; nil if none has it.
func lookUp[K, V any](n *node[K, V], find finder[K]) (*node[K, V], int) {
	for n != nil {
		i, found := find(n.keys)
		if found {
			return n, i
		}
		if n.children == nil {
			break
		}
		n = n.children[i]
	}
	return nil, 0
}

// place returns the node of the item that has index others before it, and where it is there.
func place[K, V any](n *node[K, V], index int) (*node[K, V], int) {
	if index < 0 || index >= length(n) {
		return nil, 0
	}
	for n.children != nil {
		i := 0
		for ; index > n.children[i].count; i++ {
			index -= n.children[i].count + 1
		}
		if index == n.children[i].count {
			return n, i
		}
		n = n.children[i]
	}
	return n, index
}

// ascend shows the items from a place on until see returns false, and reports whether it did not.
func ascend[K, V any](n *node[K, V], find finder[K], see func(K, V) bool) bool {
	if n == nil {
		return true
	}
	i, found := find(n.keys)
	if !found && n.children != nil && !ascend(n.children[i], find, see) {
		return false
	}
	for ; i < len(n.keys); i++ {
		if !see(n.keys[i], n.values[i]) || n.children != nil && !ascend(n.children[i+1], first, see) {
			return false
		}
	}
	return true
}

// descend is ascend the other way: the item at the place comes first, then those before it.
func descend[K, V any](n *node[K, V], find finder[K], see func(K, V) bool) bool {
	if n == nil {
		return true
	}
	i, found := find(n.keys)
	if found {
		i++
	} else if n.children != nil && !descend(n.children[i], find, see) {
		return false
	}
	for i--; i >= 0; i-- {
		if !see(n.keys[i], n.values[i]) || n.children != nil && !descend(n.children[i], behind, see) {
			return false
		}
	}
	return true
}

// put adds an item, or replaces the one with its key and returns that.
func put[K, V any](t *tree[K, V], find finder[K], key K, value V) (oldKey K, oldValue V, replaced bool) {
	if t.root == nil {
		t.root = &node[K, V]{owner: t.owner}
	}
	if len(t.root.keys) == most {
		t.root = &node[K, V]{owner: t.owner, count: t.root.count, children: []*node[K, V]{t.root}}
		split(t.root, 0)
	}
	return putBelow(own(&t.root, t.owner), find, key, value)
}

// putBelow puts an item into a node that is owned and has room, or below it.
func putBelow[K, V any](n *node[K, V], find finder[K], key K, value V) (oldKey K, oldValue V, replaced bool) {
	i, found := find(n.keys)
	if !found && n.children != nil && len(n.children[i].keys) == most {
		split(n, i)
		var more int
		more, found = find(n.keys[i : i+1])
		i += more
	}
	switch {
	case found:
		oldKey, oldValue, replaced = n.keys[i], n.values[i], true
		n.keys[i], n.values[i] = key, value
		return oldKey, oldValue, replaced
	case n.children == nil:
		n.keys, n.values = insert(n.keys, i, key), insert(n.values, i, value)
	default:
		oldKey, oldValue, replaced = putBelow(own(&n.children[i], n.owner), find, key, value)
	}
	if !replaced {
		n.count++
	}
	return oldKey, oldValue, replaced
}

// split makes two of a full child, and takes the item between them up.
func split[K, V any](n *node[K, V], i int) {
	left := own(&n.children[i], n.owner)
	right := &node[K, V]{owner: n.owner, keys: upper(left.keys, least+1), values: upper(left.values, least+1)}
	right.count = len(right.keys)
	if left.children != nil {
		right.children = upper(left.children, least+1)
		left.children = cut(left.children, least+1)
		for _, c := range right.children {
			right.count += c.count
		}
	}
	n.keys, n.values = insert(n.keys, i, left.keys[least]), insert(n.values, i, left.values[least])
	n.children = insert(n.children, i+1, right)
	left.keys, left.values = cut(left.keys, least), cut(left.values, least)
	left.count -= right.count + 1
}

// remove takes an item out, and returns it. anyway takes out what is where find says although it does not find it.
func remove[K, V any](t *tree[K, V], find finder[K], anyway bool) (key K, value V, removed bool) {
	if t.root == nil {
		return key, value, false
	}
	root := own(&t.root, t.owner)
	key, value, removed = removeBelow(root, find, anyway)
	if len(root.keys) == 0 && root.children != nil {
		t.root = root.children[0]
	} else if len(root.keys) == 0 {
		t.root = nil
	}
	return key, value, removed
}

// removeBelow takes an item out of a node that is owned, or of one below it. In a node with children, the item
// that follows takes its place. It may leave the node with too few items.
func removeBelow[K, V any](n *node[K, V], find finder[K], anyway bool) (key K, value V, removed bool) {
	i, found := find(n.keys)
	switch {
	case n.children == nil && !found && !anyway:
		return key, value, false
	case n.children == nil:
		key, value = n.keys[i], n.values[i]
		n.keys, n.values = without(n.keys, i), without(n.values, i)
	case found:
		key, value = n.keys[i], n.values[i]
		n.keys[i], n.values[i], _ = removeBelow(own(&n.children[i+1], n.owner), first, true)
		refill(n, i+1)
	default:
		if key, value, removed = removeBelow(own(&n.children[i], n.owner), find, anyway); !removed {
			return key, value, false
		}
		refill(n, i)
	}
	n.count--
	return key, value, true
}

// refill gives a child that has too few items one of a sibling, or makes one of both.
func refill[K, V any](n *node[K, V], i int) {
	switch {
	case len(n.children[i].keys) >= least:
	case i > 0 && len(n.children[i-1].keys) > least:
		moveRight(n, i-1)
	case i < len(n.keys) && len(n.children[i+1].keys) > least:
		moveLeft(n, i)
	default:
		merge(n, max(i-1, 0))
	}
}

// moveRight takes the last item of a child up, and that between it and the next child down to that one.
func moveRight[K, V any](n *node[K, V], i int) {
	left, right := own(&n.children[i], n.owner), n.children[i+1]
	end, moved := len(left.keys)-1, 1
	if left.children != nil {
		c := left.children[end+1]
		right.children, left.children = insert(right.children, 0, c), cut(left.children, end+1)
		moved += c.count
	}
	right.keys, right.values = insert(right.keys, 0, n.keys[i]), insert(right.values, 0, n.values[i])
	n.keys[i], n.values[i] = left.keys[end], left.values[end]
	left.keys, left.values = cut(left.keys, end), cut(left.values, end)
	left.count -= moved
	right.count += moved
}

// moveLeft takes the first item of the child behind one up, and that between them down to the one.
func moveLeft[K, V any](n *node[K, V], i int) {
	left, right := n.children[i], own(&n.children[i+1], n.owner)
	moved := 1
	if left.children != nil {
		c := right.children[0]
		left.children, right.children = append(left.children, c), without(right.children, 0)
		moved += c.count
	}
	left.keys, left.values = append(left.keys, n.keys[i]), append(left.values, n.values[i])
	n.keys[i], n.values[i] = right.keys[0], right.values[0]
	right.keys, right.values = without(right.keys, 0), without(right.values, 0)
	left.count += moved
	right.count -= moved
}

// merge appends the item behind a child, and all of the next child, to the child.
func merge[K, V any](n *node[K, V], i int) {
	left, right := own(&n.children[i], n.owner), n.children[i+1]
	left.keys = append(append(left.keys, n.keys[i]), right.keys...)
	left.values = append(append(left.values, n.values[i]), right.values...)
	left.children = append(left.children, right.children...)
	left.count += right.count + 1
	n.keys, n.values = without(n.keys, i), without(n.values, i)
	n.children = without(n.children, i+1)
}

// clone returns a copy with as much room.
func clone[E any](s []E) []E {
	if s == nil {
		return nil
	}
	return append(make([]E, 0, cap(s)), s...)
}

func insert[E any](s []E, i int, e E) []E {
	s = append(s, e)
	copy(s[i+1:], s[i:])
	s[i] = e
	return s
}

func without[E any](s []E, i int) []E {
	copy(s[i:], s[i+1:])
	return cut(s, len(s)-1)
}

// cut leaves the first n, and nothing behind them that would be kept in memory.
func cut[E any](s []E, n int) []E {
	clear(s[n:])
	return s[:n]
}

// upper returns a copy of what begins at i, with room for a full node.
func upper[E any](s []E, i int) []E { return append(make([]E, 0, most+1), s[i:]...) }
