package v1

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// LinesType is what an export has: one JSON object on each line.
const LinesType = "application/x-ndjson"

// A Deed is one thing that was done, or refused, with who did it. Index and N are its
// place in the log; what was refused for lack of right has none.
type Deed struct {
	Index     uint64 `json:"index,omitempty"`
	N         uint32 `json:"n,omitempty"`
	At        Time   `json:"at"`
	Namespace string `json:"namespace"`
	Verb      string `json:"verb"`
	Outcome   string `json:"outcome"`           // "ok", "queued", or the code of the refusal
	Actor     string `json:"actor,omitempty"`   // as far as it was proven; else as it calls itself; "time" if nobody did it
	Address   string `json:"address,omitempty"` // of the other end of the connection
	Door      string `json:"door,omitempty"`
	Resource  string `json:"resource,omitempty"` // or the path of a record
	ID        string `json:"id,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`
	How       string `json:"how,omitempty"` // with what ended
	By        string `json:"by,omitempty"`  // the operator, as it calls itself
	Reason    string `json:"reason,omitempty"`
	Foreign   string `json:"foreign,omitempty"` // as in Lease
}

// A Hold is one holder's time with a resource, once it is over.
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
	WaitedMS  int64  `json:"waited_ms"` // in the queue, before
	How       string `json:"how"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`  // why it was broken
	Foreign   string `json:"foreign,omitempty"` // as in Lease
}

// A JournalQuery says which deeds or holds to show.
type JournalQuery struct {
	Resource string    // this one
	Prefix   string    // or those whose path begins so
	Holder   string    // that held, or asked to
	Actor    string    // of deeds alone
	Verb     string    // of deeds alone
	From     time.Time // zero: from the first that is known
	Until    time.Time // and before this; zero: up to now
	Oldest   bool      // the oldest first; else the newest
	After    string    // Next of the page before
	Limit    int       // of one page, or of an export; 0: what the server likes, or all
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

// AuditPage shows one page of what was done, and by whom.
func (c *Caller) AuditPage(ctx context.Context, q JournalQuery) (List[Deed], error) {
	return send[List[Deed]](ctx, c, request{method: "GET", path: "/v1/audit", query: q.values()})
}

// Audit goes through all pages. It ends after the first error.
func (c *Caller) Audit(ctx context.Context, q JournalQuery) iter.Seq2[Deed, error] {
	return pages(q.After, func(after string) (List[Deed], error) {
		q.After = after
		return c.AuditPage(ctx, q)
	})
}

// HoldPage shows one page of the holds that are over.
func (c *Caller) HoldPage(ctx context.Context, q JournalQuery) (List[Hold], error) {
	return send[List[Hold]](ctx, c, request{method: "GET", path: "/v1/holds", query: q.values()})
}

// Holds goes through all pages. It ends after the first error.
func (c *Caller) Holds(ctx context.Context, q JournalQuery) iter.Seq2[Hold, error] {
	return pages(q.After, func(after string) (List[Hold], error) {
		q.After = after
		return c.HoldPage(ctx, q)
	})
}

// ExportAudit returns what was done as lines of JSON, each a Deed. Reading them ends with
// io.EOF only if there are no more: an answer that was cut short ends with another error.
func (c *Caller) ExportAudit(ctx context.Context, q JournalQuery) (io.ReadCloser, error) {
	return c.export(ctx, "/v1/audit", q)
}

// ExportHolds is as ExportAudit, and each line is a Hold.
func (c *Caller) ExportHolds(ctx context.Context, q JournalQuery) (io.ReadCloser, error) {
	return c.export(ctx, "/v1/holds", q)
}

func (c *Caller) export(ctx context.Context, path string, q JournalQuery) (io.ReadCloser, error) {
	response, err := c.open(ctx, request{method: "GET", path: path, query: q.values(), header: http.Header{"Accept": {LinesType}}})
	if err != nil {
		return nil, err
	}
	return &lines{response.Body, addressOf(response)}, nil
}

// lines is an export on its way, whose errors are in our own words.
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
