package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idproxy/integration/harness"
)

// TestIdsEndByAllProcesses: a process that takes few numbers of a series says when they end by what
// another one takes, too.
func TestIdsEndByAllProcesses(t *testing.T) {
	server := harness.MariaDB(t)
	db, kept := harness.Database(t, server), harness.Database(t, server)
	const last, others = 1_000_000_000, 4000
	config := fmt.Sprintf("stores: {main: {mysql: {dsn: %q}}}\nsources: {ids: {segment: {store: main, step: 10, last: %d}}}\n"+
		"rules: [{table: %s.t, column: id, source: ids}]\n", harness.StoreDSN(server, kept), last, db)
	few, many := start(t, server, db, config), start(t, server, db, config)
	one, other := few.open(t, 1), many.open(t, 1)
	harness.MustExec(t, one, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	began := time.Now()
	harness.MustExec(t, one, "INSERT INTO t (a) VALUES (1)")
	harness.MustExec(t, other, "INSERT INTO t (a) VALUES (1)"+strings.Repeat(",(1)", others-1))
	eventually(t, "the ids end by what all take", func() bool {
		harness.MustExec(t, one, "INSERT INTO t (a) VALUES (1)") // it fetches a range behind those of the other one
		g := few.state(t).Sources[0].Segment
		if g.YearsLeft == nil {
			return false
		}
		took := max(time.Since(began), 10*time.Second)
		return last/(*g.YearsLeft*365.25*86400)*took.Seconds() >= others
	})
}
