//go:build long

package chaos

import (
	"testing"
	"time"
)

// TestChaosWithoutFence is TestChaos with the fence left out: the control that shows that duplicates are seen.
func TestChaosWithoutFence(t *testing.T) {
	ids, twice, done := chaos(t, time.Minute, false)
	if twice == 0 {
		t.Errorf("without the fence none of %d ids came twice; what was done:\n%s", ids, done)
	}
}
