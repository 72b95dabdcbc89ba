// Package timeline is cluster time, and an order of what is due in it. It reads no clock: time is
// what a caller says it is.
package timeline

import "time"

// Time is cluster time: nanoseconds that the cluster has counted. It never goes
// back and never runs ahead of real time. Zero means "no moment".
type Time int64

// Add returns the moment that is d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }
