package harness

import (
	"context"
	"database/sql"
	"fmt"
	stdio "io"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
)

// Loader is one connection that loads files.
type Loader struct {
	T    *testing.T
	Conn *sql.Conn
}

// NewLoader connects, at another address than the configuration's unless addr is empty.
func NewLoader(t *testing.T, c *mysql.Config, addr string) *Loader {
	t.Helper()
	c.MultiStatements = true
	conn := assert.Of(Open(t, c, addr).Conn(t.Context())).Must(t)
	return &Loader{t, conn}
}

// Exec runs statements that have to succeed.
func (l *Loader) Exec(texts ...string) {
	l.T.Helper()
	for _, sql := range texts {
		assert.Of(l.Conn.ExecContext(l.T.Context(), sql)).Must(l.T, sql)
	}
}

// Load runs a LOAD DATA in which 'f' stands for the file, and says what an application sees of it.
func (l *Loader) Load(statement string, file stdio.Reader) string {
	l.T.Helper()
	name := fmt.Sprintf("%s_%p", l.T.Name(), l)
	mysql.RegisterReaderHandler(name, func() stdio.Reader { return file })
	defer mysql.DeregisterReaderHandler(name)
	result, err := l.Conn.ExecContext(context.Background(), strings.Replace(statement, "'f'", "'Reader::"+name+"'", 1))
	if err != nil {
		return "error: " + err.Error()
	}
	affected, _ := result.RowsAffected()
	id, _ := result.LastInsertId()
	return fmt.Sprintf("affected %d, insert id %d", affected, id)
}

// Rows runs a query and prints what comes back.
func (l *Loader) Rows(query string) string {
	l.T.Helper()
	rows, err := l.Conn.QueryContext(l.T.Context(), query)
	if err != nil {
		return "error: " + err.Error()
	}
	defer rows.Close()
	columns := assert.Of(rows.Columns()).Must(l.T)
	var out strings.Builder
	values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		assert.Must(l.T, rows.Scan(targets...))
		for _, v := range values {
			if v.Valid {
				fmt.Fprintf(&out, "%q ", v.String)
			} else {
				out.WriteString("NULL ")
			}
		}
		out.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		return "error: " + err.Error()
	}
	return out.String()
}

// Shown is all that an application sees of a load: what it returned, the warnings, the last insert
// id, and the rows in the order of their ids. Generated ids are shown without their number.
func (l *Loader) Shown(statement string, file stdio.Reader) string {
	l.T.Helper()
	l.Exec("DO LAST_INSERT_ID(5)")
	out := l.Load(statement, file) + "\n"
	out += l.Rows("SHOW WARNINGS")
	out += "last: " + l.Rows("SELECT LAST_INSERT_ID()=5, (SELECT CONCAT_WS('/',a,u) FROM t WHERE id=LAST_INSERT_ID())")
	return out + l.Rows("SELECT IF(id>1000000,'new',id), t.* FROM (SELECT * FROM t) t ORDER BY id")
}
