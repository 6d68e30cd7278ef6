package harness

import (
	"database/sql"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// Lost is how many connections a server says it has lost without a word, once an account has none.
func Lost(t testing.TB, root *sql.DB, user string) (n int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		var there int
		assert.Must(t, root.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER IN (?, 'unauthenticated user')", user).Scan(&there))
		if there == 0 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%d connections of %s do not end", there, user)
		}
	}
	rows := assert.Of(root.Query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Aborted_clients', 'Aborted_connects')")).Must(t)
	defer rows.Close()
	for rows.Next() {
		var name string
		var one int
		assert.Must(t, rows.Scan(&name, &one))
		n += one
	}
	return n
}
