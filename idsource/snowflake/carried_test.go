package snowflake

import (
	"math"
	"testing"
	"time"

	"idproxy/integration/assert"
)

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
