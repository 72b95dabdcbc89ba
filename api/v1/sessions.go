package v1

import (
	"context"
	"iter"
	"net/url"
)

// A SessionRequest opens a session.
type SessionRequest struct {
	ID     string            `json:"id,omitempty"` // empty: the server makes one
	TTL    TTL               `json:"ttl,omitzero"` // absent: 30s; a session always has one
	Labels map[string]string `json:"labels,omitempty"`
}

// A Session is a promise of liveness: what is bound to it ends with it.
type Session struct {
	Namespace   string            `json:"namespace"`
	ID          string            `json:"id"`
	TTL         Duration          `json:"ttl"`
	Expires     Time              `json:"expires"`
	RemainingMS int64             `json:"remaining_ms"`
	Opened      Time              `json:"opened"`
	Claims      int               `json:"claims"` // leases, waiters and records bound to it
	Labels      map[string]string `json:"labels,omitempty"`
	Warning     string            `json:"warning,omitempty"`

	// Interventions counts what others did to the session's claims: how often they broke,
	// ended or changed one. Intervened has the ids of the last of those claims, at most 256,
	// oldest first.
	Interventions *uint64  `json:"interventions,omitempty"`
	Intervened    []string `json:"intervened,omitempty"`
}

// OpenSession opens a session.
func (c *Caller) OpenSession(ctx context.Context, r SessionRequest, options ...Option) (Session, error) {
	return send[Session](ctx, c, request{
		command: &openCommand{r}, method: "POST", options: options, idempotent: r.ID != "",
	})
}

// RenewSession renews a session, and everything that is bound to it, for its TTL from now.
func (c *Caller) RenewSession(ctx context.Context, id string) (Session, error) {
	return send[Session](ctx, c, request{command: &renewSessionCommand{id: id}, method: "POST", idempotent: true})
}

// RenewSessionSince renews a session, and has only interventions named after the given count.
func (c *Caller) RenewSessionSince(ctx context.Context, id string, interventions uint64) (Session, error) {
	command := &renewSessionCommand{id: id, seen: interventions, asks: true}
	return send[Session](ctx, c, request{command: command, method: "POST", idempotent: true})
}

// A SessionQuery says which sessions to list.
type SessionQuery struct {
	Prefix string // of their ids
	After  string // Next of the previous page
	Limit  int    // of one page; 0: the server's default
}

// Sessions yields the sessions of all pages, in the order of their ids. It ends after the first
// error.
func (c *Caller) Sessions(ctx context.Context, q SessionQuery) iter.Seq2[Session, error] {
	return pages(q.After, func(after string) (List[Session], error) {
		query := url.Values{}
		setText(query, "prefix", q.Prefix)
		setText(query, "after", after)
		setNumber(query, "limit", q.Limit)
		return send[List[Session]](ctx, c, request{method: "GET", path: "/v1/sessions", query: query})
	})
}

// Session returns a session.
func (c *Caller) Session(ctx context.Context, id string) (Session, error) {
	return send[Session](ctx, c, request{method: "GET", path: "/v1/sessions/" + escape(id)})
}

// AbandonSession ends the session of a holder that died, so that others need not wait for its TTL.
// What it held ends uncleanly, as if the session had expired: a grace or an acknowledgement that is
// due after such an end is due here too. Nothing of the holder may be left that could still work
// under its leases.
func (c *Caller) AbandonSession(ctx context.Context, id string, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{
		method: "DELETE", path: "/v1/sessions/" + escape(id), query: url.Values{"abandon": {"true"}},
		options: options, idempotent: true,
	})
	return err
}

// CloseSession ends a session and releases everything that is bound to it.
func (c *Caller) CloseSession(ctx context.Context, id string, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{
		command: &closeSessionCommand{id}, method: "DELETE", options: options, idempotent: true,
	})
	return err
}
