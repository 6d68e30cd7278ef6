package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// profileConnections is the load under which profiles are taken.
const profileConnections = 8

// profileLength is how long each takes.
const profileLength = 4 * time.Second

// profiler says what to profile, and where files may be left.
type profiler struct {
	dir       string
	workloads []workload
}

// profile writes where idproxy, and the relay beside it, spend their time, workload by workload. It
// needs perf and the right to use it.
func (b *bench) profile(ctx context.Context, w io.Writer, p profiler) error {
	if _, err := exec.LookPath("perf"); err != nil {
		return fmt.Errorf("profile: %w (Debian's package linux-perf)", err)
	}
	for _, work := range p.workloads {
		for _, t := range b.targets {
			if t.name != nameRelay && t.name != nameIDProxy {
				continue
			}
			s, text, err := b.profileOf(ctx, work, t, filepath.Join(p.dir, "perf.data"))
			if err != nil {
				return fmt.Errorf("profile of %s, %s: %w", t.name, work.name, err)
			}
			fmt.Fprintf(w, "\n%s, %s, %d connections: %.1f us per statement\n\n", t.name, work.name, profileConnections, s.cpuPerStatement())
			writeProfile(w, text, s.cpuPerStatement())
			if err := b.calls(ctx, w, work, t); err != nil {
				return fmt.Errorf("system calls of %s, %s: %w", t.name, work.name, err)
			}
		}
	}
	return nil
}

// profileOf samples a target's processor clock under load, and returns what perf says of the
// functions.
func (b *bench) profileOf(ctx context.Context, work workload, t *target, file string) (s sample, report []byte, err error) {
	record := exec.CommandContext(ctx, "perf", "record", "-q", "-e", "cpu-clock", "-F", "4000", "-p", strconv.Itoa(t.proc.PID()),
		"-o", file, "--", "sleep", fmt.Sprint(profileLength.Seconds()))
	record.Stderr = os.Stderr
	if err := record.Start(); err != nil {
		return s, nil, err
	}
	c := &cell{workload: work, connections: profileConnections}
	s, err = b.sample(ctx, c, t, profileLength)
	if werr := record.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return s, nil, err
	}
	report, err = exec.CommandContext(ctx, "perf", "report", "-i", file, "--stdio", "-g", "none", "--sort", "symbol").Output()
	return s, report, err
}

// symbolLine is a line of perf's report: 12.27%  [.] idproxy/rewriter.DoubtsOf
var symbolLine = regexp.MustCompile(`^\s+([0-9.]+)%\s+\[(.)\] (\S+)`)

// leastShare is how many percent of the time a function takes that has a line of its own.
const leastShare = 0.3

// writeProfile writes the kernel's part in one line, and each function of the program that takes
// some of the time, in microseconds of a statement that takes whole.
func writeProfile(w io.Writer, report []byte, whole float64) {
	kernel, rest := 0.0, 0.0
	var functions []string
	for line := range strings.Lines(string(report)) {
		m := symbolLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		share, err := strconv.ParseFloat(m[1], 64)
		switch {
		case err != nil:
		case m[2] == "k":
			kernel += share
		case share < leastShare:
			rest += share
		default:
			functions = append(functions, fmt.Sprintf("%8.2f  %s\n", share*whole/100, m[3]))
		}
	}
	fmt.Fprintf(w, "%8.2f  the kernel\n%s%8.2f  other functions\n", kernel*whole/100, strings.Join(functions, ""), rest*whole/100)
}

// calls writes which system calls a target makes for a statement.
func (b *bench) calls(ctx context.Context, w io.Writer, work workload, t *target) error {
	var events []string
	for _, call := range []string{"read", "write", "epoll_pwait", "futex", "nanosleep", "sched_yield"} {
		events = append(events, "-e", "syscalls:sys_enter_"+call)
	}
	args := append([]string{"stat", "-x", ",", "-p", strconv.Itoa(t.proc.PID())}, events...)
	stat := exec.CommandContext(ctx, "perf", append(args, "--", "sleep", fmt.Sprint(profileLength.Seconds()))...)
	var counts strings.Builder
	stat.Stderr = &counts
	if err := stat.Start(); err != nil {
		return err
	}
	c := &cell{workload: work, connections: profileConnections}
	s, err := b.sample(ctx, c, t, profileLength)
	if werr := stat.Wait(); err != nil || werr != nil {
		return errors.Join(err, werr)
	}
	fmt.Fprint(w, "\nsystem calls per statement:")
	for line := range strings.Lines(counts.String()) {
		fields := strings.Split(line, ",")
		n, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || len(fields) < 3 {
			continue // not counted
		}
		fmt.Fprintf(w, " %s %.2f", strings.TrimPrefix(fields[2], "syscalls:sys_enter_"), n/(s.rate()*profileLength.Seconds()))
	}
	fmt.Fprintln(w)
	return nil
}
