package v1

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// A Resource is everything there is to see of one resource.
type Resource struct {
	Namespace   string   `json:"namespace"`
	Resource    string   `json:"resource"`
	State       string   `json:"state"`
	Capacity    int      `json:"capacity"`          // its slots
	Used        int      `json:"used"`              // of them, those that are taken
	Units       []Unit   `json:"units,omitempty"`   // the slots, if they have names
	Holding     int      `json:"holding,omitempty"` // how many hold it, if those are more than are shown
	Holders     []Lease  `json:"holders"`
	Waiting     int      `json:"waiting"`
	Queue       []Waiter `json:"queue,omitempty"`
	Last        *Ending  `json:"last"`
	AvailableAt *Time    `json:"available_at"`

	// Unacknowledged is an unclean end that somebody has to acknowledge first.
	Unacknowledged *Ending `json:"unacknowledged,omitempty"`

	Usual *Usual `json:"usual,omitempty"` // what was learned of it, if that is enough
}

// A Unit is a slot with a name.
type Unit struct {
	Name   string `json:"name"`
	Lease  string `json:"lease,omitempty"`  // the id of the lease that has it
	Holder string `json:"holder,omitempty"` // who has it, or had it last
	Rests  bool   `json:"rests,omitempty"`  // nobody can have it yet, after an unclean end
}

// An Ending is how the last lease of a resource ended.
type Ending struct {
	ID     string `json:"id"`
	Holder string `json:"holder"`
	Token  uint64 `json:"token"`
	How    string `json:"how"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	At     Time   `json:"at"`

	Foreign string `json:"foreign,omitempty"` // as in Lease
}

// An AcknowledgeRequest says that unclean ends on a resource have been looked at.
type AcknowledgeRequest struct {
	Resource string `json:"resource"`
	Token    uint64 `json:"token"` // the newest that was seen: later ends are not meant
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// A ResourceQuery says which resources to list.
type ResourceQuery struct {
	Prefix string
	All    bool   // also those that are merely available
	After  string // Next of the page before
	Limit  int    // of one page; 0: what the server likes
}

// A ResourcePage is one page of resources, as of a revision. To follow what
// happens to them, watch since the revision of the first page.
type ResourcePage struct {
	List[Resource]
	Revision uint64 `json:"-"`
}

// Resource shows one resource with up to so many of its waiters; 0 for as many as
// the server likes.
func (c *Caller) Resource(ctx context.Context, path string, waiters int) (Resource, error) {
	query := url.Values{}
	setNumber(query, "queue", waiters)
	return send[Resource](ctx, c, request{method: "GET", path: "/v1/resources/" + escapePath(path), query: query})
}

// ResourcePage lists one page.
func (c *Caller) ResourcePage(ctx context.Context, q ResourceQuery) (page ResourcePage, err error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	if q.All {
		query.Set("all", "true")
	}
	header, err := c.do(ctx, request{method: "GET", path: "/v1/resources", query: query}, &page.List)
	if err == nil {
		page.Revision, _ = strconv.ParseUint(header.Get(RevisionHeader), 10, 64)
	}
	return page, err
}

// Resources goes through all pages. It ends after the first error.
func (c *Caller) Resources(ctx context.Context, q ResourceQuery) iter.Seq2[Resource, error] {
	return pages(q.After, func(after string) (List[Resource], error) {
		q.After = after
		page, err := c.ResourcePage(ctx, q)
		return page.List, err
	})
}

// Acknowledge says that unclean ends on a resource have been looked at.
func (c *Caller) Acknowledge(ctx context.Context, r AcknowledgeRequest, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "POST", path: "/v1/acknowledge", body: r, options: options})
	return err
}
