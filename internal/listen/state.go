package listen

import (
	"context"
	"sync/atomic"
)

// A State is the phase that a server is in: starting, open or stopping. All ports of a
// server share one.
type State struct {
	opened   atomic.Bool
	stopping context.Context
	stop     context.CancelFunc
}

// NewState returns the state of a server that is starting.
func NewState() *State {
	s := &State{}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// Open lets requests in. It may be called once or more.
func (s *State) Open() { s.opened.Store(true) }

// Stop begins the end: new requests are refused from now on. It is idempotent.
func (s *State) Stop() { s.stop() }

// Starting reports whether requests cannot be answered yet.
func (s *State) Starting() bool { return !s.opened.Load() }

// Stopping returns a context that is done when the server drains.
func (s *State) Stopping() context.Context { return s.stopping }

// What clients are told while a server cannot take their requests.
const (
	StartingMessage = "the server is starting: it reads its data, or waits for others of its cluster"
	StoppingMessage = "the server is stopping: try again"
)
