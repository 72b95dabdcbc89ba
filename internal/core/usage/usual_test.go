package usage

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

// TestScaleTellsTimesApart: each step is above the one before it by an eighth at most,
// and what is learned is within a sixteenth of what happened.
func TestScaleTellsTimesApart(t *testing.T) {
	for i := 1; i < len(scale); i++ {
		if scale[i] <= scale[i-1] || (scale[i]-scale[i-1])*8 > scale[i-1] {
			t.Errorf("step %d is %v, after %v", i, scale[i], scale[i-1])
		}
	}
	if scale[0] != time.Millisecond || scale[255] < 3*leasehold.MaxHold {
		t.Errorf("the scale goes from %v to %v", scale[0], scale[255])
	}
	for d := time.Millisecond; d < leasehold.MaxHold; d += d/97 + 1 {
		near, above := scale[nearest(d)], scale[atLeast(d)]
		if (near-d).Abs()*16 > d+16 {
			t.Fatalf("%v is learned as %v", d, near)
		}
		if above < d || (above-d)*8 > d+8 {
			t.Fatalf("%v is at least %v", d, above)
		}
	}
	if nearest(0) != 0 || nearest(-1) != 0 || nearest(math.MaxInt64) != 255 {
		t.Errorf("what is off the scale is at %d, %d, %d", nearest(0), nearest(-1), nearest(math.MaxInt64))
	}
}

func TestRoot(t *testing.T) {
	for _, n := range []int64{-1, 0, 1, 2, 3, 4, 8, 9, 10, 99, 100, 1 << 40, 1<<62 - 1, math.MaxInt64} {
		r := root(n)
		if n < 0 && r == 0 {
			continue
		}
		if r*r > n || (r+1) <= n/(r+1) {
			t.Errorf("the root of %d is %d", n, r)
		}
	}
}

// TestAdviceOfExtremes: whatever was learned, the advice is a TTL that is allowed.
func TestAdviceOfExtremes(t *testing.T) {
	holds := func(sample ...byte) *Usual { return &Usual{Holds: strings.Repeat(string(sample), maxLearned)} }
	month := nearest(leasehold.MaxTTL)
	for name, u := range map[string]*Usual{
		"nothing":                nil,
		"no time at all":         holds(0, byte(leasehold.Released), 0, 0),
		"for ever":               holds(255, byte(leasehold.Released), month, Whole),
		"for ever, and lost":     holds(255, byte(leasehold.ByTTL), month, Whole),
		"at once lost":           holds(0, byte(leasehold.SessionExpired), nearest(leasehold.MinTTL), Whole),
		"renewed all the time":   holds(100, byte(leasehold.Released), 100, 1),
		"renewed at the last":    holds(100, byte(leasehold.Released), 100, Whole),
		"shorter than a message": holds(1, byte(leasehold.Released), nearest(leasehold.MinTTL), 1),
	} {
		for _, largest := range []time.Duration{0, leasehold.MinTTL, time.Minute, leasehold.MaxTTL} {
			a := Advise(u, leasehold.Definition{Path: "x", LargestTTL: largest}, leasehold.DefaultTTL)
			if a.TTL < leasehold.MinTTL || a.TTL > leasehold.MaxTTL || largest != 0 && a.TTL > largest || a.TTL > patience {
				t.Errorf("%s, at most %v: %v", name, largest, a.TTL)
			}
			if a.Learned && (a.Least < leasehold.ShortTTL || a.Cheapest <= 0 || a.Interval <= 0 || a.TakeOver >= a.TTL || a.Renewals < 2) {
				t.Errorf("%s, at most %v: %+v", name, largest, a)
			}
		}
	}
}

// TestForecastOfExtremes: the longest queue behind the longest hold is still a time.
func TestForecastOfExtremes(t *testing.T) {
	f := Forecast{Known: true, First: leasehold.MaxHold, Each: scale[255]}
	if d := f.After(leasehold.MaxQueue); d < leasehold.MaxHold*9/10 || d > leasehold.MaxHold*11/10 {
		t.Errorf("a turn comes in %v", d)
	}
}
