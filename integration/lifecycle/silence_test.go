package lifecycle

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestSilence: a transaction whose client says nothing is rolled back by the server, its connection is
// closed, and a pool goes on with another one without an error.
func TestSilence(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	p := harness.Start(t, harness.Spec{Config: harness.OneListener(server.Addr) + "limits: {transaction_timeout: 3s, idle_timeout: 4s}\n"})
	pool := harness.Open(t, server.Config(db), p.Addr("a"))
	pool.SetMaxOpenConns(1)
	must := func(err error) {
		t.Helper()
		assert.Must(t, err)
	}
	_, err := pool.Exec("CREATE TABLE t (a INT)")
	must(err)
	tx, err := pool.Begin()
	must(err)
	_, err = tx.Exec("INSERT INTO t VALUES (1)")
	must(err)
	waitLog(t, p, 0, `msg="limit reached".*limit=transaction_timeout.*ERROR 1927`)
	assert.Of(tx.Exec("INSERT INTO t VALUES (2)")).Fails(t, "the transaction goes on", "")
	_ = tx.Rollback() // its connection is gone
	rows := -1
	must(pool.QueryRow("SELECT COUNT(*) FROM t").Scan(&rows))
	waitLog(t, p, 0, `limit=idle_timeout`)
	must(pool.QueryRow("SELECT COUNT(*) FROM t").Scan(&rows))
	assert.Equal(t, "rows are there", rows, 0)
}
