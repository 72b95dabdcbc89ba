package native

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

func (c *call) record() error {
	path := c.path("path")
	revision, badRevision := c.revision()
	version, badVersion := c.version()
	if err := firstError(checkPath("path", path), badRevision, badVersion); err != nil {
		return err
	}
	record, err := c.recordAt(path, revision, version)
	if err != nil {
		return err
	}
	if accepts(c.head("Accept"), bytesType[0]) {
		return c.recordBytes(record, revision != 0 || version != 0)
	}
	c.tag(record)
	c.send(func(b *encode.Buffer) { b.Record(c.namespace, record, true) })
	return nil
}

// recordBytes answers with the bytes of a record. A large value may be replaced, and then
// forgotten, before it is opened: who wants the record as it is gets the next one.
func (c *call) recordBytes(record *leasehold.Record, former bool) error {
	for {
		c.tag(record)
		err := c.stream().sendBytes(c, record)
		if former || record.Large == nil || !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
		newer, gone := c.recordAt(record.Path, 0, 0)
		if gone != nil {
			return gone
		}
		if newer.Mod == record.Mod {
			return err
		}
		record = newer
	}
}

// recordAt finds a record as it is, as it was when the namespace was at a revision, or as
// the version that a revision wrote.
func (c *call) recordAt(path string, revision, version leasehold.Revision) (*leasehold.Record, error) {
	switch {
	case revision != 0 && version != 0:
		return nil, invalid("revision and version name two values: give one")
	case version != 0:
		return c.versionOf(path, version)
	}
	page, err := c.find(core.RecordQuery{From: path, To: path + "\x00", Most: 1, Revision: revision})
	if err != nil {
		return nil, err
	}
	if len(page.Records) == 0 {
		return nil, &leasehold.Error{Code: leasehold.NotFound, Message: "no record " + path}
	}
	return page.Records[0], nil
}

// find reads records. What an older revision needs of history is worked out between
// two looks at the state, so that no command waits for it.
func (c *call) find(q core.RecordQuery) (page core.RecordPage, err error) {
	if q.Revision != 0 {
		var history core.History
		if err := c.look(func(v core.View) { history = v.History(c.namespace) }); err != nil {
			return page, err
		}
		q.Past = history.Past(q)
	}
	var failure *leasehold.Error
	if err := c.look(func(v core.View) { page, failure = v.Records(c.namespace, q) }); err != nil {
		return page, err
	}
	if failure != nil {
		return page, failure
	}
	return page, nil
}

// tag sends the revision that changed a record last, as HTTP calls it.
func (c *call) tag(r *leasehold.Record) {
	c.tell("Etag", strconv.Quote(strconv.FormatUint(uint64(r.Mod), 10)))
}

// revision reads the revision at which to read; 0 for the newest.
func (c *call) revision() (leasehold.Revision, error) { return c.revisionOf("revision") }

// revisionOf reads a parameter that is a revision; 0 if it is not there.
func (c *call) revisionOf(name string) (leasehold.Revision, error) {
	s := c.query.Get(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, invalid("%s %s is not a number, 1 or more", name, brief(s))
	}
	return leasehold.Revision(n), nil
}

// span reads a prefix or a range of paths.
func (c *call) span() (from, to string, err error) {
	return span(c.query.Get("prefix"), c.query.Get("from"), c.query.Get("to"))
}

func span(prefix, from, to string) (string, string, error) {
	if err := firstError(checkText("prefix", prefix), checkText("from", from), checkText("to", to)); err != nil {
		return "", "", err
	}
	if prefix == "" {
		return from, to, nil
	}
	if from != "" || to != "" {
		return "", "", invalid("prefix and from or to name two ranges: give one")
	}
	return prefix, core.PrefixEnd(prefix), nil
}

// records lists records of a span, at a revision if one is named.
func (c *call) records() error {
	from, to, badSpan := c.span()
	after, badAfter := c.after()
	limit, badLimit := c.number("limit", v1.DefaultLimit, v1.MaxLimit)
	keys, badKeys := c.flag("keys")
	count, badCount := c.flag("count")
	revision, badRevision := c.revision()
	if err := firstError(badSpan, badAfter, badLimit, badKeys, badCount, badRevision); err != nil {
		return err
	}
	if after != "" {
		from = max(from, after+"\x00")
	}
	page, err := c.find(core.RecordQuery{From: from, To: to, Most: limit, KeysOnly: keys, Count: count,
		Revision: revision})
	if err != nil {
		return err
	}
	c.send(func(b *encode.Buffer) {
		b.Open()
		b.Items(c.namespace, page.Records, !keys)
		b.Some("next", cursor(page.Next()))
		if page.Count != 0 {
			b.Number("count", uint64(page.Count))
		}
		b.Number("revision", uint64(page.Revision))
		b.Close()
	})
	return nil
}

func (c *call) recordPut(_ *core.PutRecord, answer core.Answer) error {
	if answer.Record == nil {
		return errors.New("the engine answered without a record")
	}
	c.tag(answer.Record)
	c.send(func(b *encode.Buffer) { b.Record(c.namespace, answer.Record, false) })
	return nil
}

func (c *call) toDeleteRecord() (*core.DeleteRecord, error) {
	expected, badMatch := c.ifMatch()
	fence, badFence := c.fence()
	command := &core.DeleteRecord{Namespace: c.namespace, Path: c.path("path"), IfRevision: expected,
		Fence: fence, Request: c.once}
	return command, firstError(checkPath("path", command.Path), badMatch, badFence, c.without("If-None-Match"))
}

func (c *call) toDeleteRecords() (*core.DeleteRecord, error) {
	from, to, badSpan := c.span()
	fence, badFence := c.fence()
	command := &core.DeleteRecord{Namespace: c.namespace, Path: from, Range: true, To: to, Fence: fence,
		Request: c.once}
	err := firstError(badSpan, badFence, c.without("If-None-Match"), c.without("If-Match"))
	if err == nil && from == "" && to == "" {
		err = invalid("nothing says what to delete: give a prefix, or from and to")
	}
	return command, err
}

func (c *call) recordsDeleted(_ *core.DeleteRecord, answer core.Answer) error {
	if answer.Txn == nil || len(answer.Txn.Results) != 1 {
		return errors.New("the engine answered without a count")
	}
	c.send(func(b *encode.Buffer) {
		b.Open()
		b.Number("deleted", uint64(answer.Txn.Results[0].Deleted))
		b.Number("revision", uint64(answer.Txn.Revision))
		b.Close()
	})
	return nil
}

func (c *call) toPutRecord() (*core.PutRecord, error) {
	expected, badMatch := c.ifMatch()
	absent, badNone := c.ifNoneMatch()
	fence, badFence := c.fence()
	keep, badKeep := c.keep()
	from, badVersion := c.version()
	command := &core.PutRecord{
		Namespace: c.namespace, Path: c.path("path"), Session: c.query.Get("session"), IfRevision: expected,
		IfAbsent: absent,
		Keep:     keep, From: from, Fence: fence, Request: c.once,
	}
	// The value may be large, and is read only for a command that the engine would take.
	err := firstError(checkPath("path", command.Path), checkText("session", command.Session), badMatch, badNone,
		badFence, badKeep, badVersion, command.Validate())
	if err != nil {
		return nil, err
	}
	if err := c.value(c, command); err != nil {
		return nil, err
	}
	return command, nil
}

// unexpected gives a condition that did not hold the status that HTTP has for it.
func unexpected(c *call, _ core.Command, err error) error {
	if errors.Is(err, leasehold.ErrRefused) && (len(c.head("If-Match")) > 0 || len(c.head("If-None-Match")) > 0) {
		return &door.Fault{Err: err, Status: http.StatusPreconditionFailed}
	}
	return err
}

// header reads a header that may be there at most once.
func (c *call) header(name string) (string, error) {
	values := c.head(name)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], checkName("header "+name, values[0])
	}
	return "", invalid("header %s stands %d times: give it once", name, len(values))
}

func (c *call) without(name string) error {
	if len(c.head(name)) > 0 {
		return invalid("header %s means nothing here: leave it out", name)
	}
	return nil
}

// ifMatch reads the revision that a record must have; 0 if none is said.
func (c *call) ifMatch() (leasehold.Revision, error) {
	s, err := c.header("If-Match")
	if s == "" || err != nil {
		return 0, err
	}
	digits := s
	if len(s) > 2 && strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) {
		digits = s[1 : len(s)-1]
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 {
		return 0,
			invalid(`header If-Match is %s: write one mod revision, as the ETag has it, for example "181"`, brief(s))
	}
	return leasehold.Revision(n), nil
}

// ifNoneMatch reports whether a record must not be there.
func (c *call) ifNoneMatch() (bool, error) {
	s, err := c.header("If-None-Match")
	if err != nil || s == "" {
		return false, err
	}
	if s != "*" {
		return false, invalid("header If-None-Match is %s: only * can be said, for a record that must be new", brief(s))
	}
	return true, nil
}

func (c *call) fence() (f core.Fence, err error) {
	if f.Lease, err = c.header(v1.LeaseHeader); err != nil {
		return f, err
	}
	s, err := c.header(v1.TokenHeader)
	if s == "" || err != nil {
		return f, err
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return f, invalid("header %s is %s: write the token of a lease, a number from 1 on", v1.TokenHeader, brief(s))
	}
	f.Token = leasehold.Token(n)
	return f, nil
}
