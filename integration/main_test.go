package integration

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"idproxy/integration/harness"
)

// TestMain lets more tests run at once than there are processors: they wait for replies most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	harness.Main(m)
}
