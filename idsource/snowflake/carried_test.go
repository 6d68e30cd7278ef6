package snowflake

import (
	"math"
	"testing"
	"time"
)

func TestCarriedWall(t *testing.T) {
	var c carriedWall
	for range 3 {
		before := time.Now()
		got := c.read()
		// Two readings of two clocks are some time apart where a machine is busy.
		if d := time.Duration(got - before.UnixNano()); d < -time.Second || d > time.Minute {
			t.Errorf("the clock is %v off", d)
		}
	}
	// As long as the bound is not reached the offset counts, then the clock itself.
	c.offset.Store(int64(1000 * time.Hour))
	c.until.Store(math.MaxInt64)
	if got, least := c.read(), int64(1000*time.Hour); got < least {
		t.Errorf("read %d, want %d at least: the offset and what has passed", got, least)
	}
	c.until.Store(0)
	if d := time.Since(time.Unix(0, c.read())); d < -time.Minute || d > time.Minute {
		t.Errorf("the clock is %v off behind the bound", d)
	}
	if c.until.Load() == 0 || c.offset.Load() == int64(1000*time.Hour) {
		t.Error("the offset was not read anew")
	}
}
