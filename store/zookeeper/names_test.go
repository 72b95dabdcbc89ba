package zookeeper

import (
	"slices"
	"testing"
	"time"
)

func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"reports/nightly", "..", "a#0000000001", "%2f", "\x00\x7f", "日本", "\U0001F600", "-",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text := escaped(name)
		if back, err := unescaped(text); err != nil || back != name {
			t.Errorf("%q came back as %q, %v", name, back, err)
		}
		bad := func(c byte) bool { return c == '/' || c == '#' || c <= ' ' || c > '~' }
		if slices.ContainsFunc([]byte(text), bad) ||
			text == "." || text == ".." {
			t.Errorf("%q is no part of a path", text)
		}
		places := placesOf([]string{text + "#0000000007", name})
		if !slices.ContainsFunc(places, func(p place) bool { return p.id == name && p.sequence == 7 }) {
			t.Errorf("%q has the places %v", name, places)
		}
		_, _ = unescaped(name)
	})
}

// After the largest sequence comes the smallest.
func TestSequencesWrap(t *testing.T) {
	places := placesOf([]string{"c#-2147483648", "a#2147483646", "d#-2147483647", "b#2147483647", "foreign", "x#y"})
	var order string
	for _, p := range places {
		order += p.id
	}
	if order != "abcd" {
		t.Errorf("the order is %s", order)
	}
}

// The rule of evidence, step by step, with T = 8 s.
func TestEvidence(t *testing.T) {
	at := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	e := newEvidence(at(8), at(10))
	for _, step := range []struct{ sent, answered, until float64 }{
		{10.1, 10.2, 18}, // only the creation is proven
		{12.1, 12.2, 18}, // 1.9 s after the answer before: too little
		{12.2, 12.3, 18.1},
		{12.25, 15, 18.1},  // answered late
		{14.2, 14.3, 20.1}, // confirms the one of 12.1; that of 12.2 is too close to be kept
		{25, 25.1, 22.2},   // after a pause: what was before it, and nothing new
		{25.5, 25.6, 22.2},
		{27.2, 27.3, 33},
	} {
		if next := e.next(at(step.sent)); next != at(step.until) {
			t.Errorf("before a write at %v: %v, want %v", step.sent, next, step.until)
		}
		e.answered(at(step.sent), at(step.answered))
		if got := e.until(); got != at(step.until) {
			t.Errorf("after a write at %v: %v, want %v", step.sent, got, step.until)
		}
	}
	for i := range 1000 {
		e.answered(at(28+float64(i)/1000), at(28+float64(i)/1000))
	}
	if n := len(e.writes); n > 40 {
		t.Errorf("%d writes are remembered", n)
	}
}
