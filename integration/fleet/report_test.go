package fleet

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// report is the table that is printed.
type report struct{ lines strings.Builder }

func (r *report) add(what, format string, args ...any) {
	fmt.Fprintf(&r.lines, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
}

func (r *report) print(t *testing.T) {
	t.Helper()
	t.Logf("\n| what | measured |\n|---|---|\n%s", r.lines.String())
}

// each runs do for all members at once, and returns how long each took.
func each(members []*member, do func(*member) time.Duration) []time.Duration {
	took := make([]time.Duration, len(members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() { took[i] = do(m) })
	}
	group.Wait()
	return took
}

// spread words the least, the median and the greatest.
func spread(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("%v, %v, %v", short(all[0]), short(all[len(all)/2]), short(all[len(all)-1]))
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// sizes words the least, the median and the greatest number of bytes.
func sizes(all []int64) string {
	slices.Sort(all)
	const kib = 1 << 10
	unit, name := float64(kib), "KiB"
	if all[0] > 1000*kib {
		unit, name = kib*kib, "MiB"
	}
	return fmt.Sprintf("%.1f, %.1f, %.1f %s", float64(all[0])/unit, float64(all[len(all)/2])/unit, float64(all[len(all)-1])/unit, name)
}

// memory words what members hold.
func memory(t *testing.T, members []*member) string {
	t.Helper()
	var all []int64
	for _, m := range members {
		all = append(all, m.usage(t).RSS)
	}
	return sizes(all)
}
