// Command testrun runs `go test` and prints what a person wants of it: one line per package, with
// the time that it took and that of processors, the output of what failed, and at the end which tests took longest, what was compared, what was
// skipped and why, and how many tests there were. It exits with status 1 when anything failed or no
// test ran.
//
//	go run ./integration/testrun -timeout=20m ./...
//
// Its arguments are those of `go test`. At most four test programs that start servers run at once,
// each with one test at a time, however many -p lets run. The programs that the rooms run are built
// once, before all tests. The environment has what kind of run it is: see packages width and harness. Without
// arguments it reads what `go test -json` has printed.
//
// A case is a test without subtests, or a subtest without any. What a test compared it logs as
// `compared: 12 steps, 34 facets`, with `seed 5` behind where there is one; testrun adds up by
// package, and over all.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"idproxy/integration/harness"
)

func main() {
	var ok bool
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 0:
		ok, err = summarize(os.Stdin, os.Stdout)
	case os.Getenv(harness.ProgramsVariable) != "":
		ok, err = measure(args)
	default:
		ok, err = run(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run runs the tests and says whether all passed.
func run(args []string) (ok bool, err error) {
	// Ctrl-C reaches `go test` as well, which ends, and what was found until then is told.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	if err := harness.BuildAll(dir); err != nil {
		return false, err
	}
	listener, err := giveSlots(dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	fmt.Printf("%.0f s for the programs that tests run\n", time.Since(began).Seconds())
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	// Lint vets; what debuggers read takes a third of the time to link (-s -w).
	flags := []string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-s -w", "-exec=" + self}
	if kept, err := keepPrograms(); err != nil {
		return false, err
	} else if kept != nil {
		defer kept.Close()
		flags = append(flags, "-o="+programs)
	}
	cmd := exec.Command("go", append(flags, args...)...)
	cmd.Env = append(os.Environ(), harness.ProgramsVariable+"="+dir)
	if slices.Contains(args, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ok, err = summarize(out, os.Stdout)
	if exit := cmd.Wait(); exit != nil && ok {
		return false, errors.Join(err, fmt.Errorf("go test: %w", exit))
	}
	return ok, err
}

// programs is where test programs stay, so that those that are as they were are not linked again. They
// have their names of the last parts of their packages' paths, which differ.
const programs = ".tools/tests/"

// keepPrograms takes the folder of programs for this run. It is nil if another run has it.
func keepPrograms() (*os.File, error) {
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.Create(programs + "lock")
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, lock.Close()
	}
	return lock, nil
}

// measure runs a test program, as `go test -exec` has it, and prints how long it took, and the processor
// time of the program and of all that it waited for, which are its servers. A program that starts
// servers waits for a slot, and runs one test at a time.
func measure(args []string) (ok bool, err error) {
	program, err := os.ReadFile(args[0])
	if err != nil {
		return false, err
	}
	if bytes.Contains(program, []byte(startsServers)) {
		args = append(args, "-test.parallel=1")
		slot, err := takeSlot(os.Getenv(harness.ProgramsVariable))
		if err != nil {
			return false, err
		}
		defer slot.Close() // which gives it back
	}
	began := time.Now()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return false, err
	}
	fmt.Printf("measured: %7.1fs %7.1fs\n", time.Since(began).Seconds(), time.Duration(used.Utime.Nano()+used.Stime.Nano()).Seconds())
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return false, nil
	}
	return err == nil, err
}

// event is a line of `go test -json`, see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output and build-fail
	Test       string // empty: the package itself
	Output     string
	Elapsed    float64 // seconds
}

// tally collects the events of all packages, which come interleaved.
type tally struct {
	out            io.Writer
	output         map[string]*strings.Builder // by package and test, until its result is known
	passed, failed int                         // top-level tests, examples and fuzz seeds
	skipped        int                         // tests and parts of tests
	skips          map[string][]string         // what was skipped, by the reason
	perPackage     map[string]int
	measured       map[string]string    // time that it took, and that of processors, by package
	took           []event              // top-level tests that passed
	broken         int                  // packages that failed: to build, by a timeout, or by a test
	parents        map[string]bool      // tests that have subtests, by package and test
	compared       map[string]*compared // by package
	said           []string             // what each test that failed said first
}

// summarize reads events until r ends and says whether everything passed. An error is a stream that
// is not what `go test -json` prints.
func summarize(r io.Reader, w io.Writer) (bool, error) {
	t := &tally{
		out: w, output: map[string]*strings.Builder{}, perPackage: map[string]int{}, measured: map[string]string{}, parents: map[string]bool{},
		skips:    map[string][]string{},
		compared: map[string]*compared{},
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return false, fmt.Errorf("read %q: %w", line, err)
			}
			t.add(e)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
	}
	t.printSlowest()
	fmt.Fprintf(w, "compared: %s\n", t.sum())
	t.printSkips()
	for _, said := range t.said {
		fmt.Fprint(w, said)
	}
	if t.broken > 0 {
		fmt.Fprintf(w, "%d packages failed\n", t.broken)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	return t.failed == 0 && t.broken == 0 && t.passed > 0, nil
}

func (t *tally) add(e event) {
	if e.Action == "build-output" {
		fmt.Fprint(t.out, e.Output)
		return
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if times, ok := strings.CutPrefix(e.Output, "measured: "); ok {
			t.measured[e.Package] = strings.TrimSuffix(times, "\n")
		}
		t.of(e.Package).addLine(e.Output)
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Action == "fail" {
		fmt.Fprint(t.out, t.text(key))
	}
	if e.Action == "skip" && e.Test != "" {
		t.skipped++
		why := skipReason(t.text(key))
		t.skips[why] = append(t.skips[why], key)
		delete(t.output, key)
		return
	}
	if text := t.text(key); e.Action == "fail" && text != "" {
		t.said = append(t.said, "failed: "+key+"\n"+firstWords(text))
	}
	delete(t.output, key)
	if e.Test == "" {
		t.addPackage(e)
		return
	}
	if !t.parents[key] { // a test ends behind its subtests
		t.of(e.Package).addCase(e.Test)
	}
	for i, c := range e.Test {
		if c == '/' {
			t.parents[e.Package+" "+e.Test[:i]] = true
		}
	}
	if strings.Contains(e.Test, "/") {
		return // counted with the test it belongs to
	}
	t.perPackage[e.Package]++
	switch e.Action {
	case "pass":
		t.passed++
		t.took = append(t.took, e)
	case "fail":
		t.failed++
	}
}

// skipped is how package width says why a test is skipped, and where it runs.
var skipped = regexp.MustCompile(`: skipped: (.*)`)

// skipReason is why a test was skipped, by its output.
func skipReason(output string) string {
	if m := skipped.FindStringSubmatch(output); m != nil {
		return m[1]
	}
	return "no reason: " + strings.Join(strings.Fields(output), " ")
}

// printSkips lists what was skipped.
func (t *tally) printSkips() {
	for _, why := range slices.Sorted(maps.Keys(t.skips)) {
		fmt.Fprintf(t.out, "%d skipped: %s: %s\n", len(t.skips[why]), why, strings.Join(t.skips[why], ", "))
	}
}

func (t *tally) addPackage(e event) {
	if e.Action == "fail" {
		t.broken++
	}
	if t.perPackage[e.Package] > 0 || e.Action == "fail" {
		fmt.Fprintf(t.out, "%-4s %-36s %4d tests %17s  %s\n", e.Action, e.Package, t.perPackage[e.Package], t.measured[e.Package], t.of(e.Package))
	}
}

// of is what a package compared so far.
func (t *tally) of(name string) *compared {
	c := t.compared[name]
	if c == nil {
		c = newCompared()
		t.compared[name] = c
	}
	return c
}

// sum is what all packages compared.
func (t *tally) sum() *compared {
	all := newCompared()
	for _, c := range t.compared {
		all.add(c)
	}
	return all
}

// text is what a test has printed so far.
func (t *tally) text(key string) string {
	if b := t.output[key]; b != nil {
		return b.String()
	}
	return ""
}

// firstWords are the first lines that a test wrote itself: what it shows of logs, which is long,
// comes behind them, and what drivers log is left out.
func firstWords(output string) string {
	var b strings.Builder
	lines := 0
	for line := range strings.Lines(output) {
		if strings.Contains(line, ": log of ") || lines == 10 {
			break
		}
		if strings.HasPrefix(strings.TrimSpace(line), "=== ") || strings.HasPrefix(line, "[mysql] ") || comparedLine.MatchString(line) {
			continue
		}
		fmt.Fprintf(&b, "  %.300s\n", strings.TrimRight(line, "\n"))
		lines++
	}
	return b.String()
}

// printSlowest lists the tests that decide how long a run takes.
func (t *tally) printSlowest() {
	const most, least = 15, 5 // tests, seconds
	slices.SortFunc(t.took, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for i, e := range t.took {
		if i == most || e.Elapsed < least {
			return
		}
		fmt.Fprintf(t.out, "%6.1fs %s %s\n", e.Elapsed, e.Package, e.Test)
	}
}
