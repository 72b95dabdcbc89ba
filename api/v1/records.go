package v1

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"
)

// Headers of writes to records. A write is fenced by a lease that must be alive and, if both
// are given, have the token; or by a token alone, which is compared with the record's.
const (
	LeaseHeader = "Leasehold-Lease"
	TokenHeader = "Leasehold-Token"
)

// A Record is a named value.
type Record struct {
	Namespace string  `json:"namespace"`
	Path      string  `json:"path"`
	Value     []byte  `json:"value,omitempty"` // in base64; absent if only keys were asked for, and after a put
	Text      *string `json:"text,omitempty"`  // the same as text, if it is text: see IsText
	Large     *Large  `json:"large,omitempty"` // instead of a large value: read it with OpenRecord
	Create    uint64  `json:"create_revision"`
	Mod       uint64  `json:"mod_revision"`
	Version   uint64  `json:"version"`           // 1 when it is created, one more with each change
	Session   string  `json:"session,omitempty"` // the session it ends with
	Lease     string  `json:"lease,omitempty"`   // the id of the lease, or of the wait for one, that it stands for
	Token     uint64  `json:"token,omitempty"`   // the largest that it was written with
}

// IsText reports whether a value is shown as text too: it is UTF-8, without control characters
// other than tab, newline and carriage return.
func IsText(value string) bool {
	if !utf8.ValidString(value) {
		return false
	}
	for i := range len(value) {
		if c := value[i]; c == 0x7f || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// A Large names a value that is too large for JSON.
type Large struct {
	SHA256 string `json:"sha256"` // of its bytes, in hexadecimal digits
	Size   int64  `json:"size"`
}

// A RecordVersion describes a current or former version of a record, without its value.
type RecordVersion struct {
	Revision uint64 `json:"revision"` // the one that wrote it, which names the version
	Create   uint64 `json:"create_revision"`
	Version  uint64 `json:"version"`           // 1 when the record is created, one more with each change
	Size     int64  `json:"size"`              // of the value, in bytes
	SHA256   string `json:"sha256,omitempty"`  // of a large value, in hexadecimal digits
	Written  *Time  `json:"written,omitempty"` // absent if the record kept no versions then
	Holder   string `json:"holder,omitempty"`  // who wrote it, if it was written under a lease
	Session  string `json:"session,omitempty"`
	Token    uint64 `json:"token,omitempty"`
	Current  bool   `json:"current,omitempty"` // the current version
	Deleted  bool   `json:"deleted,omitempty"` // the record was deleted after it
}

// A VersionPage is one page of a record's versions, newest first.
type VersionPage struct {
	Items []RecordVersion `json:"items"`
	Next  string          `json:"next,omitempty"`
	Keep  int             `json:"keep,omitempty"` // how many former versions the record keeps
}

// A RecordPage is one page of records, as of a revision. To read the next page as of the same
// revision, name it in the query.
type RecordPage struct {
	Items    []Record `json:"items"`
	Next     string   `json:"next,omitempty"`
	Count    int      `json:"count,omitempty"` // of all records, if asked for
	Revision uint64   `json:"revision"`
}

// Deleted is how many records a request deleted, and the revision after it.
type Deleted struct {
	Deleted  int    `json:"deleted"`
	Revision uint64 `json:"revision"`
}

// A Fence lets a write through only while the writer's lease is valid.
type Fence struct {
	Lease string // must be alive
	Token uint64 // the lease's token; without a lease, at least the largest that has written
}

// A PutRequest creates or changes a record.
type PutRequest struct {
	Path       string
	Value      []byte
	Body       io.Reader // instead of Value: a stream of up to 256 MiB
	Version    uint64    // instead of Value: the version to go back to
	Keep       int       // how many former versions to keep from now on; 0: as before, -1: none
	Session    string    // the record ends with this session
	IfRevision uint64    // only if this revision changed it last
	IfAbsent   bool      // only if it does not exist
	Fence      Fence
}

// A DeleteRequest deletes one record by its path, or many by a prefix or a range.
type DeleteRequest struct {
	Path       string
	Prefix     string
	From, To   string
	IfRevision uint64 // with Path: only if that changed it last
	Fence      Fence
}

// A RecordQuery says which records to list.
type RecordQuery struct {
	Prefix   string
	From, To string // [From, To), instead of a prefix
	Keys     bool   // without values
	Count    bool   // also return how many there are in all
	Revision uint64 // as of this revision; 0: the newest
	After    string // Next of the previous page
	Limit    int    // of one page; 0: the server's default
}

func (f Fence) set(h http.Header) {
	if f.Lease != "" {
		h.Set(LeaseHeader, f.Lease)
	}
	if f.Token != 0 {
		h.Set(TokenHeader, strconv.FormatUint(f.Token, 10))
	}
}

// Record returns one record, as of a revision; 0: the newest.
func (c *Caller) Record(ctx context.Context, path string, revision uint64) (Record, error) {
	return send[Record](ctx, c, request{command: &getCommand{path, revision}, method: "GET"})
}

// PutRecord creates or changes a record.
func (c *Caller) PutRecord(ctx context.Context, r PutRequest, options ...Option) (Record, error) {
	put := request{command: &putCommand{r}, method: "PUT", stream: r.Body, options: options}
	return send[Record](ctx, c, put)
}

// OpenRecord returns a stream of a record's value, however large. version names a former one; 0:
// the current one. Close it when done.
func (c *Caller) OpenRecord(ctx context.Context, path string, version uint64) (io.ReadCloser, error) {
	query := url.Values{}
	if version != 0 {
		query.Set("version", strconv.FormatUint(version, 10))
	}
	response, err := c.open(ctx, request{
		method: "GET", path: "/v1/records/" + escapePath(path), query: query,
		header: http.Header{"Accept": {"application/octet-stream"}},
	})
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// RecordAt returns one version of a record; 0: the current one.
func (c *Caller) RecordAt(ctx context.Context, path string, version uint64) (Record, error) {
	query := url.Values{}
	if version != 0 {
		query.Set("version", strconv.FormatUint(version, 10))
	}
	return send[Record](ctx, c, request{method: "GET", path: "/v1/records/" + escapePath(path), query: query})
}

// Versions returns one page of a record's versions, newest first. after is Next of the previous
// page; limit 0 is the server's default.
func (c *Caller) Versions(ctx context.Context, path, after string, limit int) (VersionPage, error) {
	query := url.Values{}
	setText(query, "after", after)
	setNumber(query, "limit", limit)
	return send[VersionPage](ctx, c, request{method: "GET", path: "/v1/versions/" + escapePath(path), query: query})
}

// DeleteRecord deletes one record, or those of a prefix or range.
func (c *Caller) DeleteRecord(ctx context.Context, r DeleteRequest, options ...Option) (Deleted, error) {
	return send[Deleted](ctx, c, request{command: &deleteCommand{r}, method: "DELETE", options: options})
}

// RecordPage returns one page of records.
func (c *Caller) RecordPage(ctx context.Context, q RecordQuery) (RecordPage, error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "from", q.From)
	setText(query, "to", q.To)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	setRevision(query, q.Revision)
	for name, is := range map[string]bool{"keys": q.Keys, "count": q.Count} {
		if is {
			query.Set(name, "true")
		}
	}
	return send[RecordPage](ctx, c, request{method: "GET", path: "/v1/records", query: query})
}

// Records yields the records of all pages, as of the revision of the first. It ends after the
// first error.
func (c *Caller) Records(ctx context.Context, q RecordQuery) iter.Seq2[Record, error] {
	return pages(q.After, func(after string) (List[Record], error) {
		q.After = after
		page, err := c.RecordPage(ctx, q)
		q.Revision = page.Revision
		return List[Record]{Items: page.Items, Next: page.Next}, err
	})
}

func setExpected(h http.Header, revision uint64) {
	if revision != 0 {
		h.Set("If-Match", strconv.Quote(strconv.FormatUint(revision, 10)))
	}
}

func setRevision(query url.Values, revision uint64) {
	if revision != 0 {
		query.Set("revision", strconv.FormatUint(revision, 10))
	}
}
