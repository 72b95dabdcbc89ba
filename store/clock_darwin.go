package store

import "golang.org/x/sys/unix"

// Go's clock there is CLOCK_UPTIME_RAW, which stops in suspend. This one does not.
const clockID = unix.CLOCK_MONOTONIC
