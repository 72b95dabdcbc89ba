package store

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// The clock counts what the machine slept, too: it is the uptime, and not the time that
// the processor ran.
func TestTheClockIsTheUptime(t *testing.T) {
	c := SystemClock()
	if _, ok := c.(sleepClock); !ok {
		t.Skip("left out: the holder's clock needs CLOCK_BOOTTIME")
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skipf("left out: the holder's clock is compared with /proc/uptime: %v", err)
	}
	var seconds float64
	if _, err := fmt.Sscan(string(text), &seconds); err != nil {
		t.Fatal(err)
	}
	uptime := time.Duration(seconds * float64(time.Second))
	if now := c.Now(); now < uptime-time.Second || now > uptime+5*time.Second {
		t.Errorf("the clock says %v, and the machine is up for %v", now, uptime)
	}
	for last := c.Now(); ; {
		now := c.Now()
		if now < last {
			t.Fatalf("the clock went back from %v to %v", last, now)
		}
		if now > last+time.Millisecond {
			return
		}
	}
}
