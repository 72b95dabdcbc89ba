package client

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// The watch brings news early: a break, a message, the end of a lease. Nothing depends on it for
// safety, because the deadlines hold without it; see interventions.go.

// watch follows the events of all the client's sessions in one stream. Events that it may have
// missed are replaced by rechecks.
func (c *Client) watch(ctx context.Context) {
	at, tries := "", 0
	for ctx.Err() == nil {
		chosen := c.servers.Choose()
		query := v1.WatchQuery{
			Session: c.name, Since: at, Once: true,
			// The stream continues there after a break of the connection, so that no event is lost.
			Passed: func(position string) { at = position },
			Started: func(v1.Hello) {
				tries = 0
				if at == "" {
					c.watchComplete.Store(true)
					c.beginOnce.Do(func() { close(c.watchBegun) })
					// Leases that were granted earlier may have ended before the watch began.
					c.recheckAll()
				}
			},
		}
		err := c.consume(chosen.Watch(ctx, query))
		// The server no longer has the events since then: the watch begins again, and rechecks
		// everything.
		var gone *v1.Gone
		if errors.As(err, &gone) {
			at = ""
			c.watchComplete.Store(false)
		}
		if v1.Transient(err) {
			c.servers.Leave(chosen)
		}
		tries++
		backoff.Sleep(ctx, tries)
	}
}

// consume handles events until the stream ends.
func (c *Client) consume(events func(yield func(v1.Event, error) bool)) (failure error) {
	events(func(e v1.Event, err error) bool {
		if err != nil {
			failure = err
			return false
		}
		c.handleEvent(e)
		return true
	})
	return failure
}

// handleEvent applies an event to the session or hold that it is about.
func (c *Client) handleEvent(e v1.Event) {
	c.mu.Lock()
	s := c.sessions[e.Session]
	c.mu.Unlock()
	if s == nil {
		return
	}
	if e.Kind == leasehold.SessionEnded.String() {
		s.endAs(&LostError{How: howOf(e.How), By: e.By, Reason: e.Reason})
		return
	}
	h := s.hold(e.ID)
	if h == nil {
		s.followRename(e)
		return
	}
	switch e.Kind {
	case leasehold.Asked.String():
		h.deliver(Message{By: e.By, Text: e.Reason})
	case leasehold.BreakSet.String():
		h.deliver(Message{By: e.By, Text: e.Reason, Break: true, Until: until(e)})
		s.queueRecheck(h)
	case leasehold.Ended.String():
		h.lose(&LostError{How: howOf(e.How), By: e.By, Reason: e.Reason})
	case leasehold.Changed.String():
		h.handleTaken(e)
	}
}

func until(e v1.Event) time.Time {
	if e.Until == nil {
		return time.Time{}
	}
	return e.Until.Time
}

// handleTaken ends the hold if somebody else gave its lease to another holder.
func (h *Hold) handleTaken(e v1.Event) {
	h.mu.Lock()
	// An event with the token we have, or an older one, tells of something that we know.
	ours := h.extra != nil && h.extra.changing || e.Token <= h.token.Load()
	h.mu.Unlock()
	if !ours {
		h.lose(&LostError{How: leasehold.IDChanged, By: e.Holder})
	}
}

// followRename follows a lease to an id that somebody else gave it. The token says which hold it
// was, since a session can hold many slots of one resource. If the holder was changed too, the
// token is new: then all holds that it may have been are rechecked.
func (s *Session) followRename(e v1.Event) {
	if e.Kind != leasehold.Changed.String() {
		return
	}
	var found *Hold
	var suspects []*Hold
	s.mu.Lock()
	for _, h := range s.holds {
		token := h.token.Load()
		switch {
		case h.resource != e.Resource || token == 0:
		case token == e.Token:
			found = h
		case token < e.Token:
			suspects = append(suspects, h)
		}
	}
	// Under both ids until the old one is removed: events of either may still arrive.
	if found != nil {
		s.holds[e.ID] = found
	}
	s.mu.Unlock()
	if found == nil {
		s.queueRecheck(suspects...)
		return
	}
	found.mu.Lock()
	old := found.id
	found.id = e.ID
	found.mu.Unlock()
	if old != e.ID {
		s.remove(old)
	}
}
