package snowflake

import (
	"errors"
	"log/slog"
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
				if tt.failed != errors.Is(stand.Problem, idsource.Fenced) || s.words.seen.Load() != seen {
					t.Errorf("problem %v, the clock's greatest reading went from %d to %d", stand.Problem, seen, s.words.seen.Load())
				}
				ids := make([]uint64, 1)
				err := s.Fill(t.Context(), ids, 1)
				assert.True(t, (err != nil) == tt.failed, "Fill: %v, where the problem is %v", err, stand.Problem)
				time.Sleep(2 * DefaultRenew)
				synctest.Wait()
				assert.Must(t, s.Close(t.Context()))
				if told := strings.Contains(out.String(), `msg="clock went back"`); told != tt.told {
					t.Errorf("told %v, want %v: %s", told, tt.told, out.String())
				}
			})
		})
	}
}
