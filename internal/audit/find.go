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

// Searching the journal. A search looks at a bounded number of bytes and then returns what it
// has, with the place to continue: no question, however broad, keeps the disk busy for long.
// Operations and refusals are searched apart and merged by time.

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

	// Shows reports whether a line may be shown to who asks, and may leave out a part of it; nil: all are.
	Shows func(*Line) bool
}

// A Book is a journal as doors use it.
type Book interface {
	// Find returns one page of lines. It has everything that was answered before.
	Find(ctx context.Context, q Query) (Page, error)

	// Refused notes a refusal that is not in the log.
	Refused(r Refusal)
}

// A Place is how far the pages so far have come, in both journals. It stays valid until lines
// behind it are dropped.
type Place struct {
	operations, refusals spot // zero: at the beginning
}

// A spot is the position of a line: its segment, and the offset in it.
type spot struct {
	segment uint64
	offset  int64
}

func (s spot) String() string { return fmt.Sprintf("%d.%d", s.segment, s.offset) }

func (p Place) String() string {
	switch {
	case p == (Place{}):
		return ""
	case p.refusals == (spot{}):
		return p.operations.String()
	}
	return p.operations.String() + "-" + p.refusals.String()
}

// ParsePlace reads what String wrote.
func ParsePlace(s string) (p Place, err error) {
	operations, refusals, both := strings.Cut(s, "-")
	p.operations, err = parseSpot(operations)
	if err == nil && both {
		p.refusals, err = parseSpot(refusals)
	}
	if err != nil || p.String() != s {
		return Place{}, errors.New("not a place in the journal")
	}
	return p, nil
}

func parseSpot(s string) (spot, error) {
	number, offset, _ := strings.Cut(s, ".")
	n, bad := strconv.ParseUint(number, 10, 64)
	at, worse := strconv.ParseInt(offset, 10, 64)
	if at < 0 || n == 0 && at != 0 {
		worse = strconv.ErrRange
	}
	return spot{n, at}, errors.Join(bad, worse)
}

// A Page is some lines, and where to go on; the zero Place at the end.
type Page struct {
	Lines []Line
	Next  Place
}

// What one page may cost: a search that finds little stops after maxLook bytes, and its page is
// short and has a next one. At most maxSearches read at a time.
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
		return Page{}, &leasehold.Error{Code: leasehold.Unavailable,
			Message: "the request ended before the journal could be read"}
	}
	operations, err := j.look(ctx, q, q.After.operations)
	if err != nil || q.Kind == Hold {
		return Page{operations.lines, Place{operations: operations.next}}, err
	}
	refusals, err := j.refusals.look(ctx, q, q.After.refusals)
	if err != nil {
		return Page{}, err
	}
	return merge(operations, refusals, q), nil
}

// look finds up to a page of lines of this journal, its refusals aside.
func (j *Journal) look(ctx context.Context, q Query, after spot) (found, error) {
	segments, err := j.settled()
	if err != nil {
		return found{}, err
	}
	// A reader that goes forward must be told when lines that it has not seen were dropped; one
	// that goes back meets the same end sooner.
	if q.Oldest && after != (spot{}) && (after.segment < segments[0].number || j.droppedAfter(q.Namespace, after)) {
		return found{}, &leasehold.Error{Code: leasehold.Lost,
			Message: "the journal has dropped what comes next, to make room for newer lines: begin again, with a " +
				"smaller range"}
	}
	search := search{Query: q, journal: j, after: after, left: maxLook}
	f, err := search.run(ctx, segments)
	if f.end = f.next; f.end == (spot{}) {
		f.end = spot{segments[0].number, 0}
		if last := segments[len(segments)-1]; q.Oldest {
			f.end = spot{last.number, last.size - 1}
		}
	}
	return f, err
}

// found is what a search found in one journal, and where the lines are.
type found struct {
	lines []Line
	spots []spot
	next  spot // where to go on; zero: at the end
	end   spot // behind the lines
}

// merge makes one page of operations and refusals. If one of the two was not searched to its end,
// only what surely comes before its next line is shown; the rest is for the next page.
// Otherwise a line that is found later would belong on a page that was already shown.
func merge(operations, refusals found, q Query) (page Page) {
	d, r := 0, 0
	for len(page.Lines) < q.Limit {
		moreOperations, moreRefusals := d < len(operations.lines), r < len(refusals.lines)
		switch {
		case moreOperations && (moreRefusals && first(&operations.lines[d], &refusals.lines[r], q.Oldest) ||
			!moreRefusals && refusals.next == spot{}):
			page.Lines = append(page.Lines, operations.lines[d])
			d++
			continue
		case moreRefusals && (moreOperations || operations.next == spot{}):
			page.Lines = append(page.Lines, refusals.lines[r])
			r++
			continue
		}
		break
	}
	page.Next = Place{operations.reached(d, q.After.operations), refusals.reached(r, q.After.refusals)}
	if page.Next == (Place{operations.end, refusals.end}) && operations.next == (spot{}) && refusals.next == (spot{}) {
		page.Next = Place{}
	}
	return page
}

// reached returns the position after the first n lines. after is the position before them.
func (f *found) reached(n int, after spot) spot {
	switch {
	case n == len(f.lines):
		return f.end
	case n == 0:
		return after
	}
	return f.spots[n-1]
}

// first reports whether an operation comes before a refusal in the order that was asked for. The log
// orders what came from it, the calendar the rest.
func first(operation, refusal *Line, oldest bool) bool {
	before := !operation.At.After(refusal.At)
	if refusal.Index != 0 {
		before = operation.Index < refusal.Index || operation.Index == refusal.Index && operation.N < refusal.N
	}
	return before == oldest
}

// A search is a query under way.
type search struct {
	Query
	journal *Journal
	after   spot
	left    int64 // bytes that it may still read
	found   found
}

// run searches the segments, the newest first unless the oldest are wanted first.
func (s *search) run(ctx context.Context, segments []segment) (found, error) {
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
			return found{}, &leasehold.Error{Code: leasehold.Unavailable,
				Message: "the request ended before the journal was read"}
		}
		full, err := s.look(segment)
		if err != nil {
			return found{}, err
		}
		if full {
			return s.found, nil
		}
		if s.left <= 0 && i < len(segments)-1 {
			s.found.next = s.edge(segment.number)
			return s.found, nil
		}
	}
	s.found.next = spot{}
	return s.found, nil
}

// passed reports whether earlier pages have shown all of a segment.
func (s *search) passed(number uint64) bool {
	switch {
	case s.after == (spot{}):
		return false
	case number == s.after.segment:
		return s.after == s.edge(number)
	case s.Oldest:
		return number < s.after.segment
	}
	return number > s.after.segment
}

// edge is the place behind all lines of a segment, in the order of the search.
func (s *search) edge(number uint64) spot {
	if s.Oldest {
		return spot{number, math.MaxInt64}
	}
	return spot{number, 0}
}

// look finds the lines of one segment, and reports whether the page is full.
func (s *search) look(g *segment) (full bool, err error) {
	if g.lines == 0 || !s.From.IsZero() && g.last < s.From.UnixNano() ||
		!s.Until.IsZero() && g.first >= s.Until.UnixNano() {
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
		s.journal.config.Log.Error("the journal cannot be read", "err", err)
		return false, &leasehold.Error{Code: leasehold.Unavailable,
			Message: "the journal cannot be read; the server's log says why"}
	}
	hits := hits{most: s.Limit - len(s.found.lines) + 1, first: s.Oldest}
	good := eachLine(b, func(at int, text string) bool {
		var l Line
		if at := (spot{g.number, int64(at)}); s.ahead(at) && decodeLine(text, &l) == nil && s.matches(&l) {
			return hits.add(at, &l)
		}
		return true
	})
	// Not damage if the search stopped by itself, or if the segment was replaced while it was
	// read.
	if int64(good) < g.size && !hits.enough && s.journal.isAsRead(g) {
		s.journal.damaged(g.number, int64(good), g.size)
	}
	return s.take(&hits), nil
}

// hits are the first or the last matches in a segment: as many as the page takes, and one more,
// which shows that there is a next page. Going back, the last ones are wanted and a segment can
// only be read forward, so older ones are dropped as newer ones come.
type hits struct {
	most   int
	first  bool
	spots  []spot
	lines  []Line
	enough bool // no more were looked for
}

func (h *hits) add(p spot, l *Line) (more bool) {
	if !h.first && len(h.lines) >= 2*h.most {
		h.spots = append(h.spots[:0], h.spots[len(h.spots)-h.most:]...)
		h.lines = append(h.lines[:0], h.lines[len(h.lines)-h.most:]...)
	}
	h.spots, h.lines = append(h.spots, p), append(h.lines, *l)
	h.enough = h.first && len(h.lines) == h.most
	return !h.enough
}

// ahead reports whether the pages before have not shown a place.
func (s *search) ahead(p spot) bool {
	if p.segment != s.after.segment {
		return true
	}
	if s.Oldest {
		return p.offset > s.after.offset
	}
	return p.offset < s.after.offset
}

// take puts lines on the page in the order asked for. The page is full when one is left over:
// only then is there a next one.
func (s *search) take(h *hits) (full bool) {
	for i := range h.lines {
		at := i
		if !s.Oldest {
			at = len(h.lines) - 1 - i
		}
		if len(s.found.lines) == s.Limit {
			return true
		}
		s.found.lines = append(s.found.lines, h.lines[at])
		s.found.spots = append(s.found.spots, h.spots[at])
		s.found.next = h.spots[at]
	}
	return false
}

// filtered reports whether a segment may have what the query names. If in doubt it reports
// true: the filter only saves time.
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
	return s.during(l) && (s.Shows == nil || s.Shows(l))
}

// during reports whether a line is about a moment of the range; of a hold, any moment.
func (s *search) during(l *Line) bool {
	begin, end := l.begin(), l.At
	if l.Kind == Hold {
		end = l.Until
	}
	return (s.From.IsZero() || !end.Before(s.From)) && (s.Until.IsZero() || begin.Before(s.Until))
}
