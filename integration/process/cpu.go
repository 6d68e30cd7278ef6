package process

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the number of the clock on which Linux counts the processor time of a process, to
// the nanosecond, ended threads included: what its scheduler granted. clock_getcpuclockid(3) makes
// these numbers the same way.
func Clock(pid int) int32 {
	const scheduler = 2
	return int32(^pid<<3 | scheduler)
}

// CPU reads the processor time of a process.
func CPU(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(Clock(pid), &ts); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
