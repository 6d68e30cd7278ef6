package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads the clock of [SinceBoot].
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(bootClock, &t); err != nil {
		return time.Since(processStart) // kernels without it are older than Go supports
	}
	return time.Duration(t.Nano())
}

var processStart = time.Now()
