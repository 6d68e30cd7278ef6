package lease

import "golang.org/x/sys/unix"

// bootClock runs on in suspension, where that of Linux with this name stands still: clock_gettime(3).
const bootClock = unix.CLOCK_MONOTONIC
