package idsources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Plan says how long to measure.
type Plan struct {
	Rounds int
	Each   time.Duration // of one measurement of one way in a round
	AtCap  time.Duration // of one source that gives all it can
	Switch time.Duration // of ranges that follow each other
}

// Run measures all and writes it as Markdown.
func Run(ctx context.Context, out io.Writer, p Plan) error {
	return errors.Join(costs(ctx, out, p), atCap(ctx, out, p.AtCap), switches(ctx, out, p.Switch), overNetwork(ctx, out, p))
}

// usage is what a number of ids took.
type usage struct {
	ids    int
	took   time.Duration
	cpu    time.Duration // of this process, the goroutines of the source included
	allocs uint64
}

func (u usage) perID() float64    { return float64(u.took.Nanoseconds()) / float64(u.ids) }
func (u usage) cpuPerID() float64 { return float64(u.cpu.Nanoseconds()) / float64(u.ids) }
func (u usage) rate() float64     { return float64(u.ids) / u.took.Seconds() }

// use has goroutines take ids for a while.
func use(ctx context.Context, c *candidate, goroutines int, each time.Duration) (u usage, err error) {
	if err := context.Cause(ctx); err != nil {
		return u, err
	}
	counts, failed := make([]int, goroutines), make([]error, goroutines)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := processTime(), time.Now()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			take := c.taker()
			for failed[g] == nil && time.Since(began) < each {
				failed[g] = take(c.batch)
				counts[g] += c.batch
			}
		})
	}
	wg.Wait()
	u.took, u.cpu = time.Since(began), processTime()-cpu
	runtime.ReadMemStats(&after)
	u.allocs = after.Mallocs - before.Mallocs
	for _, n := range counts {
		u.ids += n
	}
	return u, errors.Join(failed...)
}

// processTime is the processor time that this process has taken.
func processTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(t.Nano())
}

// costs compares what one id takes. The layout of the snowflake source has a sequence so long that
// it never ends, or its cap would be what is measured, as it is with the two libraries.
func costs(ctx context.Context, out io.Writer, p Plan) (err error) {
	all, err := start(ctx, []func(context.Context) (*candidate, error){
		newAtomic, newSegment, snowflakeOf(nameSnowflake, "41/2/20"), newBwmarrin, newSonyflake,
	})
	defer func() { err = errors.Join(err, end(all)) }()
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\n### An id of a source\n\n| goroutines | way | ns/id | CPU ns/id | to the atomic (min..max) | allocations/id |\n|---:|---|---:|---:|---:|---:|\n")
	for _, goroutines := range []int{1, runtime.NumCPU()} {
		used := make([][]usage, len(all))
		for round := range p.Rounds {
			for k := range all {
				i := (k + round) % len(all)
				u, err := use(ctx, all[i], goroutines, p.Each)
				if err != nil {
					return fmt.Errorf("%s: %w", all[i].name, err)
				}
				used[i] = append(used[i], u)
			}
		}
		for i, c := range all {
			writeCost(out, fmt.Sprintf("%d | %s", goroutines, c.name), used[i], used[0])
		}
	}
	return nil
}

// writeCost writes medians over rounds. The ratio is that of processor time, to the atomic of the
// same round.
func writeCost(out io.Writer, way string, used, atomics []usage) {
	var elapsed, cpu, ratio []float64
	var allocs, ids uint64
	for i, u := range used {
		elapsed, cpu = append(elapsed, u.perID()), append(cpu, u.cpuPerID())
		ratio = append(ratio, u.cpuPerID()/atomics[i].cpuPerID())
		allocs, ids = allocs+u.allocs, ids+uint64(u.ids)
	}
	for _, s := range [][]float64{elapsed, cpu, ratio} {
		slices.Sort(s)
	}
	mid := len(used) / 2
	fmt.Fprintf(out, "| %s | %.1f | %.1f | %.2f (%.2f..%.2f) | %.3f |\n", way,
		elapsed[mid], cpu[mid], ratio[mid], ratio[0], ratio[len(ratio)-1], float64(allocs)/float64(ids))
}

// atCap has sources give all that their layout allows, for as long as it takes until nothing can be
// borrowed from the time ahead, and measures from then on.
func atCap(ctx context.Context, out io.Writer, length time.Duration) error {
	fmt.Fprint(out, "\n### Snowflake sources asked for all they can give\n\n| goroutines | way | ids/s | CPU, share of one core | CPU ns/id | allocations/id |\n|---:|---|---:|---:|---:|---:|\n")
	for _, begin := range []func(context.Context) (*candidate, error){
		snowflakeOf(nameSnowflake+" 41/10/12", "41/10/12"), snowflakeOf(nameSnowflake+" 38/15/10", "38/15/10"), newBwmarrin, newSonyflake,
	} {
		for _, goroutines := range []int{1, 8} {
			if err := oneAtCap(ctx, out, begin, goroutines, length); err != nil {
				return err
			}
		}
	}
	return nil
}

// A source may run ahead of the clock by 0.1 s here, and not by 3 s as it does when nothing is
// configured: that is used up in borrowed.
const (
	ahead    = 100 * time.Millisecond
	borrowed = 100 * time.Millisecond
)

func oneAtCap(ctx context.Context, out io.Writer, begin func(context.Context) (*candidate, error), goroutines int, length time.Duration) error {
	all, err := start(ctx, []func(context.Context) (*candidate, error){begin})
	if err != nil {
		return errors.Join(err, end(all))
	}
	c := all[0]
	_, err = use(ctx, c, goroutines, borrowed)
	var u usage
	if err == nil {
		u, err = use(ctx, c, goroutines, length)
	}
	if err == nil {
		fmt.Fprintf(out, "| %d | %s | %.0f | %.1f%% | %.1f | %.3f |\n", goroutines, c.name, u.rate(),
			100*u.cpu.Seconds()/u.took.Seconds(), u.cpuPerID(), float64(u.allocs)/float64(u.ids))
	}
	return errors.Join(err, end(all))
}
