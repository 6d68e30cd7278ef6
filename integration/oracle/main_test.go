package oracle

import (
	"testing"

	"idproxy/integration/harness"
)

// The servers do without what takes their time and no INSERT shows.
func TestMain(m *testing.M) {
	harness.Main(m, "--innodb-stats-persistent=OFF", "--innodb-stats-auto-recalc=OFF", "--innodb-flush-log-at-trx-commit=0")
}
