package segment

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// TestTaken: how long numbers last is reckoned by where the store stands, which all processes move.
func TestTaken(t *testing.T) {
	var rate taken
	began := time.Now()
	at := func(after time.Duration) time.Time { return began.Add(after) }
	wants := func(what string, after time.Duration, next uint64, want float64) {
		t.Helper()
		got := rate.lasts(at(after), next, 1_000_000)
		assert.True(t, !(math.Abs(got-want) > 1e-6) || got == want, "%s: %v s, want %v", what, got, want)
	}
	wants("no range came", 0, 0, math.Inf(1))
	rate.came(at(0), 1, false)
	wants("nothing was taken", time.Minute, 1, math.Inf(1))
	wants("a burst counts over ten seconds", time.Second, 101, (1_000_000-101)/10.)
	wants("this process alone", 100*time.Second, 101, 1_000_000-101)
	rate.came(at(100*time.Second), 9001, false) // others took 8,900
	wants("all processes", 100*time.Second, 10_001, (1_000_000-10_001)/100.)
	wants("the last one", time.Hour, 1_000_001, 0)
	rate.came(at(200*time.Second), 500_001, true)
	wants("moved by this process", 200*time.Second, 500_001, math.Inf(1))
	for i := range 1000 {
		rate.came(at(200*time.Second+time.Duration(i)*time.Minute), 500_001+uint64(i), false)
	}
	n := len(rate.from)
	assert.True(t, n == 62, "%d positions are kept, want those of an hour and one before", n)
}

// TestPerTableStanding: a series that is about to begin is no reason to call the source without ids, as
// long as others give some.
func TestPerTableStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		p := assert.Of(NewPerTable(Config{Name: "ids", Store: st, Key: "{table}", Step: 10, StepPolicy: StepFixed})).Must(t)
		defer p.Close(t.Context()) //nolint:errcheck // its store may be down
		fill := func(table string) error {
			s := assert.Of(p.Series("shop", table)).Must(t)
			return s.Fill(t.Context(), make([]uint64, 1), 1)
		}
		st.set(func(s *faultStore) { s.down = errors.New("away") })
		sourcetest.WantKind(t, "without its store", fill("new"), idsource.StoreDown)
		now := p.Standing()
		assert.True(t, now.Problem != nil && now.Failing != nil, "no series has ids: %+v", now)
		st.set(func(s *faultStore) { s.down = nil })
		assert.Must(t, fill("old"))
		st.set(func(s *faultStore) { s.down = errors.New("away") })
		_ = fill("newer")
		now = p.Standing()
		assert.True(t, now.Problem == nil && now.Failing != nil, "a series of two has ids: %+v", now)
	})
}
