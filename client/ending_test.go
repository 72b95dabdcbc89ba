package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
)

type stoppedClock struct{}

func (stoppedClock) Now() time.Duration { return time.Hour }

// TestAHoldWhoseSessionIsBeingEnded: a session ends its holds one after the other, and one
// that was not reached yet must not say that it is valid.
func TestAHoldWhoseSessionIsBeingEnded(t *testing.T) {
	s := &Session{client: &Client{clock: stoppedClock{}}, ended: &LostError{How: leasehold.SessionExpired, Reason: "gone"}}
	s.deadline.Store(-1)
	h := &Hold{session: s, resource: "r", values: context.Background()}
	h.token.Store(7)
	if h.Valid() || h.Token() != 0 || h.Context().Err() == nil {
		t.Error("it is valid")
	}
	var lost *LostError
	if err := h.Err(); !errors.Is(err, ErrExpired) || !errors.As(err, &lost) || lost.Reason != "gone" {
		t.Errorf("it was lost by %v", err)
	}
}
