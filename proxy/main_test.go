package proxy

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// loops is Config.Loops of the servers that tests start.
var loops int

// TestMain runs all tests over goroutines, and then over event loops. Fuzzers run once: the one of the
// drivers plays over both.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run())
	}
	passes := []int{0, 2}
	if flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.fuzzworker").Value.String() == "true" {
		passes = passes[:1]
	}
	for _, loops = range passes {
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
