package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// short writes a duration in at most two units, as people say it. What rounding
// lifts into the next unit is written in that one: an hour is never 60m.
func short(d time.Duration) string {
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

// endless is what is left of a lease that ends only by release or break.
const endless = "endless"

// left is how long a lease still lasts, by the server's count.
func left(l v1.Lease) string {
	if l.RemainingMS == nil {
		return endless
	}
	return short(time.Duration(*l.RemainingMS) * time.Millisecond)
}

// when shows a moment: how long ago it was, or (wide) its date and time.
func (a *app) when(t *v1.Time) string {
	switch {
	case t == nil || t.IsZero():
		return ""
	case a.output == formatWide:
		return absolute(t.Time)
	}
	return a.ago(t.Time)
}

// ago shows how long something is past. A server's clock may be ahead of ours;
// what it calls now is not in the future.
func (a *app) ago(t time.Time) string {
	d := a.now().Sub(t).Round(time.Second)
	if d <= 0 {
		return "just now"
	}
	return short(d) + " ago"
}

func absolute(t time.Time) string { return t.Local().Format(time.RFC3339) }

// labelList writes labels in an order that stays.
func labelList(labels map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return strings.Join(list, " ")
}

// because adds why somebody holds something, if it was said.
func because(who, reason string) string {
	if reason == "" {
		return who
	}
	return who + " (" + reason + ")"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// quote writes a word so that a shell reads it as one.
func quote(word string) string {
	harmless := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/_.:@%+=,-", r))
	}
	if word != "" && strings.TrimFunc(word, harmless) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// size writes a number of bytes as people say it.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return plural(int(n), "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// whenAt shows a moment that may be unknown.
func (a *app) whenAt(t *time.Time) string {
	if t == nil {
		return ""
	}
	return a.when(&v1.Time{Time: *t})
}

func versionLine(v v1.Version) string {
	return fmt.Sprintf("%s (commit %s, %s)", v.Version, v.Commit, v.Go)
}
