package load

import (
	"math"
	"math/bits"
	"time"
)

// A Histogram counts durations in buckets whose width grows with the durations in them: each power
// of two has 32. From 2 µs on, a quantile is therefore off by at most one part in 64, in a space
// that does not depend on how many durations were counted: a day of load needs no more memory than
// a second. The zero value is empty.
type Histogram struct {
	counts [buckets]uint64
	n      uint64
	max    time.Duration
}

const (
	subBits = 5 // 32 buckets in a power of two
	subs    = 1 << subBits
	unit    = 64 // nanoseconds; nothing that crosses a network is told apart more finely
	powers  = 36 // 64 ns · 2^36 is more than an hour
	buckets = (powers - subBits + 1) * subs
)

// Add counts one duration. What took longer than an hour falls in the last bucket.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)]++
	h.n++
	h.max = max(h.max, d)
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(other *Histogram) {
	if other.n == 0 {
		return
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// Count returns how many durations were added; Max the longest of them, exactly.
func (h *Histogram) Count() uint64      { return h.n }
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns the duration that a part of all, such as 0.99, did not exceed; 0 if there are
// none.
func (h *Histogram) Quantile(part float64) time.Duration {
	rank := rankOf(part, h.n)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(middleOf(i), h.max)
		}
	}
	return h.max
}

// rankOf returns the place, from 1 on, of a quantile among n sorted values.
func rankOf(part float64, n uint64) uint64 {
	return min(max(uint64(math.Ceil(part*float64(n))), 1), n)
}

// bucketOf keeps the six highest bits of a duration. The first 64 buckets are one
// unit wide, and those of every further power of two twice as wide as before.
func bucketOf(d time.Duration) int {
	v := uint64(d) / unit
	shift := max(bits.Len64(v)-subBits-1, 0)
	return min(shift*subs+int(v>>shift), buckets-1)
}

// middleOf returns the middle of a bucket: no value in it is farther away than half its width.
func middleOf(i int) time.Duration {
	shift := max(i/subs-1, 0)
	low := uint64(i-shift*subs) << shift
	return time.Duration(low*unit + unit<<shift/2)
}
