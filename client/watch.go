package client

import (
	"context"
	"errors"
	"iter"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

// The watch brings news early: a break, a message, the end of a lease. Nothing depends on it for
// safety, because the deadlines hold without it; see interventions.go.

// startWatch watches the client's sessions, if the store has events and sessions.
func (c *Client) startWatch() {
	watcher, ok := c.store.(store.Watcher)
	if ok && c.sessionful != nil {
		c.spawn(func() { c.watch(c.context, watcher) })
	}
}

// watch follows the events of all the client's sessions in one stream. Events that it may have
// missed are replaced by rechecks.
func (c *Client) watch(ctx context.Context, watcher store.Watcher) {
	at, tries := "", 0
	for ctx.Err() == nil {
		query := store.WatchQuery{
			Session: c.name, Since: at, Interventions: true,
			// The stream continues there after a break of the connection, so that no event is lost.
			Passed: func(position string) { at = position },
			Started: func() {
				tries = 0
				if at == "" {
					c.watchComplete.Store(true)
					c.beginOnce.Do(func() { close(c.watchBegun) })
					// Leases that were granted earlier may have ended before the watch began.
					c.recheckAll()
				}
			},
		}
		err := c.consume(watcher.Watch(ctx, query))
		// The store no longer has the events since then: the watch begins again, and rechecks
		// everything.
		if errors.Is(err, leasehold.ErrLost) {
			at = ""
			c.watchComplete.Store(false)
		}
		tries++
		backoff.Sleep(ctx, tries)
	}
}

// consume handles events until the stream ends.
func (c *Client) consume(events iter.Seq2[leasehold.Event, error]) (failure error) {
	events(func(e leasehold.Event, err error) bool {
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
func (c *Client) handleEvent(e leasehold.Event) {
	c.mu.Lock()
	s := c.sessions[e.Session]
	c.mu.Unlock()
	if s == nil {
		return
	}
	if e.Kind == leasehold.SessionEnded {
		s.endAs(&LostError{How: e.How, By: e.By, Reason: e.Reason})
		return
	}
	h := s.hold(e.ID)
	if h == nil {
		s.followRename(e)
		return
	}
	switch e.Kind {
	case leasehold.Asked:
		h.deliver(Message{By: e.By, Text: e.Reason})
	case leasehold.BreakSet:
		h.deliver(Message{By: e.By, Text: e.Reason, Break: true, Until: e.Until})
		s.queueRecheck(h)
	case leasehold.Ended:
		h.lose(&LostError{How: e.How, By: e.By, Reason: e.Reason})
	case leasehold.Changed:
		h.handleTaken(e)
	}
}

// handleTaken ends the hold if somebody else gave its lease to another holder.
func (h *Hold) handleTaken(e leasehold.Event) {
	h.mu.Lock()
	// An event with the token we have, or an older one, tells of something that we know.
	ours := h.extra != nil && h.extra.changing || uint64(e.Token) <= h.token.Load()
	h.mu.Unlock()
	if !ours {
		h.lose(&LostError{How: leasehold.IDChanged, By: e.Holder})
	}
}

// followRename follows a lease to an id that somebody else gave it. The token says which hold it
// was, since a session can hold many slots of one resource. If the holder was changed too, the
// token is new: then all holds that it may have been are rechecked.
func (s *Session) followRename(e leasehold.Event) {
	if e.Kind != leasehold.Changed {
		return
	}
	var found *Hold
	var suspects []*Hold
	s.mu.Lock()
	for _, h := range s.holds {
		token := leasehold.Token(h.token.Load())
		switch {
		case h.Resource() != e.Resource || token == 0:
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
