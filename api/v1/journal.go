package v1

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// LinesType is the content type of an export: one JSON object on each line.
const LinesType = "application/x-ndjson"

// An Operation is one entry of the audit trail: something that was done or refused, and who did
// it. Index and N are its place in the log; a denied one has none.
type Operation struct {
	Index     uint64 `json:"index,omitempty"`
	N         uint32 `json:"n,omitempty"`
	At        Time   `json:"at"`
	Namespace string `json:"namespace"`
	Verb      string `json:"verb"`
	Outcome   string `json:"outcome"`           // "ok", "queued", or the code of the refusal
	Actor     string `json:"actor,omitempty"`   // proven, or else as it calls itself; "time" if time did it
	Address   string `json:"address,omitempty"` // of the client's end of the connection
	Door      string `json:"door,omitempty"`
	Resource  string `json:"resource,omitempty"` // or a record's path
	ID        string `json:"id,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`
	How       string `json:"how,omitempty"` // how it ended, if it did
	By        string `json:"by,omitempty"`  // the operator's own name for itself
	Reason    string `json:"reason,omitempty"`
	Foreign   string `json:"foreign,omitempty"` // as in Lease
}

// A Hold is one holder's time with a resource, recorded when it is over.
type Hold struct {
	Index     uint64 `json:"index,omitempty"`
	N         uint32 `json:"n,omitempty"`
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	ID        string `json:"id"`
	Holder    string `json:"holder"`
	Token     uint64 `json:"token"`
	Session   string `json:"session,omitempty"`
	Since     Time   `json:"since"`
	Until     Time   `json:"until"`
	WaitedMS  int64  `json:"waited_ms"`         // in the queue, before the grant
	BusyMS    int64  `json:"busy_ms,omitempty"` // that units of a pool were used, as far as hosts said so
	IdleMS    int64  `json:"idle_ms,omitempty"` // that they were not
	Units     int    `json:"units,omitempty"`   // of a pool with hosts

	Labels  map[string]string `json:"labels,omitempty"` // of a lease on such units
	How     string            `json:"how"`
	By      string            `json:"by,omitempty"`
	Reason  string            `json:"reason,omitempty"`  // why it was broken
	Foreign string            `json:"foreign,omitempty"` // as in Lease
}

// A JournalQuery says which operations or holds to list.
type JournalQuery struct {
	Resource string    // one resource
	Prefix   string    // or all whose path has this prefix
	Holder   string    // who held, or asked
	Actor    string    // of operations alone
	Verb     string    // of operations alone
	From     time.Time // zero: from the oldest
	Until    time.Time // exclusive; zero: up to now
	Oldest   bool      // oldest first; else newest first
	After    string    // Next of the previous page
	Limit    int       // of one page, or of an export; 0: the server's default, or all
}

func (q JournalQuery) values() url.Values {
	query := url.Values{}
	setText(query, "resource", q.Resource)
	setText(query, "prefix", q.Prefix)
	setText(query, "holder", q.Holder)
	setText(query, "actor", q.Actor)
	setText(query, "verb", q.Verb)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	for name, t := range map[string]time.Time{"from": q.From, "until": q.Until} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Oldest {
		query.Set("oldest", "true")
	}
	return query
}

// AuditPage returns one page of the audit trail: what was done, and by whom.
func (c *Caller) AuditPage(ctx context.Context, q JournalQuery) (List[Operation], error) {
	return send[List[Operation]](ctx, c, request{method: "GET", path: "/v1/audit", query: q.values()})
}

// Audit yields the audit trail of all pages. It ends after the first error.
func (c *Caller) Audit(ctx context.Context, q JournalQuery) iter.Seq2[Operation, error] {
	return pages(q.After, func(after string) (List[Operation], error) {
		q.After = after
		return c.AuditPage(ctx, q)
	})
}

// HoldPage returns one page of the holds that are over.
func (c *Caller) HoldPage(ctx context.Context, q JournalQuery) (List[Hold], error) {
	return send[List[Hold]](ctx, c, request{method: "GET", path: "/v1/holds", query: q.values()})
}

// Holds yields the holds of all pages. It ends after the first error.
func (c *Caller) Holds(ctx context.Context, q JournalQuery) iter.Seq2[Hold, error] {
	return pages(q.After, func(after string) (List[Hold], error) {
		q.After = after
		return c.HoldPage(ctx, q)
	})
}

// ExportAudit returns the audit trail as lines of JSON, each an Operation. Reading them ends
// with io.EOF only if they are complete: an answer that was cut short ends with another error.
func (c *Caller) ExportAudit(ctx context.Context, q JournalQuery) (io.ReadCloser, error) {
	return c.export(ctx, "/v1/audit", q)
}

// ExportHolds is like ExportAudit; each line is a Hold.
func (c *Caller) ExportHolds(ctx context.Context, q JournalQuery) (io.ReadCloser, error) {
	return c.export(ctx, "/v1/holds", q)
}

func (c *Caller) export(ctx context.Context, path string, q JournalQuery) (io.ReadCloser, error) {
	accept := http.Header{"Accept": {LinesType}}
	response, err := c.open(ctx, request{method: "GET", path: path, query: q.values(), header: accept})
	if err != nil {
		return nil, err
	}
	return &lines{response.Body, addressOf(response)}, nil
}

// lines is an export that is being read. Its errors are those of a Caller.
type lines struct {
	io.ReadCloser
	server string
}

func (l *lines) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = unanswered(l.server, http.MethodGet, err)
	}
	return n, err
}
