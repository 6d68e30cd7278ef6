package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processClock is the number of the clock on which Linux counts the processor time of a process, to
// the nanosecond, ended threads included: what its scheduler granted. clock_getcpuclockid(3) makes
// these numbers the same way.
func processClock(pid int) int32 {
	const scheduler = 2
	return int32(^pid<<3 | scheduler)
}

// readCPU reads the processor time of a process.
func readCPU(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(processClock(pid), &ts); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
