package kernel

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

// TestClaimStaysSmall: there are millions of claims, and the next size that the
// allocator has is an eighth more.
func TestClaimStaysSmall(t *testing.T) {
	if size := unsafe.Sizeof(Claim{}); size > 144 {
		t.Errorf("a claim has %d bytes", size)
	}
	if size := unsafe.Sizeof(Session{}); size > 128 {
		t.Errorf("a session has %d bytes", size)
	}
}

// TestUsualIsBounded: however much happens, what is remembered stays as large.
func TestUsualIsBounded(t *testing.T) {
	const most, bytes = 64, 4 // leases, and what is kept of each
	s := newState()
	for i := range 3 * most {
		id := fmt.Sprint(i)
		apply(t, s, time.Duration(2*i)*time.Second, acquireNow(id, Request{}))
		apply(t, s, time.Duration(2*i+1)*time.Second, &Release{Namespace: "default", ID: id})
	}
	u := s.space("default").usual("printer")
	if len(u.Holds) != most*bytes || u.WellFormed() != nil {
		t.Errorf("%d bytes are remembered: %v", len(u.Holds), u.WellFormed())
	}
	if a := s.View(0).Status("default", "printer", 0); a.Usual.Holds != most || a.Usual.HoldP50 != time.Second {
		t.Errorf("%+v", a.Usual)
	}
}
