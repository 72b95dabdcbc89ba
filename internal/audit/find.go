package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

// A Query says which lines to find.
type Query struct {
	Kind      Kind
	Namespace string
	Resource  string // this one
	Prefix    string // or those that begin so
	Holder    string
	Actor     string
	Verb      string
	From      time.Time // zero: from the beginning
	Until     time.Time // and before this; zero: up to now
	Oldest    bool      // the oldest first; else the newest
	After     Place     // where the page before ended; zero: at the beginning
	Limit     int
}

// A Place is where a line stands. It stays good until the line is dropped.
type Place struct {
	Segment uint64
	Offset  int64
}

func (p Place) String() string {
	if p == (Place{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", p.Segment, p.Offset)
}

// ParsePlace reads what String wrote.
func ParsePlace(s string) (Place, error) {
	number, offset, ok := strings.Cut(s, ".")
	n, bad := strconv.ParseUint(number, 10, 64)
	at, worse := strconv.ParseInt(offset, 10, 64)
	p := Place{n, at}
	if !ok || bad != nil || worse != nil || at < 0 || n == 0 || p.String() != s {
		return Place{}, errors.New("not a place in the journal")
	}
	return p, nil
}

// A Page is some lines, and where to go on; the zero Place if there are no more.
type Page struct {
	Lines []Line
	Next  Place
}

// What one page may cost: a search that finds little stops after so many bytes, and
// its page is short and has a next one. So many searches read at a time.
const (
	maxLook     = 32 << 20
	maxSearches = 4
)

// Find returns one page of lines. It has everything that was answered before.
func (j *Journal) Find(ctx context.Context, q Query) (Page, error) {
	select {
	case j.searches <- struct{}{}:
		defer func() { <-j.searches }()
	case <-ctx.Done():
		return Page{}, &leasehold.Error{Code: leasehold.Unavailable, Message: "the request ended before the journal could be read"}
	}
	segments, err := j.settled()
	if err != nil {
		return Page{}, err
	}
	if q.Oldest && q.After != (Place{}) && q.After.Segment < segments[0].number {
		return Page{}, &leasehold.Error{Code: leasehold.Lost, Message: "the journal has dropped what comes next, to make room for newer lines: begin again, with a smaller range"}
	}
	search := search{Query: q, journal: j, left: maxLook}
	return search.run(ctx, segments)
}

// A search is a query under way.
type search struct {
	Query
	journal *Journal
	left    int64 // bytes that it may still read
	found   Page
}

func (s *search) run(ctx context.Context, segments []segment) (Page, error) {
	for i := range segments {
		at := i
		if !s.Oldest {
			at = len(segments) - 1 - i
		}
		segment := &segments[at]
		if s.passed(segment.number) {
			continue
		}
		if ctx.Err() != nil {
			return Page{}, &leasehold.Error{Code: leasehold.Unavailable, Message: "the request ended before the journal was read"}
		}
		full, err := s.look(segment)
		if err != nil {
			return Page{}, err
		}
		if full {
			return s.found, nil
		}
		if s.left <= 0 && i < len(segments)-1 {
			s.found.Next = s.edge(segment.number)
			return s.found, nil
		}
	}
	s.found.Next = Place{}
	return s.found, nil
}

// passed tells whether the pages before have shown all of a segment.
func (s *search) passed(number uint64) bool {
	switch {
	case s.After == (Place{}):
		return false
	case number == s.After.Segment:
		return s.After == s.edge(number)
	case s.Oldest:
		return number < s.After.Segment
	}
	return number > s.After.Segment
}

// edge is the place behind all lines of a segment, in the order of the search.
func (s *search) edge(number uint64) Place {
	if s.Oldest {
		return Place{number, math.MaxInt64}
	}
	return Place{number, 0}
}

// look finds the lines of one segment, and tells whether the page is full.
func (s *search) look(g *segment) (full bool, err error) {
	if g.lines == 0 || !s.From.IsZero() && g.last < s.From.UnixNano() || !s.Until.IsZero() && g.first >= s.Until.UnixNano() {
		return false, nil
	}
	if !s.filtered(g) {
		return false, nil
	}
	s.left -= g.size
	b, err := s.journal.read(g)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // dropped in the meantime
	}
	if err != nil {
		s.journal.config.Log.Error("the journal can not be read", "err", err)
		return false, &leasehold.Error{Code: leasehold.Unavailable, Message: "the journal can not be read; the server's log says why"}
	}
	hits := hits{most: s.Limit - len(s.found.Lines) + 1, first: s.Oldest}
	good := eachLine(b, func(at int, text string) bool {
		var l Line
		if place := (Place{g.number, int64(at)}); s.ahead(place) && decodeLine(text, &l) == nil && s.matches(&l) {
			return hits.add(place, &l)
		}
		return true
	})
	if int64(good) < g.size && !hits.enough {
		s.journal.damaged(g.number, int64(good), g.size)
	}
	return s.take(&hits), nil
}

// hits are the first or the last of what matches in a segment: as many as the page takes,
// and one more, by which it is known that there is a next page.
type hits struct {
	most   int
	first  bool
	places []Place
	lines  []Line
	enough bool // no more were looked for
}

func (h *hits) add(p Place, l *Line) (more bool) {
	if !h.first && len(h.lines) >= 2*h.most {
		h.places = append(h.places[:0], h.places[len(h.places)-h.most:]...)
		h.lines = append(h.lines[:0], h.lines[len(h.lines)-h.most:]...)
	}
	h.places, h.lines = append(h.places, p), append(h.lines, *l)
	h.enough = h.first && len(h.lines) == h.most
	return !h.enough
}

// ahead tells whether the pages before have not shown a place.
func (s *search) ahead(p Place) bool {
	if p.Segment != s.After.Segment {
		return true
	}
	if s.Oldest {
		return p.Offset > s.After.Offset
	}
	return p.Offset < s.After.Offset
}

// take puts lines on the page in the order asked for. The page is full when one is left
// over: only then is there a next one.
func (s *search) take(h *hits) (full bool) {
	for i := range h.lines {
		at := i
		if !s.Oldest {
			at = len(h.lines) - 1 - i
		}
		if len(s.found.Lines) == s.Limit {
			return true
		}
		s.found.Lines = append(s.found.Lines, h.lines[at])
		s.found.Next = h.places[at]
	}
	return false
}

// filtered tells whether a segment may have what the query names.
func (s *search) filtered(g *segment) bool {
	if s.Resource == "" && s.Holder == "" && s.Actor == "" {
		return true
	}
	f := g.filter
	if f == nil {
		var err error
		if _, f, err = readIndex(s.journal.config.Dir, g.number, g.size); err != nil {
			return true // it is the newest, which has none yet; or else by reading it
		}
		s.left -= int64(len(f))
	}
	may := func(field byte, name string) bool { return name == "" || f.may(s.Namespace, field, name) }
	return may('r', s.Resource) && may('h', s.Holder) && may('a', s.Actor)
}

func (s *search) matches(l *Line) bool {
	switch {
	case l.Kind != s.Kind, l.Namespace != s.Namespace,
		s.Resource != "" && l.Resource != s.Resource, !strings.HasPrefix(l.Resource, s.Prefix),
		s.Holder != "" && l.Holder != s.Holder, s.Actor != "" && l.Actor != s.Actor, s.Verb != "" && l.Verb != s.Verb:
		return false
	}
	return s.during(l)
}

// during tells whether a line is about a moment of the range; of a hold, any moment.
func (s *search) during(l *Line) bool {
	begin, end := l.begin(), l.At
	if l.Kind == Hold {
		end = l.Until
	}
	return (s.From.IsZero() || !end.Before(s.From)) && (s.Until.IsZero() || begin.Before(s.Until))
}
