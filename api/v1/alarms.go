package v1

import (
	"context"
	"iter"
	"net/url"
)

// An Alarm is something that somebody should look at.
type Alarm struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Resource  string `json:"resource,omitempty"`
	ID        string `json:"id,omitempty"` // of the lease
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token,omitempty"`
	Session   string `json:"session,omitempty"`

	// Occurrence is another one each time it happens. Acknowledging the alarm names it.
	Occurrence uint64 `json:"occurrence,omitempty"`

	Since Time   `json:"since"` // when it was raised
	Last  Time   `json:"last"`  // when it happened last
	Count int    `json:"count"` // how often since it was raised
	Text  string `json:"text"`  // what happened, in a sentence
}

// An AlarmQuery says which alarms to list.
type AlarmQuery struct {
	Prefix string // of the resource
	Kind   string // empty: any
	After  string // Next of the previous page
	Limit  int    // of one page; 0: the server's default
}

// AlarmPage returns one page of the active alarms, the latest first.
func (c *Caller) AlarmPage(ctx context.Context, q AlarmQuery) (List[Alarm], error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "kind", q.Kind)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	return send[List[Alarm]](ctx, c, request{method: "GET", path: "/v1/alarms", query: query})
}

// Alarms yields the alarms of all pages. It ends after the first error.
func (c *Caller) Alarms(ctx context.Context, q AlarmQuery) iter.Seq2[Alarm, error] {
	return pages(q.After, func(after string) (List[Alarm], error) {
		q.After = after
		return c.AlarmPage(ctx, q)
	})
}

// An AcknowledgeAlarmRequest clears an alarm, as it was listed, that somebody has looked at.
type AcknowledgeAlarmRequest struct {
	Kind       string `json:"kind"`
	Resource   string `json:"resource,omitempty"`
	ID         string `json:"id,omitempty"`
	Session    string `json:"session,omitempty"`
	Occurrence uint64 `json:"occurrence"`
	By         string `json:"by,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// AcknowledgeAlarm clears an alarm. If it happened again since it was listed, the call is refused; if
// it is gone, the call succeeds.
func (c *Caller) AcknowledgeAlarm(ctx context.Context, r AcknowledgeAlarmRequest, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "POST", path: "/v1/alarms/acknowledge", body: r, options: options})
	return err
}
