package btree

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A pair of trees, a Map and a Tree, and what should be in them.
type both struct {
	byKey Map[int, int]
	inAll *Tree[[2]int] // key and value, by key, from the largest on
	model map[int]int
}

func newBoth() *both {
	return &both{inAll: New(func(a, b [2]int) bool { return a[0] > b[0] }), model: map[int]int{}}
}

func (b *both) copy() *both {
	return &both{*b.byKey.Copy(), b.inAll.Copy(), maps.Clone(b.model)}
}

// step does something to all of them, and returns how they differ.
func (b *both) step(r *rand.Rand, keys, puts int) string {
	key, value := r.IntN(keys), r.Int()
	was, is := b.model[key]
	switch {
	case r.IntN(100) < puts:
		b.model[key] = value
		before, replaced := b.byKey.Set(key, value)
		other, too := b.inAll.Set([2]int{key, value})
		if before != was || replaced != is || other[1] != was || too != is {
			return fmt.Sprintf("set %d: %v %v, %v %v, and was %v %v", key, before, replaced, other, too, was, is)
		}
	case r.IntN(10) == 0 && len(b.model) > 0:
		least := slices.Min(slices.Collect(maps.Keys(b.model)))
		at, v, ok := b.byKey.PopMin()
		_, too := b.inAll.Delete([2]int{least})
		if at != least || v != b.model[least] || !ok || !too {
			return fmt.Sprintf("the first is %d, %v %v, and not %d", at, ok, too, least)
		}
		delete(b.model, least)
	default:
		delete(b.model, key)
		before, deleted := b.byKey.Delete(key)
		other, too := b.inAll.Delete([2]int{key})
		if before != was || deleted != is || other[1] != was || too != is {
			return fmt.Sprintf("delete %d: %v %v, %v %v, and was %v %v", key, before, deleted, other, too, was, is)
		}
	}
	if got, ok := b.byKey.Get(key); got != b.model[key] || ok != has(b.model, key) {
		return fmt.Sprintf("get %d: %v %v", key, got, ok)
	}
	if got, ok := b.inAll.Get([2]int{key}); got[1] != b.model[key] || ok != has(b.model, key) {
		return fmt.Sprintf("get %d: %v %v", key, got, ok)
	}
	return ""
}

func has(m map[int]int, key int) bool { _, ok := m[key]; return ok }

// TestTreesAreSorted does many things to trees that grow and shrink. Copies that were made on the way stay as they were.
func TestTreesAreSorted(t *testing.T) {
	const keys = 8000
	r := rand.New(rand.NewPCG(1, 1))
	b := newBoth()
	var copies []*both
	for _, phase := range []struct{ steps, puts int }{{15000, 95}, {5000, 50}, {30000, 10}, {2000, 60}, {2000, 5}} {
		for i := range phase.steps {
			if wrong := b.step(r, keys, phase.puts); wrong != "" {
				t.Fatal(wrong)
			}
			if i%5000 == 0 {
				b.mustBeWhole(t)
				copies = append(copies, b)
				b = b.copy()
			}
		}
		b.mustBeWhole(t)
	}
	for _, c := range copies {
		c.mustBeWhole(t)
		if wrong := c.step(r, keys, 50); wrong != "" { // the original may be changed, too
			t.Fatal(wrong)
		}
		c.mustBeWhole(t)
	}
}

// mustBeWhole compares everything that can be read of the trees with what should be in them.
func (b *both) mustBeWhole(t *testing.T) {
	t.Helper()
	want := slices.Sorted(maps.Keys(b.model))
	if got := b.byKey.Keys(); !slices.Equal(got, want) {
		t.Fatalf("%d keys instead of %d", len(got), len(want))
	}
	if b.byKey.Len() != len(want) || b.inAll.Len() != len(want) || len(b.byKey.Values()) != len(want) {
		t.Fatalf("%d and %d items instead of %d", b.byKey.Len(), b.inAll.Len(), len(want))
	}
	it := b.byKey.Iter()
	for i, key := range want {
		at, value, ok := b.byKey.GetAt(i)
		last, too := b.inAll.GetAt(len(want) - 1 - i)
		if at != key || value != b.model[key] || !ok || last != [2]int{key, value} || !too ||
			!it.Next() || it.Key() != key || it.Value() != value {
			t.Fatalf("at %d is %d, %v, %d", i, at, last, it.Key())
		}
	}
	if it.Next() {
		t.Fatal("it goes on behind the end")
	}
	check(t, b.byKey.tree.root, true)
	check(t, b.inAll.tree.root, true)
	for _, from := range []int{-1, 0, 777, 5000, 7999, 8000} {
		b.mustGoOnFrom(t, want, from)
	}
}

// mustGoOnFrom reads both ways from a key, up to a hundred items.
func (b *both) mustGoOnFrom(t *testing.T, want []int, from int) {
	t.Helper()
	i, found := slices.BinarySearch(want, from)
	after, before := want[i:min(len(want), i+100)], want[:i]
	if found {
		before = want[:i+1]
	}
	before = slices.Clone(before[max(0, len(before)-100):])
	slices.Reverse(before)
	var lists [4][]int
	to := func(n int) func(key, _ int) bool {
		return func(key, _ int) bool {
			lists[n] = append(lists[n], key)
			return len(lists[n]) < 100
		}
	}
	in := func(n int) func([2]int) bool { return func(item [2]int) bool { return to(n)(item[0], 0) } }
	b.byKey.Ascend(from, to(0))
	b.byKey.Descend(from, to(1))
	b.inAll.Descend([2]int{from}, in(2))
	b.inAll.Ascend([2]int{from}, in(3))
	if !slices.Equal(lists[0], after) || !slices.Equal(lists[2], after) ||
		!slices.Equal(lists[1], before) || !slices.Equal(lists[3], before) {
		t.Fatalf("from %d: %d, %d, %d and %d items", from, len(lists[0]), len(lists[1]), len(lists[2]), len(lists[3]))
	}
}

// check fails for a node with too few or too many items or a wrong count, for leaves that are not equally deep, and
// for what is kept in memory behind the items of a node. It returns how deep the node is.
func check[K comparable, V any](t *testing.T, n *node[K, V], root bool) (depth int) {
	t.Helper()
	if n == nil {
		return 0
	}
	if len(n.keys) > most || !root && len(n.keys) < least || len(n.keys) == 0 || len(n.values) != len(n.keys) {
		t.Fatalf("a node has %d keys and %d values", len(n.keys), len(n.values))
	}
	var none K
	for _, key := range n.keys[len(n.keys):cap(n.keys)] {
		if key != none {
			t.Fatalf("%v is kept behind the keys", key)
		}
	}
	sum := len(n.keys)
	for i, c := range n.children {
		below := check(t, c, false)
		if i > 0 && below != depth {
			t.Fatalf("children are %d and %d deep", depth, below)
		}
		depth, sum = below, sum+c.count
	}
	if n.children != nil && len(n.children) != len(n.keys)+1 || sum != n.count {
		t.Fatalf("%d keys, %d children, and %d items counted as %d", len(n.keys), len(n.children), sum, n.count)
	}
	return depth + 1
}

// TestChangesCopyTheirPath changes a copy, of which only the path to the change may be new.
func TestChangesCopyTheirPath(t *testing.T) {
	var m Map[int, int]
	for i := range 10000 {
		m.Set(2*i, i)
	}
	other := m.Copy()
	if other.tree.root != m.tree.root {
		t.Error("a copy has nodes of its own before it is changed")
	}
	if _, deleted := other.Delete(777); deleted || other.Len() != m.Len() {
		t.Error("a key is deleted that is not there")
	}
	other.Set(0, 1)
	if other.tree.root == m.tree.root || other.tree.root.children[1] != m.tree.root.children[1] {
		t.Error("more or less than a path is copied")
	}
}

func TestWhatIsThereIsReadAndSetWithoutAllocation(t *testing.T) {
	var m Map[string, int]
	tree := New(func(a, b string) bool { return a < b })
	for i := range 10000 {
		m.Set(fmt.Sprint(i), i)
		tree.Set(fmt.Sprint(i))
	}
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		m.Set("4711", 1)
		tree.Set("4711")
		tree.Get("4711")
		m.Scan(func(_ string, value int) bool { sum += value; return sum < 1000 })
		m.Ascend("5", func(_ string, value int) bool { sum += value; return false })
		m.Descend("5", func(_ string, value int) bool { sum += value; return false })
		tree.Ascend("5", func(key string) bool { sum += len(key); return false })
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSet(t *testing.T) {
	var s Set[string]
	for _, key := range []string{"b", "c", "a", "b"} {
		s.Insert(key)
	}
	other := s.Copy()
	s.Delete("b")
	var keys, rest []string
	s.Scan(func(key string) bool { keys = append(keys, key); return true })
	other.Ascend("b", func(key string) bool { rest = append(rest, key); return true })
	if !slices.Equal(keys, []string{"a", "c"}) || !slices.Equal(rest, []string{"b", "c"}) || s.Len() != 2 ||
		s.Contains("b") || !other.Contains("b") {
		t.Errorf("%v, %v", keys, rest)
	}
}

func TestNothingIsInAnEmptyTree(t *testing.T) {
	var m Map[string, int]
	tree := New(func(a, b int) bool { return a < b })
	_, got := m.Get("a")
	_, _, first := m.Min()
	_, _, last := m.Max()
	_, _, popped := m.PopMin()
	_, deleted := m.Delete("a")
	_, least := tree.Min()
	it := m.Iter()
	if got || first || last || popped || deleted || least || it.Next() || len(m.Keys()) > 0 {
		t.Error("there is something in it")
	}
	m.Descend("a", func(string, int) bool { t.Error("it shows something"); return false })
	tree.Ascend(1, func(int) bool { t.Error("it shows something"); return false })
}

func BenchmarkMap(b *testing.B) {
	for _, items := range []int{1000, 1000000} {
		r := rand.New(rand.NewPCG(1, 1))
		numbers, texts := make([]uint64, items), make([]string, items)
		for i := range items {
			numbers[i] = r.Uint64()
			texts[i] = fmt.Sprintf("%016x", numbers[i])
		}
		b.Run(fmt.Sprintf("uint64/items=%d", items), func(b *testing.B) { benchmark(b, numbers) })
		b.Run(fmt.Sprintf("string/items=%d", items), func(b *testing.B) { benchmark(b, texts) })
	}
}

func benchmark[K cmp.Ordered](b *testing.B, keys []K) {
	var m Map[K, int]
	for i, key := range keys {
		m.Set(key, i)
	}
	for name, do := range map[string]func(key K){
		"Get":       func(key K) { m.Get(key) },
		"Set":       func(key K) { m.Set(key, 1) },
		"DeleteSet": func(key K) { m.Delete(key); m.Set(key, 1) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				do(keys[i%len(keys)])
			}
		})
	}
}
