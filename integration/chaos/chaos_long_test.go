//go:build long

package chaos

import (
	"testing"
	"time"

	"idproxy/integration/assert"
)

// TestChaosWithoutFence is TestChaos with the fence left out: the control that shows that
// duplicates are seen.
func TestChaosWithoutFence(t *testing.T) {
	r, done := chaos(t, uint64(time.Now().UnixNano()), time.Minute, false)
	assert.True(t, r.twice != 0, "without the fence none of %d ids came twice; what was done:\n%s", r.ids, done)
}
