package harness

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// MiB is a mebibyte.
const MiB = 1 << 20

// Root opens a database of a server as root.
func Root(tb testing.TB, s *servers.Server, database string) *sql.DB {
	tb.Helper()
	c := s.Config(database)
	c.User, c.Passwd = servers.RootUser, servers.RootPassword
	return Open(tb, c, "")
}

// Tables makes a database as [Database] does, with tables, and opens it.
func Tables(t *testing.T, s *servers.Server, statements ...string) (name string, direct *sql.DB) {
	t.Helper()
	name = Database(t, s)
	direct = Open(t, s.Config(name), "")
	MustExec(t, direct, statements...)
	return name, direct
}

// MustExec runs statements that have to succeed, and returns the result of the last one.
func MustExec(t *testing.T, db *sql.DB, queries ...string) (last sql.Result) {
	t.Helper()
	for _, query := range queries {
		last = assert.Of(db.Exec(query)).Must(t, fmt.Sprintf("%.80s", query))
	}
	return last
}

// WantError fails the test when err is not the server's error of this number, with these words in
// its message.
func WantError(t *testing.T, err error, number uint16, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok || e.Number != number {
		t.Errorf("got %v; want error %d", err, number)
		return
	}
	for _, w := range words {
		assert.True(t, strings.Contains(e.Message, w), "message %q lacks %q", e.Message, w)
	}
}

// Count runs a query that gives one number.
func Count(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	assert.Must(t, db.QueryRow(query).Scan(&n), query)
	return n
}

// StoreDSN is how a configuration names a database as the store of a source.
func StoreDSN(s *servers.Server, db string) string {
	c := s.Config(db)
	return c.FormatDSN()
}

// AssignedIDs matches what an error says of the ids of a statement whose reply was lost: first,
// last, table.
var AssignedIDs = regexp.MustCompile(`ids (\d+) to (\d+) were assigned in (\S+):`)
