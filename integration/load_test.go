package integration

import (
	"context"
	"database/sql"
	"fmt"
	stdio "io"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// loader is one connection that loads files.
type loader struct {
	t    *testing.T
	conn *sql.Conn
}

func newLoader(t *testing.T, c *mysql.Config, addr string) *loader {
	t.Helper()
	c.MultiStatements = true
	conn, err := harness.Open(t, c, addr).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &loader{t, conn}
}

func (l *loader) exec(sql string) {
	l.t.Helper()
	if _, err := l.conn.ExecContext(l.t.Context(), sql); err != nil {
		l.t.Fatalf("%s: %v", sql, err)
	}
}

// load runs a LOAD DATA in which 'f' stands for the file, and says what an application sees of it.
func (l *loader) load(statement string, file stdio.Reader) string {
	l.t.Helper()
	name := fmt.Sprintf("%s_%p", l.t.Name(), l)
	mysql.RegisterReaderHandler(name, func() stdio.Reader { return file })
	defer mysql.DeregisterReaderHandler(name)
	result, err := l.conn.ExecContext(context.Background(), strings.Replace(statement, "'f'", "'Reader::"+name+"'", 1))
	if err != nil {
		return "error: " + err.Error()
	}
	affected, _ := result.RowsAffected()
	id, _ := result.LastInsertId()
	return fmt.Sprintf("affected %d, insert id %d", affected, id)
}

// rows runs a query and prints what comes back.
func (l *loader) rows(query string) string {
	l.t.Helper()
	rows, err := l.conn.QueryContext(l.t.Context(), query)
	if err != nil {
		return "error: " + err.Error()
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		l.t.Fatal(err)
	}
	var out strings.Builder
	values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			l.t.Fatal(err)
		}
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

// loadWorld is a table twice: with AUTO_INCREMENT, loaded directly, and with a plain column, loaded through idproxy.
type loadWorld struct {
	server         *servers.Server
	native, filled *loader
	proxy          *harness.Proxy
	nativeDB       string
	filledDB       string
}

func newLoadWorld(t *testing.T, s *servers.Server) *loadWorld {
	t.Helper()
	w := &loadWorld{server: s, nativeDB: harness.Database(t, s), filledDB: harness.Database(t, s)}
	w.proxy = harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000001}}}
rules:     [{table: "%s.*", column: id, source: ids}]
`, s.Addr, w.filledDB))
	w.native = newLoader(t, s.Config(w.nativeDB), "")
	w.filled = newLoader(t, s.Config(w.filledDB), w.proxy.Addr("a"))
	return w
}

// loadTable is what cases load into. Explicit ids stay below the generated ones.
const loadTable = "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARCHAR(200), u INT UNIQUE) AUTO_INCREMENT=1000001 DEFAULT CHARSET utf8mb4"

// create makes the table on both sides.
func (w *loadWorld) create(sql string) {
	w.native.t.Helper()
	w.native.exec(strings.Replace(sql, " AUTO,", " AUTO_INCREMENT,", 1))
	w.filled.exec(strings.Replace(strings.Replace(sql, " AUTO,", ",", 1), "AUTO_INCREMENT=1000001", "", 1))
}

// shown is all that an application sees of a load: what it returned, the warnings, the last insert id, and the rows in the
// order of their ids, those that were generated without their number.
func (l *loader) shown(statement string, file stdio.Reader) string {
	l.t.Helper()
	l.exec("DO LAST_INSERT_ID(5)")
	out := l.load(statement, file) + "\n"
	out += l.rows("SHOW WARNINGS")
	out += "last: " + l.rows("SELECT LAST_INSERT_ID()=5, (SELECT CONCAT_WS('/',a,u) FROM t WHERE id=LAST_INSERT_ID())")
	return out + l.rows("SELECT IF(id>1000000,'new',id), t.* FROM (SELECT * FROM t) t ORDER BY id")
}
