package snowflake

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// TestClockBackIsTold: a clock that went back is an event, and where no INSERT gets an id for longer
// than INSERTs wait the source says that it has none. To ask where it stands changes nothing.
func TestClockBackIsTold(t *testing.T) {
	for _, tt := range []struct {
		name         string
		back         time.Duration
		then         ClockBack
		told, failed bool
	}{
		{name: "not at all", then: BackError},
		{name: "within hold", back: 10 * time.Millisecond, then: BackError},
		{name: "shorter than INSERTs wait", back: time.Second, then: BackError, told: true},
		{name: "longer", back: 5 * time.Second, then: BackError, told: true, failed: true},
		{name: "longer, it borrows within max_ahead", back: DefaultMaxAhead - time.Second, then: BackBorrow, told: true},
		{name: "longer than it borrows", back: DefaultMaxAhead + 10*time.Second, then: BackBorrow, told: true, failed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				var clk testClock
				s := newTestSnowflake(t, Config{Fences: newFaultFences(), Worker: 5, ClockBack: tt.then, Logger: slog.New(slog.NewTextHandler(&out, nil))}, clk.clock())
				time.Sleep(time.Minute)
				sourcetest.Fill(t, s, 10, 1)
				if stand := s.Standing(); stand.Problem != nil {
					t.Errorf("before: %v", stand.Problem)
				}
				clk.jump(-tt.back)
				seen := s.words.seen.Load()
				stand := s.Standing()
				assert.True(t, tt.failed == errors.Is(stand.Problem, idsource.Fenced) && s.words.seen.Load() == seen, "problem %v, the clock's greatest reading went from %d to %d", stand.Problem, seen, s.words.seen.Load())
				ids := make([]uint64, 1)
				err := s.Fill(t.Context(), ids, 1)
				assert.True(t, (err != nil) == tt.failed, "Fill: %v, where the problem is %v", err, stand.Problem)
				time.Sleep(2 * DefaultRenew)
				synctest.Wait()
				assert.Must(t, s.Close(t.Context()))
				told := strings.Contains(out.String(), `msg="clock went back"`)
				assert.True(t, told == tt.told, "told %v, want %v: %s", told, tt.told, out.String())
			})
		})
	}
}

func TestCarriedWall(t *testing.T) {
	var c carriedWall
	for range 3 {
		before := time.Now()
		got := c.read()
		// Two readings of two clocks are some time apart where a machine is busy.
		d := time.Duration(got - before.UnixNano())
		assert.True(t, d >= -time.Second && d <= time.Minute, "the clock is %v off", d)
	}
	// As long as the bound is not reached the offset counts, then the clock itself.
	c.offset.Store(int64(1000 * time.Hour))
	c.until.Store(math.MaxInt64)
	got, least := c.read(), int64(1000*time.Hour)
	assert.True(t, got >= least, "read %d, want %d at least: the offset and what has passed", got, least)
	c.until.Store(0)
	d := time.Since(time.Unix(0, c.read()))
	assert.True(t, d >= -time.Minute && d <= time.Minute, "the clock is %v off behind the bound", d)
	assert.True(t, c.until.Load() != 0 && c.offset.Load() != int64(1000*time.Hour), "the offset was not read anew")
}

// TestRestIsNoWarning: a number that rests is told, and what fails is warned of, once in a row.
func TestRestIsNoWarning(t *testing.T) {
	rest := &idsource.LaterError{For: time.Second, Err: errors.New("it rests")}
	down := errors.New("store down")
	for _, tt := range []struct {
		name    string
		reports []error
		want    string
	}{
		{"rests", []error{rest, rest, nil}, "INFO INFO"},
		{"down", []error{down, down, nil}, "WARN INFO"},
		{"down while it rests", []error{rest, down, down, nil}, "INFO WARN INFO"},
		{"rests behind a fault", []error{down, rest, nil}, "WARN INFO"},
	} {
		var out strings.Builder
		s := &Snowflake{life: context.Background(), outlook: newOutlook(nil), time: &timeline{host: hostClock()}}
		s.cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
		for _, err := range tt.reports {
			s.report(err)
		}
		var levels []string
		for line := range strings.Lines(out.String()) {
			_, rest, _ := strings.Cut(line, "level=")
			levels = append(levels, strings.Fields(rest)[0])
		}
		assert.Equal(t, tt.name, strings.Join(levels, " "), tt.want)
	}
}
