package native

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// doorName is how the journal calls this door.
const doorName = "native"

// origin is where the request comes from. The address is that of the connection: what a
// header says of another one, anybody can write.
func (c *call) origin() leasehold.Origin {
	return leasehold.Origin{Actor: door.Principal(c.proof), Address: c.r.RemoteAddr, Door: doorName}
}

// signed is the request's context, with where the request comes from.
func (c *call) signed() context.Context { return engine.WithOrigin(c.ctx, c.origin()) }

// do carries out a command, and notes how it was refused.
func (c *call) do(command core.Command) (core.Answer, error) {
	answer, err := c.carryOut(command)
	errors.As(err, &c.decided)
	return answer, err
}

// carryOut sends a command to the engine, and says where it comes from if anybody will ask. Unlike do it may be
// called by several goroutines of a request.
func (c *call) carryOut(command core.Command) (core.Answer, error) {
	if engine.HasOrigin(command) {
		return c.door.backend.Do(c.signed(), command)
	}
	return c.door.backend.Do(c.ctx, command)
}

// noteDenied puts a refusal for lack of right in the journal, unless the log has it.
func (c *call) noteDenied(o *operation, err error) {
	var refusal *leasehold.Error
	if !errors.Is(err, leasehold.ErrDenied) || door.Anonymous(err) ||
		errors.As(err, &refusal) && refusal == c.decided {
		return
	}
	if c.namespace == "" && c.readQuery(o) != nil {
		c.namespace = leasehold.DefaultNamespace // it was refused before anybody read what it says
	}
	c.door.backend.Refused(audit.Refusal{
		Origin: c.origin(), Namespace: c.namespace, Verb: o.name,
		Resource: c.r.PathValue("path"), ID: c.r.PathValue("id"), Reason: err.Error(),
	})
}

func (c *call) audit() error {
	q := audit.Query{Kind: audit.Operation, Actor: c.query.Get("actor"), Verb: c.query.Get("verb")}
	if err := firstError(checkText("actor", q.Actor), c.door.checkVerb(q.Verb)); err != nil {
		return err
	}
	return c.journal(q, (*jsonBuffer).operation)
}

func (c *call) holds() error {
	return c.journal(audit.Query{Kind: audit.Hold}, (*jsonBuffer).hold)
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
func (c *call) journal(q audit.Query, line func(*jsonBuffer, *audit.Line)) error {
	if err := c.readJournalQuery(&q); err != nil {
		return err
	}
	j := c.door.backend.Journal()
	if j == nil {
		return &leasehold.Error{Code: leasehold.NotFound,
			Message: "this server keeps no journal: its setting journal-size is 0"}
	}
	if accepts(c.r.Header["Accept"], linesType[0]) {
		return c.export(j, q, line)
	}
	page, err := j.Find(c.ctx, q)
	if err != nil {
		return err
	}
	c.send(func(b *jsonBuffer) {
		b.open()
		array(b, "items", page.Lines, func(v *audit.Line) { line(b, v) })
		b.some("next", page.Next.String())
		b.close()
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

// moment reads a calendar time; the zero one if there is none.
func (c *call) moment(name string) (time.Time, error) {
	s := c.query.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return time.Time{}, invalid("%s %s is not a time: write it as 2026-03-01T04:30:00Z", name, brief(s))
	}
	return t, nil
}

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
func (c *call) export(j audit.Book, q audit.Query, line func(*jsonBuffer, *audit.Line)) error {
	leave, err := c.door.backend.StayAs(c.door.backend.Metrics().Exports)
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
	c.stay()
	h := c.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = linesType, noStore, noSniff
	for {
		if !c.writeLines(page.Lines, line) {
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

func (c *call) writeLines(lines []audit.Line, line func(*jsonBuffer, *audit.Line)) bool {
	b := make(jsonBuffer, 0, 256*len(lines)+1)
	for i := range lines {
		line(&b, &lines[i])
		b = append(b, '\n')
	}
	c.writeWithin(streamTime)
	defer c.written()
	_, err := c.w.Write(b)
	if err == nil {
		err = http.NewResponseController(c.w).Flush()
	}
	return err == nil
}

func (b *jsonBuffer) operation(l *audit.Line) {
	b.openLine(l)
	b.moment("at", l.At)
	b.text("namespace", l.Namespace)
	b.text("verb", l.Verb)
	b.text("outcome", l.Outcome)
	b.some("actor", l.Actor)
	b.some("address", l.Address)
	b.some("door", l.Door)
	b.some("resource", l.Resource)
	b.some("id", l.ID)
	b.some("foreign", l.Foreign)
	b.some("holder", l.Holder)
	if l.Token != 0 {
		b.number("token", uint64(l.Token))
	}
	b.some("session", l.Session)
	if l.How != 0 {
		b.text("how", l.How.String())
	}
	b.some("by", l.By)
	b.some("reason", l.Reason)
	b.close()
}

func (b *jsonBuffer) hold(l *audit.Line) {
	b.openLine(l)
	b.text("namespace", l.Namespace)
	b.text("resource", l.Resource)
	b.text("id", l.ID)
	b.some("foreign", l.Foreign)
	b.text("holder", l.Holder)
	b.number("token", uint64(l.Token))
	b.some("session", l.Session)
	b.moment("since", l.Since)
	b.moment("until", l.Until)
	b.millis("waited_ms", l.Waited)
	b.text("how", l.How.String())
	b.some("by", l.By)
	b.some("reason", l.Reason)
	b.close()
}

// openLine begins a line with its place in the log, if it has one.
func (b *jsonBuffer) openLine(l *audit.Line) {
	b.open()
	if l.Index != 0 {
		b.number("index", l.Index)
	}
	if l.N != 0 {
		b.number("n", uint64(l.N))
	}
}
