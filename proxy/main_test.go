package proxy

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// loops is Config.Loops of the servers that tests start.
var loops int

// TestMain runs all tests over goroutines, and then over event loops.
func TestMain(m *testing.M) {
	for _, loops = range []int{0, 2} {
		fmt.Println("event loops:", loops)
		if code := m.Run(); code != 0 {
			os.Exit(code)
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
