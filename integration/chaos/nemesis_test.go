package chaos

import (
	"math/rand/v2"
	"testing"
	"time"
)

// nemesis harms a world.
type nemesis struct {
	*world
	random *rand.Rand
	done   map[string]int
}

// rage does harm for a while.
func (n *nemesis) rage(t *testing.T, lasts time.Duration) {
	t.Helper()
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		time.Sleep(time.Duration(100+n.random.IntN(500)) * time.Millisecond)
		one := n.nodes[n.random.IntN(len(n.nodes))]
		n.done["kill"]++
		one.kill(t)
		one.start(t)
	}
}
