package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever was counted, and in however many histograms, a quantile is within a
// 64th of the value that has its place among all in their order.
func TestQuantilesAreNearTheTruth(t *testing.T) {
	const most = time.Hour
	shapes := map[string]func(*rand.Rand) time.Duration{
		"even":   func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(time.Second))) },
		"narrow": func(r *rand.Rand) time.Duration { return time.Millisecond + time.Duration(r.Int64N(1000)) },
		"any power": func(r *rand.Rand) time.Duration {
			return time.Duration(math.Exp2(r.Float64() * math.Log2(float64(most))))
		},
		"long tail": func(r *rand.Rand) time.Duration {
			return min(most, time.Duration(float64(300*time.Microsecond)/math.Pow(1-r.Float64(), 1.5)))
		},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				r := rand.New(rand.NewPCG(seed, 1))
				parts := make([]Histogram, 1+r.IntN(5))
				var all []time.Duration
				for range 1 + r.IntN(3000) {
					d := shape(r)
					all = append(all, d)
					parts[r.IntN(len(parts))].Add(d)
				}
				compare(t, seed, merged(parts), all)
			}
		})
	}
}

func merged(parts []Histogram) *Histogram {
	var h Histogram
	for i := range parts {
		h.Merge(&parts[i])
	}
	return &h
}

func compare(t *testing.T, seed uint64, h *Histogram, all []time.Duration) {
	t.Helper()
	slices.Sort(all)
	if h.Count() != uint64(len(all)) || h.Max() != all[len(all)-1] {
		t.Fatalf("seed %d: %d values up to %v, want %d up to %v", seed, h.Count(), h.Max(), len(all), all[len(all)-1])
	}
	for _, part := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		place := min(max(int(math.Ceil(part*float64(len(all)))), 1), len(all))
		want, got := all[place-1], h.Quantile(part)
		if off := (got - want).Abs(); off > max(want/64, unit) {
			t.Errorf("seed %d: quantile %v of %d is %v, want %v", seed, part, len(all), got, want)
		}
	}
}

// Buckets lie side by side: none is left out, and a longer duration is never in an
// earlier one.
func TestBucketsAreInOrder(t *testing.T) {
	last := -1
	for v := time.Duration(0); v < 2*time.Hour; v += max(unit, v/200) {
		b := bucketOf(v)
		if b < last || b > last+1 && v > 0 {
			t.Fatalf("%v is in bucket %d, and what is a little shorter in %d", v, b, last)
		}
		last = b
	}
	if last != buckets-1 {
		t.Errorf("two hours are in bucket %d, want the last, %d", last, buckets-1)
	}
	for i := range buckets {
		if got := bucketOf(middleOf(i)); got != i {
			t.Fatalf("the middle of bucket %d is in %d", i, got)
		}
	}
}

func TestHistogramOfNothingAndOfMuch(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 || h.Count() != 0 {
		t.Error("an empty histogram has something")
	}
	h.Add(-time.Second) // a clock that went back
	if h.Quantile(1) != 0 {
		t.Errorf("less than nothing is counted as %v", h.Quantile(1))
	}
	h.Add(math.MaxInt64)
	if h.Max() != math.MaxInt64 || h.Quantile(1) < time.Hour {
		t.Errorf("the longest is %v, by its bucket %v", h.Max(), h.Quantile(1))
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	var h Histogram
	for i := 0; b.Loop(); i++ {
		h.Add(time.Duration(i) * time.Microsecond)
	}
}
