package oracle

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"idproxy/integration/harness"
)

// The servers do without what takes their time and no INSERT shows. This room takes longest, so that
// twice as many of its tests run at once as of others.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	harness.Main(m, "--performance-schema=OFF", "--innodb-stats-persistent=OFF", "--innodb-stats-auto-recalc=OFF", "--innodb-flush-log-at-trx-commit=0")
}
