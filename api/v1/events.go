package v1

import (
	"context"
	"net/url"
)

// An Event is one thing that happened. In a watch its id is its Position.
type Event struct {
	Namespace string `json:"namespace"`
	Revision  uint64 `json:"revision"`
	N         uint32 `json:"n"`
	Kind      string `json:"kind"`
	How       string `json:"how,omitempty"`
	At        Time   `json:"at"`
	Until     *Time  `json:"until,omitempty"`
	Resource  string `json:"resource,omitempty"`
	ID        string `json:"id,omitempty"`
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Alarm     string `json:"alarm,omitempty"`    // the kind of an alarm that was raised or cleared
	Version   uint64 `json:"version,omitempty"`  // of the record that was put
	Value     []byte `json:"value,omitempty"`    // of the record that was put, if asked for
	Previous  []byte `json:"previous,omitempty"` // the value before, if asked for and there was one

	Large         *Large `json:"large,omitempty"`          // instead of a large value
	PreviousLarge *Large `json:"previous_large,omitempty"` // instead of a large previous value

	Foreign string `json:"foreign,omitempty"` // as in Lease
}

// An EventPage is one page of the known events, newest last. Next leads to the events before
// them. Gone reports that there were earlier ones, which are no longer known.
type EventPage struct {
	Items []Event `json:"items"`
	Next  string  `json:"next,omitempty"`
	Gone  bool    `json:"gone,omitempty"`
}

// A HistoryQuery says which events to list.
type HistoryQuery struct {
	Resource string // empty: all events of the namespace
	Before   string // Next of the previous page
	Limit    int    // 0: the server's default
}

// History returns one page of events, newest last.
func (c *Caller) History(ctx context.Context, q HistoryQuery) (EventPage, error) {
	query := url.Values{}
	setText(query, "resource", q.Resource)
	setText(query, "before", q.Before)
	setNumber(query, "limit", q.Limit)
	return send[EventPage](ctx, c, request{method: "GET", path: "/v1/history", query: query})
}

// Position returns the position of the event.
func (e Event) Position() Position { return Position{e.Revision, e.N} }
