package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// profileConnections is the load under which profiles are taken.
const profileConnections = 8

// profileLength is how long each takes.
const profileLength = 3 * time.Second

// profiler says what to profile, and where files may be left.
type profiler struct {
	dir  string
	only string // what the workload's name must contain
}

// profile writes where idproxy, with either engine, and the ways beside it spend their time, and
// which system calls they make, statement by statement. Where one is scraped, it is the only one, and
// what that takes is written, too. It needs perf and the right to use it.
func (b *bench) profile(ctx context.Context, w io.Writer, p profiler) error {
	if _, err := exec.LookPath("perf"); err != nil {
		return fmt.Errorf("profile: %w (Debian's package linux-perf)", err)
	}
	var shares, calls, functions, scrapes strings.Builder
	scraped := slices.ContainsFunc(b.targets, func(t *target) bool { return t.name == nameScraped })
	for _, work := range workloads {
		if !strings.Contains(work.name, p.only) {
			continue
		}
		for _, way := range waysTo(b.targets, work.injected) {
			if way.target.proc == nil || scraped && way.target.name != nameScraped {
				continue
			}
			fmt.Fprintf(os.Stderr, "bench: profile of %s, %s\n", work.name, way.name)
			s, found, err := b.profileOf(ctx, work, way, filepath.Join(p.dir, "perf.data"))
			if err != nil {
				return fmt.Errorf("profile of %s, %s: %w", way.name, work.name, err)
			}
			fmt.Fprintf(&shares, "| %s | %s | %.1f |%s\n", work.name, way.name, s.cpuPerStatement(), found.line())
			fmt.Fprintf(&scrapes, "| %s | %s | %.1f | %.2f | %.2f |\n", work.name, way.name, s.cpuPerStatement(), found.scrapes, found.collects)
			made, err := b.calls(ctx, work, way)
			if err != nil {
				return fmt.Errorf("system calls of %s, %s: %w", way.name, work.name, err)
			}
			fmt.Fprintf(&calls, "| %s | %s |%s\n", work.name, way.name, made)
			if way.target.injects {
				fmt.Fprintf(&functions, "\n%s, %s: %.1f us\n\n", work.name, way.name, s.cpuPerStatement())
				found.writeFunctions(&functions, s.cpuPerStatement())
			}
		}
	}
	names, lines := strings.Join(callNames(), " | "), strings.Repeat("---:|", len(callGroups))
	fmt.Fprintf(w, "\n### Where the time goes, at %d connections\n\nPercent of the samples: in the kernel by system call, and else there "+
		"(switches, interrupts); in Go's runtime; in the rest of the program.\n\n", profileConnections)
	fmt.Fprintf(w, "| statement | way | us | %s | else | runtime | program |\n|---|---|---:|%s---:|---:|---:|\n%s", names, lines, &shares)
	fmt.Fprintf(w, "\n### System calls per statement, at %d connections\n\n| statement | way | %s |\n|---|---|%s\n%s", profileConnections, names, lines, &calls)
	if scraped {
		fmt.Fprintf(w, "\n### A scrape a second, percent of the samples\n\n| statement | way | us | answers | garbage collection |\n|---|---|---:|---:|---:|\n%s", &scrapes)
	}
	fmt.Fprintf(w, "\n### The functions, us per statement\n%s", &functions)
	return nil
}

// profileOf samples a target's processor clock under load, and returns what perf says of the
// functions.
func (b *bench) profileOf(ctx context.Context, work workload, w way, file string) (s sample, p profile, err error) {
	record := exec.CommandContext(ctx, "perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "4000", "-p", strconv.Itoa(w.target.proc.PID()),
		"-o", file, "--", "sleep", fmt.Sprint(profileLength.Seconds()))
	record.Stderr = os.Stderr
	if err := record.Start(); err != nil {
		return s, p, err
	}
	s, err = b.sample(ctx, work.by(w), w.target, profileConnections, profileLength)
	if werr := record.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return s, p, err
	}
	report, err := exec.CommandContext(ctx, "perf", "report", "-i", file, "--stdio", "--children", "-g", "none", "--sort", "symbol").Output()
	return s, parseProfile(string(report)), err
}

// profile is how many percent of the time is whose.
type profile struct {
	kernel    float64
	calls     [len(callGroups)]float64 // of the kernel's
	runtime   float64                  // Go's
	program   float64                  // all else
	functions []function               // of the program and of Go's runtime
	scrapes   float64                  // below what answers over HTTP, which are scrapes alone
	collects  float64                  // below what collects garbage
}

type function struct {
	name  string
	share float64
}

// symbolLine is a line of perf's report: with those it calls, alone, where, and what.
//
//	12.27%    3.01%  [.] idproxy/rewriter.DoubtsOf
var symbolLine = regexp.MustCompile(`(?m)^\s+([0-9.]+)%\s+([0-9.]+)%\s+\[(.)\] (\S+)`)

// runtimeFunction is what functions of Go's runtime are called, and what stands below it.
var runtimeFunction = regexp.MustCompile(`^(runtime|internal/runtime|internal/poll|syscall|gogo|aeshashbody|__vdso)`)

// callFunction is what the kernel's functions of system calls are called.
var callFunction = regexp.MustCompile(`^(?:__x64_sys_|__sys_|ksys_)(\w+)$`)

// parseProfile reads perf's report.
func parseProfile(report string) (p profile) {
	seen := map[string]float64{} // calls, which may have two functions, one in the other
	for _, m := range symbolLine.FindAllStringSubmatch(report, -1) {
		whole, _ := strconv.ParseFloat(m[1], 64) // the expression lets numbers pass
		share, _ := strconv.ParseFloat(m[2], 64)
		name := m[4]
		switch name {
		case "net/http.(*conn).serve":
			p.scrapes = whole
		case "runtime.gcBgMarkWorker":
			p.collects = whole
		}
		switch {
		case m[3] == "k":
			p.kernel += share
			if call := callFunction.FindStringSubmatch(name); call != nil && groupOf(call[1]) >= 0 {
				p.calls[groupOf(call[1])] += max(0, whole-seen[call[1]])
				seen[call[1]] = max(seen[call[1]], whole)
			}
			continue
		case runtimeFunction.MatchString(name):
			p.runtime += share
		default:
			p.program += share
		}
		p.functions = append(p.functions, function{name, share})
	}
	slices.SortFunc(p.functions, func(a, b function) int { return cmp.Compare(b.share, a.share) })
	return p
}

func (p profile) line() string {
	text, rest := "", p.kernel
	for _, share := range p.calls {
		text += fmt.Sprintf(" %.1f |", share)
		rest -= share
	}
	return text + fmt.Sprintf(" %.1f | %.1f | %.1f |", max(rest, 0), p.runtime, p.program)
}

// leastShare is how many percent of the time a function takes that has a line of its own.
const leastShare = 0.5

// writeFunctions writes the kernel's part in one line, and each function that takes some of the time,
// in microseconds of a statement that takes whole.
func (p profile) writeFunctions(w io.Writer, whole float64) {
	fmt.Fprintf(w, "%12.2f  the kernel\n", p.kernel*whole/100)
	rest := 0.0
	for _, f := range p.functions {
		if f.share < leastShare {
			rest += f.share
			continue
		}
		fmt.Fprintf(w, "%12.2f  %s\n", f.share*whole/100, f.name)
	}
	fmt.Fprintf(w, "%12.2f  other functions\n", rest*whole/100)
}

// callGroups are system calls that do the same work.
var callGroups = [...]struct {
	name  string
	calls []string
}{
	{"reads", []string{"read", "recvfrom", "recvmsg", "readv"}},
	{"writes", []string{"write", "sendto", "sendmsg", "writev"}},
	{"waits (epoll)", []string{"epoll_wait", "epoll_pwait"}},
	{"epoll_ctl", []string{"epoll_ctl"}},
	{"futex", []string{"futex"}},
	{"sleeps, yields", []string{"nanosleep", "clock_nanosleep", "sched_yield"}},
}

// groupOf returns -1 for a call that has no group.
func groupOf(call string) int {
	for i, g := range callGroups {
		if slices.Contains(g.calls, call) {
			return i
		}
	}
	return -1
}

func callNames() (names []string) {
	for _, g := range callGroups {
		names = append(names, g.name)
	}
	return names
}

// attach is how long perf has to find the threads of a process before they are loaded.
const attach = time.Second

// calls counts the system calls that a target makes for a statement, by their groups. Those of the
// logins are among them, which are few.
func (b *bench) calls(ctx context.Context, work workload, w way) (string, error) {
	const event = "syscalls:sys_enter_"
	args := []string{"stat", "-x", ",", "-p", strconv.Itoa(w.target.proc.PID())}
	for _, g := range callGroups {
		for _, call := range g.calls {
			args = append(args, "-e", event+call)
		}
	}
	var counts strings.Builder
	stat := exec.CommandContext(ctx, "perf", args...)
	stat.Stderr = &counts
	if err := stat.Start(); err != nil {
		return "", err
	}
	time.Sleep(attach)
	l, err := openLoad(w.target, profileConnections, work.by(w))
	if err == nil {
		err = errors.Join(l.run(profileLength), l.close())
	}
	// Its status is then that of an interrupted program, and says nothing.
	_, _ = stat.Process.Signal(os.Interrupt), stat.Wait()
	if err != nil {
		return "", err
	}
	var made [len(callGroups)]float64
	counted := false
	for line := range strings.Lines(counts.String()) {
		fields := strings.Split(line, ",")
		if len(fields) < 3 || !strings.HasPrefix(fields[2], event) {
			continue
		}
		if n, err := strconv.ParseFloat(fields[0], 64); err == nil {
			made[groupOf(strings.TrimPrefix(fields[2], event))] += n
			counted = counted || n > 0
		}
	}
	if !counted {
		return "", errors.New("perf has counted none (it needs root, and tracefs mounted):\n" + counts.String())
	}
	text := ""
	for _, n := range made {
		text += fmt.Sprintf(" %.2f |", n/float64(len(l.lasted)))
	}
	return text, nil
}
