package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// About returns a forecast with how far it may be off, if that is known: 12m (±5m).
func About(forecast, off time.Duration) string {
	if off == 0 {
		return Short(forecast)
	}
	return fmt.Sprintf("%s (±%s)", Short(forecast), Short(off))
}

// Short returns a duration in at most two units, as people say it. It rounds before it chooses the
// unit: an hour is never 60m.
func Short(d time.Duration) string {
	const day = 24 * time.Hour
	if d <= 0 {
		return "0s"
	}
	if d = round(d, 10*time.Second, 100*time.Millisecond); d < 10*time.Second {
		return d.String()
	}
	if d = round(d, time.Hour, time.Second); d < time.Hour {
		return units(d, time.Minute, "m", time.Second, "s")
	}
	if d = round(d, day, time.Minute); d < day {
		return units(d, time.Hour, "h", time.Minute, "m")
	}
	return units(d.Round(time.Hour), day, "d", time.Hour, "h")
}

// round rounds what is below a limit.
func round(d, below, to time.Duration) time.Duration {
	if d < below {
		return d.Round(to)
	}
	return d
}

func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	whole, rest := d/large, d%large/small
	switch {
	case whole == 0:
		return fmt.Sprintf("%d%s", rest, smallName)
	case rest == 0:
		return fmt.Sprintf("%d%s", whole, largeName)
	}
	return fmt.Sprintf("%d%s%d%s", whole, largeName, rest, smallName)
}

// Endless is shown as the remaining time of a lease that ends only by release or break.
const Endless = "endless"

// Left returns how long a lease still lasts, by the server's count.
func Left(l v1.Lease) string {
	if l.RemainingMS == nil {
		return Endless
	}
	return Short(time.Duration(*l.RemainingMS) * time.Millisecond)
}

// Outlook returns what can be said about the end of a lease. usual is what was learned about its
// resource, if anything.
func Outlook(l v1.Lease, usual *v1.Usual) leasehold.Outlook {
	o := leasehold.Outlook{Final: l.State == leasehold.Breaking.String() || atHoldLimit(l)}
	if l.RemainingMS != nil {
		o.Left = Left(l)
	}
	if usual != nil && usual.HoldP50 > 0 {
		o.Usual = Short(time.Duration(usual.HoldP50))
	}
	return o
}

// atHoldLimit reports whether a lease ends because it may not be held for longer. Both moments are
// of the server's calendar, which may have been set right by a little in between.
func atHoldLimit(l v1.Lease) bool {
	return l.HoldLimit != 0 && l.Acquired != nil && l.Expires != nil &&
		!l.Acquired.Add(time.Duration(l.HoldLimit)-time.Second).After(l.Expires.Time)
}

// When returns a moment as how long ago it was, or with -o wide as date and time.
func (a *App) When(t *v1.Time) string {
	switch {
	case t == nil || t.IsZero():
		return ""
	case a.Output == FormatWide:
		return Absolute(t.Time)
	}
	return a.Ago(t.Time)
}

// Ago returns how long ago something was. The server's clock may be ahead of ours: what it calls
// now is not shown as the future.
func (a *App) Ago(t time.Time) string {
	d := a.Now().Sub(t).Round(time.Second)
	if d <= 0 {
		return "just now"
	}
	return Short(d) + " ago"
}

// Absolute writes a moment with its date.
func Absolute(t time.Time) string { return t.Local().Format(time.RFC3339) }

// LabelList returns labels sorted by key, so that the output does not change between two calls.
func LabelList(labels map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return strings.Join(list, " ")
}

// Because returns a holder with the reason, if there is one.
func Because(who, reason string) string {
	if reason == "" {
		return who
	}
	return who + " (" + reason + ")"
}

// Plural writes a number with the noun that fits it.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// Quote returns a word so that a shell reads it as one: commands that we print are copied.
func Quote(word string) string {
	harmless := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) ||
			strings.ContainsRune("/_.:@%+=,-", r))
	}
	if word != "" && strings.TrimFunc(word, harmless) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Size writes a number of bytes as people say it.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Bytes writes a number of bytes as people say it.
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return Plural(int(n), "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// WhenAt shows a moment that may be unknown.
func (a *App) WhenAt(t *time.Time) string {
	if t == nil {
		return ""
	}
	return a.When(&v1.Time{Time: *t})
}

// VersionLine writes a version with its commit and compiler.
func VersionLine(v v1.Version) string {
	return fmt.Sprintf("%s (commit %s, %s)", v.Version, v.Commit, v.Go)
}
