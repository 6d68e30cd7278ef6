package harness

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var successorPID = regexp.MustCompile(`msg="a successor serves" process\.pid=(\d+)`)

// PIDs are those of the process that was started and of its successors, which write the same log; the
// newest is the last.
func (p *Proxy) PIDs() []int {
	pids := []int{p.PID()}
	for _, m := range successorPID.FindAllStringSubmatch(p.Log(), -1) {
		if pid, err := strconv.Atoi(m[1]); err == nil { // idproxy wrote a number
			pids = append(pids, pid)
		}
	}
	return pids
}

// Stop ends the successors as [process.Process.Stop] ends the process itself, and that too.
func (p *Proxy) Stop(grace time.Duration) error {
	var errs []error
	for _, pid := range p.PIDs()[1:] {
		if p.serves(pid) {
			_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
		}
		for deadline := time.Now().Add(grace); p.serves(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
				errs = append(errs, fmt.Errorf("successor %d did not end within %v", pid, grace))
				break
			}
		}
	}
	return errors.Join(append(errs, p.Process.Stop(grace))...)
}

// serves reports whether a process has not ended, and its number is not somebody else's by now.
func (p *Proxy) serves(pid int) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(args), p.ConfigPath)
}
