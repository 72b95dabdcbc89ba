package usage

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A Forecast is when a resource usually is free: for the first who wants it, and how
// much later for each who comes after that. The zero forecast knows nothing.
type Forecast struct {
	Known bool
	Late  bool // it is held for longer than is usual, and nobody can tell
	First time.Duration
	Each  time.Duration
	Error time.Duration // how far it may be off; 0: not known
}

// Forecast returns how much later each usually has its turn on a resource that so many share. When
// the first does is for the caller to say.
func (u *Usual) Forecast(sharers int) Forecast {
	if u == nil {
		return Forecast{}
	}
	holds := u.holds()
	if holds.n < minShown {
		return Forecast{}
	}
	return Forecast{Known: true, Each: holds.at(50) / time.Duration(max(1, sharers))}
}

// Hold returns how long a resource is usually held; 0 if that is not known.
func (u *Usual) Hold() time.Duration {
	if u == nil {
		return 0
	}
	holds := u.holds()
	if holds.n < minShown {
		return 0
	}
	return holds.at(50)
}

// Left returns how much longer a lease is usually held that has been for so long, and whether
// that is already longer than usual.
func (u *Usual) Left(held time.Duration) (left time.Duration, late bool) {
	holds := u.holds()
	p50, p95 := holds.at(50), holds.at(95)
	if held >= p50 {
		return p95 - held, held >= p95
	}
	return p50 - held, held >= p95
}

// After returns how long it usually takes until somebody with ahead others before it has its
// turn; 0 if that is not known. It is as exact as the scale.
func (f Forecast) After(ahead int) time.Duration {
	if !f.Known {
		return 0
	}
	d := leasehold.MaxHold
	if f.Each == 0 || time.Duration(ahead) < leasehold.MaxHold/f.Each {
		d = min(d, f.First+time.Duration(ahead)*f.Each)
	}
	if d <= 0 {
		return 0
	}
	return scale[nearest(d)]
}

// Text returns it as the end of a sentence about a resource that is held.
func (f Forecast) Text(ahead int) string {
	d := f.After(ahead)
	switch {
	case f.Late:
		return "; it has been held for longer than usual"
	case d == 0:
		return ""
	case ahead == 0:
		return fmt.Sprintf("; usually free in about %s", timeline.Text(d)) + f.errorText()
	}
	return fmt.Sprintf("; a turn usually comes in about %s", timeline.Text(d)) + f.errorText()
}

func (f Forecast) errorText() string {
	if f.ErrorShown() == 0 {
		return ""
	}
	return fmt.Sprintf(" (±%s)", timeline.Text(f.ErrorShown()))
}

// ErrorShown returns how far the forecast may be off, as exactly as the scale; 0 if that is not known, or next to
// nothing.
func (f Forecast) ErrorShown() time.Duration {
	if !f.Known || f.Error <= scale[0] {
		return 0
	}
	return scale[nearest(f.Error)]
}
