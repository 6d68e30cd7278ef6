package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"idproxy/rewriter"
	"idproxy/rule"
)

// rewriting measures what reading an INSERT and writing it with its ids costs, without the network,
// in processor time of one thread: other programs on the machine slow it down, but are not counted.
func rewriting(out io.Writer) error {
	fmt.Fprint(out, "\n### Rewriting alone\n\n| rows | bytes | us/statement | GB/s of SQL text per core (min..max) | allocations/statement |\n|---:|---:|---:|---:|---:|\n")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, rows := range []int{1, 100, 1000} {
		r := newRewrite(rows)
		var speeds []float64
		for range 21 {
			speed, err := r.speed(30 * time.Millisecond)
			if err != nil {
				return err
			}
			speeds = append(speeds, speed)
		}
		slices.Sort(speeds)
		median := speeds[len(speeds)/2]
		fmt.Fprintf(out, "| %d | %d | %.2f | %.2f (%.2f..%.2f) | %d |\n", rows, len(r.statement.Text),
			float64(len(r.statement.Text))/median/1e3, median, speeds[0], speeds[len(speeds)-1], r.allocations())
	}
	return nil
}

// rewrite is an INSERT that is read and written again and again.
type rewrite struct {
	statement rewriter.Statement
	plan      rewriter.Plan
	ids       [][]uint64
	out       []byte
}

func newRewrite(rows int) *rewrite {
	ids := make([]uint64, rows)
	for i := range ids {
		ids[i] = 7_204_893_301_735_424_000 + uint64(i)
	}
	r := &rule.Rule{Schema: schema, Table: ruledTable, Column: "id", Source: "ids"}
	return &rewrite{
		statement: rewriter.Statement{Text: []byte(insert(rows)(ruledTable, 1)), Rules: []*rule.Rule{r}},
		ids:       [][]uint64{ids},
	}
}

func (r *rewrite) once() error {
	if err := r.plan.Read(&r.statement); err != nil {
		return err
	}
	r.out = r.plan.Append(r.out[:0], r.statement.Text, r.ids)
	return nil
}

// speed returns the bytes of SQL text per nanosecond of the thread's processor time.
func (r *rewrite) speed(least time.Duration) (float64, error) {
	for n, started := 0, threadTime(); ; {
		for range 1 + 100_000/len(r.statement.Text) {
			if err := r.once(); err != nil {
				return 0, err
			}
			n++
		}
		if spent := threadTime() - started; spent >= least {
			return float64(n*len(r.statement.Text)) / float64(spent), nil
		}
	}
}

// allocations returns how many there are per statement.
func (r *rewrite) allocations() uint64 {
	const n = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		_ = r.once() // speed has seen that it goes well
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / n
}

// threadTime returns the processor time that the calling thread has taken.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(t.Nano())
}
