package client

import (
	"context"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Message is what somebody said to the holder.
type Message struct {
	By    string
	Text  string
	Break bool // an operator will break the lease at Until; Text is why
	Until time.Time
}

// Messages are what is said to the holder: by ask, and by a break that is announced.
// The channel is never closed. What nobody reads is dropped, the oldest first.
func (h *Hold) Messages() <-chan Message { return h.inbox() }

func (h *Hold) inbox() chan Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.extraLocked()
	if m.messages == nil {
		m.messages = make(chan Message, 16)
	}
	return m.messages
}

// onMessage has messages told to a function, which must not block, those too that have
// come already.
func (h *Hold) onMessage(heard func(Message)) {
	h.mu.Lock()
	m := h.extraLocked()
	m.onMessage = heard
	waiting := len(m.messages) > 0
	h.mu.Unlock()
	if waiting {
		heard(<-m.messages)
	}
}

// deliver puts a message in the box, and the oldest out if there is no room.
func (h *Hold) deliver(m Message) {
	h.mu.Lock()
	heard := h.extraLocked().onMessage
	h.mu.Unlock()
	if heard != nil {
		heard(m)
		return
	}
	box := h.inbox()
	for {
		select {
		case box <- m:
			return
		default:
		}
		select {
		case <-box:
		default:
		}
	}
}

// Ask sends whoever holds a resource a message, which arrives in its Hold.Messages.
func (c *Client) Ask(ctx context.Context, resource, message string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	key := newID() // a message that is sent twice is heard once
	return c.servers.Retry(ctx, callTimeout/3, func(ctx context.Context, w *v1.Caller) error {
		_, err := w.Ask(ctx, v1.AskRequest{Resource: resource, Message: message, By: c.config.Holder}, v1.WithKey(key))
		return err
	})
}
