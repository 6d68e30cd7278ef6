// Command testrun reads `go test -json` and prints what a person wants of it: one line per package, the output of
// what failed, and at the end a count of the tests and those that took longest. It exits with status 1 when anything failed or no test ran.
//
//	go test -json ./... | go run ./integration/testrun
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	ok, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
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
	out                     io.Writer
	output                  map[string]*strings.Builder // by package and test, until its result is known
	passed, failed, skipped int                         // top-level tests, examples and fuzz seeds
	perPackage              map[string]int
	took                    []event // top-level tests that passed
	broken                  int     // packages that failed: to build, by a timeout, or by a test
}

// summarize reads events until r ends and says whether everything passed. An error is a stream that is not what
// `go test -json` prints.
func summarize(r io.Reader, w io.Writer) (bool, error) {
	t := &tally{out: w, output: map[string]*strings.Builder{}, perPackage: map[string]int{}}
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
	fmt.Fprintf(w, "%d passed, %d failed", t.passed, t.failed)
	if t.skipped > 0 {
		fmt.Fprintf(w, ", %d skipped", t.skipped)
	}
	if t.broken > 0 {
		fmt.Fprintf(w, ", %d packages failed", t.broken)
	}
	fmt.Fprintln(w)
	t.printSlowest()
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
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Action == "fail" || e.Action == "skip" && e.Test != "" {
		t.print(key)
	}
	delete(t.output, key)
	if e.Test == "" {
		t.addPackage(e)
		return
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
	case "skip":
		t.skipped++
	}
}

func (t *tally) addPackage(e event) {
	if e.Action == "fail" {
		t.broken++
	}
	fmt.Fprintf(t.out, "%-4s %-40s %4d tests %7.1fs\n", e.Action, e.Package, t.perPackage[e.Package], e.Elapsed)
}

func (t *tally) print(key string) {
	if text := t.output[key]; text != nil {
		fmt.Fprint(t.out, text)
	}
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
