package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is processor time that a process has used, ended threads included.
type cpuTime struct {
	total time.Duration // to the nanosecond, by the scheduler
	user  time.Duration // sampled at the kernel's tick, as system is
	sys   time.Duration
}

// The clocks that Linux keeps of every process: clock_getcpuclockid(3) makes their ids the same
// way.
const (
	clockProf  = 0 // user and system time, sampled
	clockUser  = 1 // user time, sampled
	clockSched = 2 // what the scheduler granted
)

// readCPU reads the processor time of a process.
func readCPU(pid int) (cpuTime, error) {
	var read [3]time.Duration
	for which := range read {
		var ts unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|which), &ts); err != nil {
			return cpuTime{}, fmt.Errorf("read processor clock %d of process %d: %w", which, pid, err)
		}
		read[which] = time.Duration(ts.Nano())
	}
	return cpuTime{total: read[clockSched], user: read[clockUser], sys: read[clockProf] - read[clockUser]}, nil
}

func (c cpuTime) minus(d cpuTime) cpuTime {
	return cpuTime{total: c.total - d.total, user: c.user - d.user, sys: c.sys - d.sys}
}

func (c cpuTime) plus(d cpuTime) cpuTime {
	return cpuTime{total: c.total + d.total, user: c.user + d.user, sys: c.sys + d.sys}
}

// userShare is the part of the sampled time that was user time.
func (c cpuTime) userShare() float64 {
	if c.user+c.sys == 0 {
		return 0
	}
	return float64(c.user) / float64(c.user+c.sys)
}
