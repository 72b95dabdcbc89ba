//go:build !linux

package testtime

import "time"

var began = time.Now()

// CPU returns a time that goes on, also while others run.
func CPU() time.Duration { return time.Since(began) }
