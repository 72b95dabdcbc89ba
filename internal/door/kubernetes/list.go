package kubernetes

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// A listQuery is what a list, or a watch, is about.
type listQuery struct {
	labels   object.LabelSelector
	fields   object.FieldSelector
	limit    int                // 0: all
	after    string             // the path that the page before ended with
	revision leasehold.Revision // as it was then; 0: as it is
	least    leasehold.Revision // it must be no older than this
	first    bool               // revision is that of an earlier page
}

// selectors reads which objects are meant.
func (c *call) selectors() (q listQuery, err error) {
	if q.labels, err = object.ParseLabels(c.query.Get("labelSelector")); err != nil {
		return q, badRequest("%v", err)
	}
	if q.fields, err = object.ParseFields(c.query.Get("fieldSelector")); err != nil {
		return q, badRequest("%v", err)
	}
	return q, nil
}

// listQuery reads what to list.
func (c *call) listQuery() (q listQuery, err error) {
	if q, err = c.selectors(); err != nil {
		return q, err
	}
	if text := c.query.Get("limit"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return q, badRequest("limit %q is not a number from 0 on", text)
		}
		q.limit = int(n)
	}
	return q, c.versionOf(&q)
}

// versionOf reads as of when the list is.
func (c *call) versionOf(q *listQuery) error {
	revision, err := revisionOf(c.query.Get("resourceVersion"))
	if err != nil {
		return badRequest("%v", err)
	}
	match := c.query.Get("resourceVersionMatch")
	if text := c.query.Get("continue"); text != "" {
		if match != "" {
			return invalidOptions("resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden for continue")
		}
		return q.goOn(text)
	}
	switch {
	case match == "Exact" && revision == 0:
		return invalidOptions("resourceVersionMatch",
			"Forbidden: resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"")
	case match == "Exact":
		q.revision = revision
	case match == "NotOlderThan" || match == "":
		q.least = revision
	default:
		return invalidOptions("resourceVersionMatch", fmt.Sprintf(
			"Unsupported value: %q: supported values: \"Exact\", \"NotOlderThan\", \"\"", match))
	}
	return nil
}

// invalidOptions is the error of parameters that contradict each other.
func invalidOptions(field, message string) error {
	return invalid("ListOptions.meta.k8s.io", "", object.Cause{Reason: "FieldValueForbidden", Field: field,
		Message: message})
}

// goOn reads where the next page begins: the revision of the first, and the path that the last one ended with.
func (q *listQuery) goOn(text string) error {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	revision, path, found := strings.Cut(string(plain), " ")
	n, bad := strconv.ParseUint(revision, 10, 64)
	if err != nil || !found || bad != nil || n == 0 || !strings.HasPrefix(path, root) || len(path) > leasehold.MaxName {
		return badRequest("continue key is not valid: it is not one that a list answered")
	}
	q.revision, q.after, q.first = leasehold.Revision(n), path, true
	return nil
}

// continueAfter returns where the next page of a list begins, as goOn reads it.
func continueAfter(revision leasehold.Revision, path string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", revision, path))
}

// picks reports whether an object is one of those that are asked for.
func (q *listQuery) picks(l *object.Lease) bool {
	return q.fields.Picks(&l.Meta) && q.labels.Picks(l.Meta.Labels)
}

// A found is what a list has found.
type found struct {
	items    []present
	revision leasehold.Revision
	next     string // empty: that is all
}

// list answers with all objects of a namespace, or of all.
func (c *call) list() error {
	q, err := c.listQuery()
	if err != nil {
		return err
	}
	if q.limit == 0 && q.fields.Name == "" {
		leave, err := c.door.lists.Enter(c.signed())
		if err != nil {
			return err
		}
		defer leave()
	}
	f, err := c.collect(q)
	if err != nil {
		return err
	}
	c.sendList(f)
	return nil
}

// collect reads objects, page by page, all as of one revision. Between two pages everybody else has a turn.
func (c *call) collect(q listQuery) (f found, err error) {
	from, to := c.path(), core.PrefixEnd(c.path())
	if q.fields.Name != "" && c.space != "" {
		from, to = from+q.fields.Name, from+q.fields.Name+"\x00"
	}
	query := core.RecordQuery{From: from, To: to, Revision: q.revision}
	size := 0
	for after := q.after; ; {
		if after != "" {
			query.From = max(from, after+"\x00")
		}
		page, err := c.page(query, q.first)
		if err != nil {
			return f, err
		}
		if page.Revision < q.least {
			return f, tooNew(q.least, page.Revision)
		}
		query.Revision, f.revision = page.Revision, page.Revision
		holders, err := c.holders(page.Records)
		if err != nil {
			return f, err
		}
		for i, r := range page.Records {
			l, err := show(r, holders[i])
			if err != nil || !q.picks(l) {
				continue // what others wrote below the root is no object
			}
			if q.limit > 0 && len(f.items) == q.limit {
				f.next = continueAfter(f.revision, f.items[q.limit-1].record.Path)
				return f, nil
			}
			f.items = append(f.items, present{record: r, lease: l})
			size += len(r.Path) + len(r.Value)
		}
		if err := c.answer.Grow(c.signed(), c.door.backend, size, "a list", "ask with limit and continue"); err != nil {
			return f, err
		}
		if after = page.Next(); after == "" {
			return f, nil
		}
	}
}

// holders returns who has the leases that records stand for, for each record. Some may have ended since.
func (c *call) holders(records []*leasehold.Record) ([]string, error) {
	holders := make([]string, len(records))
	err := c.look(func(v core.View) {
		for i, r := range records {
			if r.Lease != "" {
				holders[i], _ = v.StandsFor(c.door.config.Namespace, r.Path, r.Lease)
			}
		}
	})
	return holders, err
}

// page reads some records. What an older revision needs of history is worked out between two looks at the state, so
// that no command waits for it.
func (c *call) page(q core.RecordQuery, isNext bool) (page core.RecordPage, err error) {
	namespace := c.door.config.Namespace
	if q.Revision != 0 {
		var history core.History
		if err := c.look(func(v core.View) { history = v.History(namespace) }); err != nil {
			return page, err
		}
		if q.Revision > history.Revision {
			return page, tooNew(q.Revision, history.Revision)
		}
		q.Past = history.Past(q)
	}
	var failure *leasehold.Error
	if err := c.look(func(v core.View) { page, failure = v.Records(namespace, q) }); err != nil {
		return page, err
	}
	switch {
	case failure == nil:
		return page, nil
	case errors.Is(failure, leasehold.ErrLost) && isNext:
		return page, expired("The provided continue parameter is too old to display a consistent list result. You " +
			"must start a new list without the continue parameter.")
	case errors.Is(failure, leasehold.ErrLost):
		return page, expired("The resourceVersion for the provided list is too old.")
	}
	return page, failure
}

// tooNew is the error of somebody who has seen a newer revision than there is: of another cluster, or of one that was
// restored from a backup.
func tooNew(wanted, newest leasehold.Revision) error {
	return &apiError{Code: http.StatusGatewayTimeout, Reason: "Timeout", Our: leasehold.Refused,
		Message: fmt.Sprintf("Too large resource version: %d, current: %d", wanted, newest),
		Causes:  []object.Cause{{Reason: "ResourceVersionTooLarge", Message: "Too large resource version"}}}
}

// sendList answers with what was found, in whichever shape is wanted.
func (c *call) sendList(f found) {
	switch c.form.as {
	case asTable:
		t := newTable(c.query.Get("includeObject"), revisionText(f.revision))
		t.Metadata.Continue = f.next
		for _, item := range f.items {
			t.add(item.lease)
		}
		c.send(http.StatusOK, t)
	default:
		c.send(http.StatusOK, &listAnswer{f, c.form.as != ""})
	}
}

// A listMeta is what a list says of itself.
type listMeta struct {
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Continue        string `json:"continue,omitempty"`
}

// A listAnswer is a list of objects, or of their metadata alone.
type listAnswer struct {
	found
	meta bool
}

func (l *listAnswer) kind() (apiVersion, kind string) {
	if l.meta {
		return metaVersion, asMetaList
	}
	return object.APIVersion, object.Kind + "List"
}

// JSON returns the list in JSON.
func (l *listAnswer) JSON() ([]byte, error) {
	apiVersion, kind := l.kind()
	head, _ := json.Marshal(listMeta{revisionText(l.revision), l.next})
	out := fmt.Appendf(make([]byte, 0, 512+len(l.items)*512), `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`,
		kind, apiVersion, head)
	for i, item := range l.items {
		if i > 0 {
			out = append(out, ',')
		}
		var text []byte
		if l.meta {
			text, _ = metaAnswer{item.lease}.JSON()
		} else {
			text, _ = json.Marshal(item.lease)
		}
		out = append(out, text...)
	}
	return append(out, "]}"...), nil
}

// Marshal returns the list in protobuf.
func (l *listAnswer) Marshal() []byte {
	var head object.Writer
	head.Text(2, revisionText(l.revision))
	head.Text(3, l.next)
	w := make(object.Writer, 0, 64+len(l.items)*384)
	w.Bytes(1, head)
	for _, item := range l.items {
		if l.meta {
			w.Bytes(2, item.lease.MarshalMeta())
			continue
		}
		w.Bytes(2, item.lease.Marshal())
	}
	return w
}

// A metaAnswer is the metadata of one object.
type metaAnswer struct{ *object.Lease }

const metaVersion = "meta.k8s.io/v1"

func (metaAnswer) kind() (apiVersion, kind string) { return metaVersion, asMeta }

// Marshal returns the metadata in protobuf.
func (m metaAnswer) Marshal() []byte { return m.MarshalMeta() }

// partial is the metadata of an object as an object of its own.
type partial struct {
	Kind       string       `json:"kind"`
	APIVersion string       `json:"apiVersion"`
	Metadata   *object.Meta `json:"metadata"`
}

// JSON returns the metadata in JSON.
func (m metaAnswer) JSON() ([]byte, error) {
	return json.Marshal(partial{asMeta, metaVersion, &m.Meta})
}
