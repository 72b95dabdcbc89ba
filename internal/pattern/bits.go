package pattern

import "math/bits"

// Bits are a set of small numbers.
type Bits []uint64

// Set adds a number.
func (b *Bits) Set(n int) {
	for len(*b) <= n/64 {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

// Clear takes a number away.
func (b Bits) Clear(n int) {
	if n/64 < len(b) {
		b[n/64] &^= 1 << (n % 64)
	}
}

// Has reports whether a number is in the set.
func (b Bits) Has(n int) bool { return n/64 < len(b) && b[n/64]&(1<<(n%64)) != 0 }

// Meets reports whether two sets have a number in common.
func (b Bits) Meets(other Bits) bool {
	for i := range min(len(b), len(other)) {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// each calls yield with all numbers.
func (b Bits) each(yield func(int)) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			yield(i*64 + bits.TrailingZeros64(word))
		}
	}
}

func (b Bits) count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}
