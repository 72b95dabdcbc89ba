package btree

import "cmp"

// A Map has values by ordered keys. Its zero value is empty and ready for use.
type Map[K cmp.Ordered, V any] struct{ tree tree[K, V] }

// Copy returns a map with the same items. What is done to one of both is not seen in the other.
func (m *Map[K, V]) Copy() *Map[K, V] { return &Map[K, V]{share(&m.tree)} }

// Len returns how many items there are.
func (m *Map[K, V]) Len() int { return length(m.tree.root) }

// Get returns the value of a key, and whether there is one.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	for n := m.tree.root; n != nil; {
		i, found := search(n.keys, key)
		if found {
			return n.values[i], true
		}
		if n.children == nil {
			break
		}
		n = n.children[i]
	}
	return value, false
}

// Set gives a key a value, and returns the one that it had.
func (m *Map[K, V]) Set(key K, value V) (before V, replaced bool) {
	_, before, replaced = put(&m.tree, func(keys []K) (int, bool) { return search(keys, key) }, key, value)
	return before, replaced
}

// Delete takes a key out, and returns the value that it had.
func (m *Map[K, V]) Delete(key K) (before V, deleted bool) {
	_, before, deleted = remove(&m.tree, func(keys []K) (int, bool) { return search(keys, key) }, false)
	return before, deleted
}

// Scan shows all items, from the least key on, until see returns false.
func (m *Map[K, V]) Scan(see func(key K, value V) bool) { ascend(m.tree.root, first, see) }

// Ascend shows the items whose keys are not less than from, from the least on, until see returns false.
func (m *Map[K, V]) Ascend(from K, see func(key K, value V) bool) {
	ascend(m.tree.root, func(keys []K) (int, bool) { return search(keys, from) }, see)
}

// Descend shows the items whose keys are not greater than from, from the greatest on, until see returns false.
func (m *Map[K, V]) Descend(from K, see func(key K, value V) bool) {
	descend(m.tree.root, func(keys []K) (int, bool) { return search(keys, from) }, see)
}

// GetAt returns the item that has as many before it as index says, and whether there is one.
func (m *Map[K, V]) GetAt(index int) (key K, value V, ok bool) {
	n, i := place(m.tree.root, index)
	if n == nil {
		return key, value, false
	}
	return n.keys[i], n.values[i], true
}

// Min returns the item with the least key, and whether there is one.
func (m *Map[K, V]) Min() (key K, value V, ok bool) { return m.GetAt(0) }

// Max returns the item with the greatest key, and whether there is one.
func (m *Map[K, V]) Max() (key K, value V, ok bool) { return m.GetAt(m.Len() - 1) }

// PopMin takes out the item with the least key, and returns it.
func (m *Map[K, V]) PopMin() (key K, value V, ok bool) {
	return remove(&m.tree, first, true)
}

// Keys returns all keys in order.
func (m *Map[K, V]) Keys() []K {
	keys := make([]K, 0, m.Len())
	m.Scan(func(key K, _ V) bool { keys = append(keys, key); return true })
	return keys
}

// Values returns all values in the order of their keys.
func (m *Map[K, V]) Values() []V {
	values := make([]V, 0, m.Len())
	m.Scan(func(_ K, value V) bool { values = append(values, value); return true })
	return values
}

// Iter returns an iterator that stands before the first item. It is good until the map is changed.
func (m *Map[K, V]) Iter() (it Iter[K, V]) { return Iter[K, V]{root: m.tree.root} }

// An Iter goes from one item of a map to the next.
type Iter[K cmp.Ordered, V any] struct {
	root, at *node[K, V]
	i        int // in the node
	seen     int // items before the next one
}

// Next goes to the next item, and reports whether there is one.
func (it *Iter[K, V]) Next() bool {
	if it.at != nil && it.at.children == nil && it.i+1 < len(it.at.keys) {
		it.i++
	} else {
		it.at, it.i = place(it.root, it.seen)
	}
	it.seen++
	return it.at != nil
}

// Key returns the key of the item at which the iterator is.
func (it *Iter[K, V]) Key() K { return it.at.keys[it.i] }

// Value returns its value.
func (it *Iter[K, V]) Value() V { return it.at.values[it.i] }

// A Set is a map without values. Its zero value is empty and ready for use.
type Set[K cmp.Ordered] struct{ keys Map[K, struct{}] }

// Copy returns a set with the same keys. What is done to one of both is not seen in the other.
func (s *Set[K]) Copy() *Set[K] { return &Set[K]{*s.keys.Copy()} }

// Len returns how many keys there are.
func (s *Set[K]) Len() int { return s.keys.Len() }

// Contains reports whether a key is in the set.
func (s *Set[K]) Contains(key K) bool { _, ok := s.keys.Get(key); return ok }

// Insert adds a key.
func (s *Set[K]) Insert(key K) { s.keys.Set(key, struct{}{}) }

// Delete takes a key out.
func (s *Set[K]) Delete(key K) { s.keys.Delete(key) }

// Scan shows all keys in order, until see returns false.
func (s *Set[K]) Scan(see func(key K) bool) {
	s.keys.Scan(func(key K, _ struct{}) bool { return see(key) })
}

// Ascend shows the keys that are not less than from in order, until see returns false.
func (s *Set[K]) Ascend(from K, see func(key K) bool) {
	s.keys.Ascend(from, func(key K, _ struct{}) bool { return see(key) })
}

// search returns where a key is among sorted ones, or where it would be.
func search[K cmp.Ordered](keys []K, key K) (at int, found bool) {
	end := len(keys)
	for at < end {
		if middle := int(uint(at+end) / 2); keys[middle] < key {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at, at < len(keys) && keys[at] == key
}
