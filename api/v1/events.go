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
	Value     []byte `json:"value,omitempty"`    // of the record that was put, where values were asked for
	Previous  []byte `json:"previous,omitempty"` // the value before, where that was asked for and there was one

	Large         *Large `json:"large,omitempty"`          // instead of value, if that is a large one
	PreviousLarge *Large `json:"previous_large,omitempty"` // instead of previous

	Foreign string `json:"foreign,omitempty"` // as in Lease
}

// An EventPage is some of the events that are still known, newest last. Next leads
// to those before them. Gone says that there were earlier ones, which nobody knows
// any more.
type EventPage struct {
	Items []Event `json:"items"`
	Next  string  `json:"next,omitempty"`
	Gone  bool    `json:"gone,omitempty"`
}

// A HistoryQuery says which events to show.
type HistoryQuery struct {
	Resource string // empty: everything that happened in the namespace
	Before   string // Next of the page before
	Limit    int    // 0: what the server likes
}

// History shows what happened, newest last.
func (c *Caller) History(ctx context.Context, q HistoryQuery) (EventPage, error) {
	query := url.Values{}
	setText(query, "resource", q.Resource)
	setText(query, "before", q.Before)
	setNumber(query, "limit", q.Limit)
	return send[EventPage](ctx, c, request{method: "GET", path: "/v1/history", query: query})
}

// Position is where the event stands.
func (e Event) Position() Position { return Position{e.Revision, e.N} }
