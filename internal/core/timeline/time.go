// Package timeline is cluster time, and an order of what is due in it. It reads no clock: time is
// what a caller says it is.
package timeline

import (
	"strings"
	"time"
)

// Time is cluster time: nanoseconds that the cluster has counted. It never goes
// back and never runs ahead of real time. Zero means "no moment".
type Time int64

// Add returns the moment that is d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Text writes a duration as people do: 5m, not 5m0s.
func Text(d time.Duration) string {
	d = d.Round(time.Millisecond)
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
