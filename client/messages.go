package client

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A Message was sent to the holder by somebody else.
type Message struct {
	By    string
	Text  string
	Break bool // an operator will break the lease at Until; Text is why
	Until time.Time
}

// Messages returns the messages to the holder: those of Ask, and announcements of a break. The
// channel is never closed. If nobody reads them, the oldest are dropped.
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

// onMessage has fn called with messages, also those that have come already. fn must not block.
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

// deliver puts a message into the channel, and drops the oldest if there is no room.
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
		// The newest matters most: it may announce a break.
		case <-box:
		default:
		}
	}
}

// Ask sends a message to the holder of a resource, where Hold.Messages has it.
func (c *Client) Ask(ctx context.Context, resource, message string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	messenger, err := power[store.Messenger](c, store.MessagePower)
	if err != nil {
		return err
	}
	// With a key, an attempt that is repeated is delivered once.
	m := store.Message{Resource: resource, Text: message, By: c.config.Holder, Key: newID()}
	return c.retry(ctx, callTimeout/3, func(ctx context.Context) error { return messenger.Ask(ctx, m) })
}
