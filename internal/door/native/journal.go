package native

import (
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/translate"
)

// How the journal calls this door: by the wire that a request came by.
const (
	doorName = "native"
	respName = "resp"
)

func (c *call) audit() error {
	q := audit.Query{Kind: audit.Operation, Actor: c.query.Get("actor"), Verb: c.query.Get("verb")}
	if err := firstError(checkText("actor", q.Actor), c.door.checkVerb(q.Verb)); err != nil {
		return err
	}
	return c.journal(q, (*encode.Buffer).Operation)
}

func (c *call) holds() error {
	return c.journal(audit.Query{Kind: audit.Hold}, (*encode.Buffer).Hold)
}

// checkVerb refuses verbs that the journal does not have: it has those of requests, and of what
// happens by itself.
func (d *Door) checkVerb(verb string) error {
	if verb == "" || slices.Contains(d.verbs, verb) {
		return nil
	}
	return invalid("verb %s is unknown; known are: %s", brief(verb), strings.Join(d.verbs, ", "))
}

// journal answers with a page of lines, or with all of them.
func (c *call) journal(q audit.Query, line func(*encode.Buffer, *audit.Line)) error {
	if err := c.readJournalQuery(&q); err != nil {
		return err
	}
	j := c.door.backend.Journal()
	if j == nil {
		return &leasehold.Error{Code: leasehold.NotFound,
			Message: "this server keeps no journal: its setting journal-size is 0"}
	}
	if accepts(c.head("Accept"), linesType[0]) {
		return c.stream().export(c, j, q, line)
	}
	page, err := j.Find(c.ctx, q)
	if err != nil {
		return err
	}
	c.send(func(b *encode.Buffer) {
		b.Open()
		encode.Array(b, "items", page.Lines, func(v *audit.Line) { line(b, v) })
		b.Some("next", page.Next.String())
		b.Close()
	})
	return nil
}

// readJournalQuery reads what both lists can be asked by.
func (c *call) readJournalQuery(q *audit.Query) error {
	q.Namespace, q.Resource, q.Holder = c.namespace, c.query.Get("resource"), c.query.Get("holder")
	var badPrefix, badFrom, badUntil, badOldest, badAfter, badLimit error
	q.Prefix, badPrefix = c.prefix()
	q.From, badFrom = c.moment("from")
	q.Until, badUntil = c.moment("until")
	q.Oldest, badOldest = c.flag("oldest")
	q.After, badAfter = c.place()
	q.Limit, badLimit = c.number("limit", v1.DefaultLimit, v1.MaxLimit)
	if err := firstError(checkText("holder", q.Holder), badPrefix, badFrom, badUntil, badOldest, badAfter,
		badLimit); err != nil {
		return err
	}
	if !c.query.Has("resource") {
		return nil
	}
	if q.Prefix != "" {
		return invalid("resource and prefix name two things: give one")
	}
	return checkPath("resource", q.Resource)
}

func (c *call) moment(name string) (time.Time, error) { return translate.Moment(c.query, name) }

// place reads where in the journal to go on.
func (c *call) place() (audit.Place, error) {
	s := c.query.Get("after")
	if s == "" {
		return audit.Place{}, nil
	}
	p, err := audit.ParsePlace(s)
	if err != nil {
		return p, invalid("after %s is not what \"next\" of a page said: leave it out to begin again", brief(s))
	}
	return p, nil
}

// accepts reports whether the client asks for one type, and for nothing else.
func accepts(accept []string, want string) bool {
	if len(accept) != 1 {
		return false
	}
	kind, _, err := mime.ParseMediaType(accept[0])
	return err == nil && kind == want
}

var linesType = []string{"application/x-ndjson"}

// errCut is the error of an answer that cannot go on. It is never told: the connection
// is cut, so that nobody takes what there is of it for all.
var errCut = errors.New("the answer could not be finished")

// export writes all lines, one JSON object on each. With a limit it writes at most that many.
func (h *httpWire) export(c *call, j audit.Book, q audit.Query, line func(*encode.Buffer, *audit.Line)) error {
	leave, err := c.door.backend.StayAs(c.signed(), c.door.backend.Metrics().Exports)
	if err != nil {
		return err
	}
	defer leave()
	left := -1
	if c.query.Has("limit") {
		left = q.Limit
	} else {
		q.Limit = v1.MaxLimit
	}
	ctx, cancel := c.door.backend.Staying(c.ctx, c.proof)
	defer cancel()
	page, err := j.Find(ctx, q)
	if err != nil {
		return err
	}
	h.stay()
	head := h.w.Header()
	head["Content-Type"], head["Cache-Control"], head["X-Content-Type-Options"] = linesType, noStore, noSniff
	for {
		if !h.writeLines(page.Lines, line) {
			return errCut
		}
		if left -= len(page.Lines); page.Next == (audit.Place{}) || left == 0 {
			return nil
		}
		if left > 0 {
			q.Limit = left
		}
		q.After = page.Next
		if page, err = j.Find(ctx, q); err != nil || ctx.Err() != nil ||
			c.door.backend.Stopping().Err() != nil {
			return errCut
		}
	}
}

func (h *httpWire) writeLines(lines []audit.Line, line func(*encode.Buffer, *audit.Line)) bool {
	b := encode.New(make([]byte, 0, 256*len(lines)+1), encode.JSON)
	for i := range lines {
		line(&b, &lines[i])
		b.Bytes = append(b.Bytes, '\n')
	}
	h.within(streamTime)
	defer h.written()
	_, err := h.w.Write(b.Bytes)
	if err == nil {
		err = http.NewResponseController(h.w).Flush()
	}
	return err == nil
}
