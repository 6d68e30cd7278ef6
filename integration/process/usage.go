package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a program has taken of the machine.
type Usage struct {
	RSS     int64         // bytes of memory it holds now
	PeakRSS int64         // the most it ever held
	CPU     time.Duration // time its threads have run, those that ended excepted
}

// Usage reads the program's use of the machine from /proc (see proc(5)).
func (p *Process) Usage() (Usage, error) {
	dir := fmt.Sprintf("/proc/%d", p.PID())
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.spec.Path, err)
	}
	u := Usage{RSS: kilobytes(status, "VmRSS:"), PeakRSS: kilobytes(status, "VmHWM:")}
	tasks, err := filepath.Glob(dir + "/task/*/schedstat")
	if err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", p.spec.Path, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread ended since the folder was listed
		}
		u.CPU += firstNanoseconds(text)
	}
	return u, nil
}

// kilobytes finds "key  123 kB" in /proc/PID/status and returns it in bytes; 0 when the line is not
// there, as for a program that has just ended.
func kilobytes(status []byte, key string) int64 {
	for line := range strings.Lines(string(status)) {
		rest, ok := strings.CutPrefix(line, key)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
			return n << 10
		}
	}
	return 0
}

// firstNanoseconds reads the first number of /proc/PID/task/TID/schedstat: time spent on a
// processor.
func firstNanoseconds(schedstat []byte) time.Duration {
	first, _, _ := strings.Cut(string(schedstat), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0 // a thread that ended reads as empty
	}
	return time.Duration(n)
}
