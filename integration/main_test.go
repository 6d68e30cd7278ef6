package integration

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"idproxy/integration/harness"
)

// TestMain lets more tests run at once than there are processors, unless -parallel says how many: they wait for replies
// most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	harness.Main(m)
}
