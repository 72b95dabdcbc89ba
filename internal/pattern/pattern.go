// Package pattern knows which names are paths of an area, such as repo/web:src/auth/**, and which of them overlap.
//
// An area is a name that begins with repo/, up to its first colon; what follows is a path in it, or a pattern of paths:
//
//	repo/web:                 everything
//	repo/web:src/auth         the file or directory src/auth, and all below it
//	repo/web:src/auth/**      the same
//	repo/web:src/*.go         the Go files in src, and in no directory below it
//	repo/web:src/**/*_test.go the tests in src, at any depth
//
// In a segment, * stands for any bytes but a slash, none included. A segment ** stands for any number of segments, none
// included. Nothing else is special: files have names such as [id].tsx.
//
// Two patterns overlap if there is a path that both mean, whether or not there is such a file. That is decided exactly,
// segment by segment, without trying: see Overlaps.
package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// How much there may be in a pattern, so that none is expensive to compare.
const (
	MaxSegments  = 32
	MaxWildcards = 8 // of either kind
)

// Areas is what the names of areas begin with.
const Areas = "repo/"

const (
	deep = "**"
	star = "*"
)

// A Pattern is a set of paths in an area. It is never changed.
type Pattern struct {
	Name string // as it was written
	Area string

	segments []segment
	deep     int    // where the first ** is; -1: there is none
	end      int    // what is behind the last one
	literal  string // the segments before the first wildcard
}

// A segment is one of a path, or a pattern of some.
type segment struct {
	text string
	wild bool // it has a *

	begin, end string // before the first * and behind the last one
	several    bool   // there is something between these
}

func newSegment(text string) segment {
	first, last := strings.Index(text, star), strings.LastIndex(text, star)
	if first < 0 {
		return segment{text: text}
	}
	return segment{text, true, text[:first], text[last+1:], last > first+1}
}

func (s segment) deep() bool { return s.wild && s.text == deep }

// In reports whether a name is one of an area: it is a pattern, or none that is allowed.
func In(name string) bool { return strings.HasPrefix(name, Areas) && strings.Contains(name, ":") }

// Parse returns the pattern that a name of an area is, and else what is wrong with it.
func Parse(name string) (*Pattern, error) {
	area, path, _ := strings.Cut(name, ":")
	if directory, slash := strings.CutSuffix(path, "/"); slash && directory != "" {
		path = directory
	}
	var texts []string
	if path != "" {
		texts = strings.Split(path, "/")
	}
	if len(texts) > MaxSegments {
		return nil, fmt.Errorf("%s has %d segments behind the colon: at most %d are allowed", name, len(texts),
			MaxSegments)
	}
	wild := 0
	for _, s := range texts {
		switch {
		case s == "" || s == "." || s == "..":
			return nil, fmt.Errorf("%s has an empty segment, or . or .., behind the colon: leave it out", name)
		case s == deep:
			wild++
		case strings.Contains(s, deep):
			return nil, fmt.Errorf("%s has ** beside something else: ** is a segment of its own, as in src/**/x", name)
		default:
			wild += strings.Count(s, star)
		}
	}
	if wild > MaxWildcards {
		return nil, fmt.Errorf("%s has %d wildcards: at most %d are allowed", name, wild, MaxWildcards)
	}
	if wild == 0 { // it may be a directory
		texts = append(texts, deep)
	}
	return newPattern(name, area, texts), nil
}

func newPattern(name, area string, texts []string) *Pattern {
	p := &Pattern{Name: name, Area: area, segments: make([]segment, len(texts)), deep: -1}
	literal := len(texts)
	for i, text := range texts {
		s := newSegment(text)
		p.segments[i] = s
		if s.wild {
			literal = min(literal, i)
		}
		if s.deep() {
			if p.end = i + 1; p.deep < 0 {
				p.deep = i
			}
		}
	}
	p.literal = strings.Join(texts[:literal], "/")
	return p
}

// Covers reports whether a file of the area is one that the pattern means. A * in the name of a file is no wildcard.
func (p *Pattern) Covers(file string) bool {
	one := &Pattern{Area: p.Area, deep: -1}
	for text := range strings.SplitSeq(file, "/") {
		one.segments = append(one.segments, segment{text: text})
	}
	return p.Overlaps(one)
}

// Overlaps reports whether there is a path that both patterns mean.
//
// If both have a **, only the segments before the first and behind the last one of each have to fit: a path that begins
// with the longer beginning, goes on with all that is between the two **, first of the one and then of the other, and
// ends with the longer end is meant by both. If one has none, each segment of the other has to find its place among
// its segments, and the leftmost place is as good as any.
func (p *Pattern) Overlaps(q *Pattern) bool {
	switch {
	case p.Area != q.Area:
		return false
	case p.deep < 0 && q.deep < 0:
		return len(p.segments) == len(q.segments) && fitAll(p.segments, q.segments)
	case q.deep < 0:
		return p.within(q.segments)
	case p.deep < 0:
		return q.within(p.segments)
	}
	n := min(p.deep, q.deep)
	if !fitAll(p.segments[:n], q.segments[:n]) {
		return false
	}
	a, b := p.segments[p.end:], q.segments[q.end:]
	n = min(len(a), len(b))
	return fitAll(a[len(a)-n:], b[len(b)-n:])
}

// within reports whether a pattern with ** and one without it overlap.
func (p *Pattern) within(segments []segment) bool {
	begin, end := p.segments[:p.deep], p.segments[p.end:]
	if len(begin)+len(end) > len(segments) || !fitAll(begin, segments) ||
		!fitAll(end, segments[len(segments)-len(end):]) {
		return false
	}
	room := segments[len(begin) : len(segments)-len(end)]
	between := p.segments[p.deep:p.end] // it begins and ends with **
	for len(between) > 1 {
		between = between[1:]
		next := slices.IndexFunc(between, segment.deep)
		if room = behind(between[:next], room); room == nil {
			return false
		}
		between = between[next:]
	}
	return true
}

// behind returns what is left of segments behind the first place where all of part fit; nil if there is none.
func behind(part, segments []segment) []segment {
	for i := 0; i+len(part) <= len(segments); i++ {
		if fitAll(part, segments[i:]) {
			return segments[i+len(part):]
		}
	}
	return nil
}

// fitAll compares the segments of a with as many of b.
func fitAll(a, b []segment) bool {
	for i := range a {
		s, t := &a[i], &b[i]
		if s.wild || t.wild {
			if !s.overlaps(t) {
				return false
			}
		} else if s.text != t.text {
			return false
		}
	}
	return true
}

// overlaps reports whether there is a text that both segments mean. As for whole patterns, if both have a *, it is
// enough that their beginnings and their ends fit.
func (s *segment) overlaps(t *segment) bool {
	switch {
	case !t.wild:
		return s.means(t.text)
	case !s.wild:
		return t.means(s.text)
	}
	n := min(len(s.begin), len(t.begin))
	if s.begin[:n] != t.begin[:n] {
		return false
	}
	n = min(len(s.end), len(t.end))
	return s.end[len(s.end)-n:] == t.end[len(t.end)-n:]
}

// means reports whether a text is one that a segment stands for.
func (s *segment) means(text string) bool {
	switch {
	case !s.wild:
		return s.text == text
	case len(text) < len(s.begin)+len(s.end) || !strings.HasPrefix(text, s.begin) || !strings.HasSuffix(text, s.end):
		return false
	case !s.several:
		return true
	}
	text = text[len(s.begin) : len(text)-len(s.end)]
	between := s.text[len(s.begin)+1 : len(s.text)-len(s.end)-1]
	for part := range strings.SplitSeq(between, star) {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}
