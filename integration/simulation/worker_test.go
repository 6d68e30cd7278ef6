package simulation

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// job is what a worker is to do: play seeds of a kind. Each worker is a process of its own with one
// thread for goroutines, since a run is repeated exactly only where one goroutine runs at a time.
type job struct {
	Kind     string
	From, To uint64        // seeds
	Until    time.Duration // of virtual time in all; 0: all seeds
	Twice    bool          // play each seed again and compare
	Limit    time.Duration // of the processor, for all seeds; 0: none
	Tries    int           // how often a violation is played with fewer faults; default 120
}

// report is what a worker found.
type report struct {
	Kind     string
	Seeds    int
	Lasted   time.Duration
	Ids      uint64
	Messages uint64
	Faults   int
	Stops    int
	Other    int           // seeds that another time had other events
	Spent    time.Duration // of the processor
	Seed     uint64        // of the violation
	Found    string        // the violation; the worker ends there
	Enough   []int         // the faults that it takes, by their numbers in the plan
}

// add sums up.
func (r *report) add(o report) {
	r.Seeds += o.Seeds
	r.Lasted += o.Lasted
	r.Ids += o.Ids
	r.Messages += o.Messages
	r.Faults += o.Faults
	r.Stops += o.Stops
	r.Other += o.Other
	r.Spent += o.Spent
}

// String is a line for people.
func (r report) String() string {
	return fmt.Sprintf("%-16s %5d seeds %9.1f h  %9d ids %9d messages %6d faults %5d stops, %5.1f s of the processor",
		r.Kind, r.Seeds, r.Lasted.Hours(), r.Ids, r.Messages, r.Faults, r.Stops, r.Spent.Seconds())
}

// jobVariable has a test binary be a worker.
const jobVariable = "IDPROXY_SIMULATION_JOB"

// TestWorker plays a job. Without one it plays one seed.
func TestWorker(t *testing.T) {
	j := job{Kind: kinds[0].name, To: 1}
	if text := os.Getenv(jobVariable); text != "" {
		assert.Must(t, json.Unmarshal([]byte(text), &j))
	}
	r := j.play(t)
	assert.True(t, r.Seeds != 0 && (r.Ids != 0 || r.Found != ""), "%+v played nothing: %+v", j, r)
	text := assert.Of(json.Marshal(r)).Must(t)
	fmt.Printf("\nreport %s\n", text)
}

func kindOf(t *testing.T, name string) *kind {
	t.Helper()
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
	assert.MustTrue(t, i >= 0, "there is no kind %q", name)
	return kinds[i]
}

// play plays seeds up to the first that shows a violation, whose faults it shrinks.
func (j job) play(t *testing.T) (r report) {
	k, dir, began := kindOf(t, j.Kind), inMemory(t), spent()
	r.Kind = j.Kind
	for seed := j.From; seed < j.To && (j.Until == 0 || r.Lasted < j.Until) && r.Found == "" && (j.Limit == 0 || spent()-began < j.Limit); seed++ {
		p := drawPlan(k, seed)
		o := run(t, k, p, dir(), nil)
		r.add(report{Seeds: 1, Lasted: o.lasted, Ids: o.ids, Messages: o.messages, Faults: o.faults, Stops: o.stops})
		if j.Twice && run(t, k, p, dir(), nil) != o {
			r.Other++
		}
		if o.found != "" {
			r.Seed, r.Found = seed, o.found
			r.Enough = shrink(p.numbers(), cmp.Or(j.Tries, 120), func(some []int) bool { return run(t, k, p.only(some), dir(), nil).found != "" })
		}
	}
	r.Spent = spent() - began
	return r
}

// inMemory returns what makes folders, in memory where that is possible: a lease is written and synced at each renewal.
func inMemory(t *testing.T) func() string {
	t.Helper()
	base, err := os.MkdirTemp("/dev/shm", "simulation")
	if err != nil {
		return t.TempDir
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return func() string {
		dir := assert.Of(os.MkdirTemp(base, "")).Must(t)
		return dir
	}
}

// work has workers do jobs, as many at a time as there are processors.
func work(t *testing.T, binary string, jobs []job) (reports []report) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan job)
	for range runtime.NumCPU() {
		wg.Go(func() {
			for j := range next {
				r, err := worker(binary, j)
				if err != nil {
					t.Errorf("%+v: %v", j, err)
					continue
				}
				mu.Lock()
				reports = append(reports, r)
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	wg.Wait()
	slices.SortFunc(reports, func(a, b report) int { return strings.Compare(a.Kind, b.Kind) })
	return reports
}

// worker does one job in a process of its own.
func worker(binary string, j job) (r report, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return r, err
	}
	cmd := exec.Command(binary, "-test.run=^TestWorker$", "-test.timeout=12h")
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line, ok := strings.CutPrefix(lines.Text(), "report "); ok && err == nil {
			return r, json.Unmarshal([]byte(line), &r)
		}
	}
	return r, fmt.Errorf("%w: %.4000s", err, out)
}
