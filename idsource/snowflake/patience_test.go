package snowflake

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// Nobody waits for a worker number that is known to come too late.
func TestPatienceWithAPool(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration // 0: not known
		want  map[time.Duration]int
	}{
		{16 * time.Second, map[time.Duration]int{0: 10}},
		{time.Second, map[time.Duration]int{2 * time.Second: 10}}, // it was wrong, and the wait goes to its end
		{0, map[time.Duration]int{0: 9, 2 * time.Second: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			none := errors.New("no worker number")
			if tt.after > 0 {
				none = &idsource.LaterError{For: tt.after, Err: none}
			}
			s, _ := pooled(t, &fakePool{none: none}, BackBorrow)
			synctest.Wait()
			fill := func() error { return s.Fill(t.Context(), make([]uint64, 1), 1) }
			if tt.after == 0 {
				times, err := sourcetest.Took(10, fill, idsource.NotReady)
				assert.True(t, err == nil && times[idsource.DefaultWait] == 10, "first calls took %v, %v", times, err)
			}
			times, err := sourcetest.Took(10, fill, idsource.NotReady)
			assert.True(t, err == nil && fmt.Sprint(times) == fmt.Sprint(tt.want), "a number in %v: calls took %v, %v; want %v", tt.after, times, err, tt.want)
		})
	}
}
