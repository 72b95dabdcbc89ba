package v1

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// A Resource is the whole state of one resource.
type Resource struct {
	Namespace   string   `json:"namespace"`
	Resource    string   `json:"resource"`
	State       string   `json:"state"`
	Capacity    int      `json:"capacity"`          // the number of its slots
	Used        int      `json:"used"`              // the number of slots that are held
	Units       []Unit   `json:"units,omitempty"`   // the slots, if they have names
	Holding     int      `json:"holding,omitempty"` // the number of holders, if not all are listed
	Holders     []Lease  `json:"holders"`
	Waiting     int      `json:"waiting"`
	Queue       []Waiter `json:"queue,omitempty"`
	Last        *Ending  `json:"last"`
	AvailableAt *Time    `json:"available_at"`

	// Unacknowledged is an unclean end that has to be acknowledged before the next grant.
	Unacknowledged *Ending `json:"unacknowledged,omitempty"`

	Usual *Usual `json:"usual,omitempty"` // what was learned about it, if it is known well enough

	// Overlapping are leases on other names of its area that overlap this one, if a single resource is asked for.
	Overlapping []Lease `json:"overlapping,omitempty"`
}

// A Unit is a slot with a name.
type Unit struct {
	Name   string `json:"name"`
	Lease  string `json:"lease,omitempty"`  // the id of the lease that holds it
	Holder string `json:"holder,omitempty"` // who holds it, or held it last
	Rests  bool   `json:"rests,omitempty"`  // it is in its grace after an unclean end
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

// An AcknowledgeRequest confirms that somebody has looked at unclean ends of a resource.
type AcknowledgeRequest struct {
	Resource string `json:"resource"`
	Token    uint64 `json:"token"` // the newest that was seen: later ends stay unacknowledged
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// A ResourceQuery says which resources to list.
type ResourceQuery struct {
	Prefix string
	All    bool // also resources that are available
	Filter ResourceFilter
	After  string // Next of the previous page
	Limit  int    // of one page; 0: the server's default
}

// A ResourceFilter picks resources by their leases, and shows only the leases that it picks. In
// each of them but State, * stands for any text. All that is given has to match.
type ResourceFilter struct {
	Holder  string
	Session string
	Door    string
	State   string   // available, leased, breaking, broken or expired
	Labels  []string // key=value, or a key alone
}

func (f ResourceFilter) set(query url.Values) {
	setText(query, "holder", f.Holder)
	setText(query, "session", f.Session)
	setText(query, "door", f.Door)
	setText(query, "state", f.State)
	if len(f.Labels) > 0 {
		query["label"] = f.Labels
	}
}

// A ResourcePage is one page of resources, at a revision. To follow what happens to them, watch
// since the revision of the first page.
type ResourcePage struct {
	List[Resource]
	Revision uint64 `json:"-"`
}

// Resource returns one resource, with at most this number of its waiters; 0: the server's
// default.
func (c *Caller) Resource(ctx context.Context, path string, waiters int) (Resource, error) {
	return send[Resource](ctx, c, request{command: &readCommand{path, waiters}, method: "GET"})
}

// ResourcePage returns one page of resources.
func (c *Caller) ResourcePage(ctx context.Context, q ResourceQuery) (page ResourcePage, err error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	if q.All {
		query.Set("all", "true")
	}
	q.Filter.set(query)
	header, err := c.do(ctx, request{method: "GET", path: "/v1/resources", query: query}, &page.List)
	if err == nil {
		page.Revision, _ = strconv.ParseUint(header.Get(RevisionHeader), 10, 64)
	}
	return page, err
}

// Resources yields the resources of all pages. It ends after the first error.
func (c *Caller) Resources(ctx context.Context, q ResourceQuery) iter.Seq2[Resource, error] {
	return pages(q.After, func(after string) (List[Resource], error) {
		q.After = after
		page, err := c.ResourcePage(ctx, q)
		return page.List, err
	})
}

// Acknowledge confirms that somebody has looked at unclean ends of a resource.
func (c *Caller) Acknowledge(ctx context.Context, r AcknowledgeRequest, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "POST", path: "/v1/acknowledge", body: r, options: options})
	return err
}
