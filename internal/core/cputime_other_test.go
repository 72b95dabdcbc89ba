//go:build !linux

package core_test

import "time"

var cpuBegan = time.Now()

func cpuTime() time.Duration { return time.Since(cpuBegan) }
