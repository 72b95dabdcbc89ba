package kernel

import (
	"fmt"
	"testing"
)

// TestRenewalsAreNotPaidForAtOnce renews very many things and then asks what is due: each
// question puts right only so many of them, and says no until it is sure.
func TestRenewalsAreNotPaidForAtOnce(t *testing.T) {
	s := newState()
	sp := s.newSpace("a")
	timers := make([]*timer, 5*maxRight)
	for i := range timers {
		timers[i] = newTimer(dueClaim, sp, fmt.Sprint(i))
		s.due.Set(timers[i], 10)
	}
	for _, timer := range timers[1:] {
		s.due.Set(timer, 1000*lookAhead)
	}
	s.due.Set(timers[0], 20)
	questions := 1
	for !s.DueBy(20) {
		questions++
		if at, ok := s.Due(); !ok || at > 20 {
			t.Fatalf("it says no, and to look again at %d", at)
		}
	}
	if questions != 5 && questions != 6 {
		t.Errorf("%d questions for %d renewals", questions, len(timers))
	}
	if at, ok := s.Due(); !ok || at != 20 {
		t.Errorf("due at %d", at)
	}
}
