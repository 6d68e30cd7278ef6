package selects

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// selectValues are statements whose values, errors or rows depend on how the query is run; "; "
// stands between those of one session. Each is run natively and through idproxy on a table without
// AUTO_INCREMENT.
var selectValues = []struct {
	text    string
	refused bool // by idproxy on MariaDB, where values would be rounded on their way
	always  bool // or on both servers
}{
	{text: "INSERT INTO t (d) SELECT 1/3 FROM s ORDER BY v"},
	{text: "INSERT INTO t (f) SELECT v/3 FROM s ORDER BY v"},
	{text: "INSERT INTO t (f) SELECT fd*fd FROM s ORDER BY v DESC LIMIT 2"},
	{text: "INSERT INTO t (f) SELECT SUM(fd)/3 FROM s GROUP BY v % 2", refused: true},
	{text: "INSERT INTO t (d) SELECT AVG(v) FROM s GROUP BY v % 2", refused: true},
	{text: "INSERT INTO t (b) SELECT a.v/3 FROM s a JOIN s b ON a.v=b.v ORDER BY a.v", refused: true},
	{text: "INSERT INTO t (d,f) SELECT dd,fd FROM s ORDER BY v"},
	{text: "INSERT INTO t (d,b) SELECT dd*dd+1,w FROM s ORDER BY v"},
	{text: "INSERT INTO t (b) SELECT 'x' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t WHERE b='x')"},
	{text: "INSERT INTO t (a,b) SELECT v,w FROM s ORDER BY v ON DUPLICATE KEY UPDATE b=date"},
	{text: "INSERT INTO t (a,b) SELECT v,w FROM s ON DUPLICATE KEY UPDATE b=s.date"},
	{text: "SET TRANSACTION READ ONLY; INSERT INTO t (a) SELECT v FROM s"},
	{text: "SET TRANSACTION READ ONLY; SELECT 1; INSERT INTO t (a) SELECT v FROM s"},
	{text: "SET @@tx_read_only=1; INSERT INTO t (a) SELECT v FROM s"}, // a name that MySQL does not have
	{text: "SET TRANSACTION READ ONLY; START TRANSACTION; INSERT INTO t (a) SELECT v FROM s"},
	{text: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; COMMIT; INSERT INTO t (a) SELECT v FROM s"},
	{text: "INSERT INTO t (a) SELECT v FROM s /*!40000 ORDER BY v */", always: true},
	{text: "INSERT INTO t (a) /*!40000 SELECT */ v FROM s", always: true},
	{text: "SELECT 1/0; INSERT INTO t (a) SELECT @@warning_count FROM s LIMIT 1", always: true},
	{text: "INSERT INTO t (a) SELECT v FROM s WHERE v > 1 ORDER BY v LIMIT 1 OFFSET 1"},
	{text: "SET sql_select_limit=1; INSERT INTO t (a) SELECT v FROM s ORDER BY v"},
	{text: "INSERT INTO t (a) SELECT 9223372036854775807 + (v > 2) FROM s"},
	{text: "SET sql_mode='ANSI_QUOTES'; INSERT INTO t (b) SELECT \"w\" FROM s ORDER BY v"},
}

// TestSelectValues compares what INSERT ... SELECT stores with what it stores natively.
func TestSelectValues(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		direct := harness.Open(t, server.Config(name), "")
		direct.SetMaxOpenConns(1)
		for _, q := range []string{
			"CREATE TABLE s (v INT PRIMARY KEY, w VARCHAR(20), date VARCHAR(20), fd DOUBLE(10,2), dd DECIMAL(20,10))",
			"INSERT INTO s VALUES (1,'a','x',1.1,0.3333333333),(2,'b','y',2.2,1.5),(3,'c','z',0.35,7)",
		} {
			harness.MustExec(t, direct, q)
		}
		proxy := harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {}}}
rules: [{table: "%[2]s.t", column: id, source: ids}]
`, server.Addr, name))
		for _, tt := range selectValues {
			t.Run(tt.text, func(t *testing.T) {
				const columns = " PRIMARY KEY, a BIGINT UNIQUE, b VARCHAR(40), d DECIMAL(40,20), f DOUBLE)"
				run := func(column, addr string) (string, error) {
					harness.MustExec(t, direct, "DROP TABLE IF EXISTS t")
					harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT "+column+columns)
					db := harness.Open(t, server.Config(name), addr)
					db.SetMaxOpenConns(1)
					var err error
					for _, q := range strings.Split(tt.text, "; ") {
						if _, err = db.Exec(q); err != nil {
							break
						}
					}
					return valuesOf(t, direct), err
				}
				want, wantErr := run("AUTO_INCREMENT", "")
				got, err := run("NOT NULL", proxy.Addr("a"))
				if tt.always || tt.refused && server.Kind.String() == "MariaDB" {
					assert.True(t, err != nil && strings.Contains(err.Error(), "1235") && got == "", "rows %q, %v; want a refusal", got, err)
					return
				}
				assert.True(t, got == want && fmt.Sprint(err) == fmt.Sprint(wantErr), "rows %s, %v\nnatively %s, %v", got, err, want, wantErr)
			})
		}
	})
}

// valuesOf prints the rows of t in the order of their ids, without those.
func valuesOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows := assert.Of(db.Query("SELECT CONCAT_WS(',',IFNULL(a,'-'),IFNULL(b,'-'),IFNULL(d,'-'),IFNULL(f,'-')) FROM t WHERE id > 0 ORDER BY id")).Must(t)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var row string
		assert.Must(t, rows.Scan(&row))
		all = append(all, row)
	}
	assert.Must(t, rows.Err())
	return strings.Join(all, " ")
}

// TestSelectLeavesOut: beside the values of a query MariaDB numbers the rows of a view's join in
// front of the sort, and with them rows that the LIMIT leaves out. Ids behind those of as many rows
// as went in may have rows then, and are not issued again.
func TestSelectLeavesOut(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	direct := wireclient.Open(t, server.Addr, name)
	direct.Must(t, "CREATE TABLE a (k INT PRIMARY KEY, v INT)", "INSERT INTO a SELECT seq, (seq*7) % 101 FROM seq_1_to_20",
		"CREATE TABLE b (k INT PRIMARY KEY, w INT)", "INSERT INTO b SELECT seq, seq FROM seq_1_to_20",
		"CREATE VIEW ab AS SELECT a.v, b.w FROM a JOIN b ON a.k=b.k", "CREATE TABLE t (id BIGINT, d DOUBLE)")
	proxy := harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {}}}
rules: [{table: "%[2]s.t", column: id, source: ids}]
`, server.Addr, name))
	s := wireclient.Open(t, proxy.Addr("a"), name)
	assert.MustEqual(t, "rows went in", s.Must(t, "INSERT INTO t (d) SELECT v/3 FROM ab ORDER BY v+w LIMIT 5").Affected, 5)
	n := direct.Value(t, "SELECT MAX(id)-MIN(id) FROM t")
	assert.True(t, n != "4", "no row was left out: the test shows nothing")
	s.Must(t, "INSERT INTO t (d) VALUES (0)"+strings.Repeat(",(0)", 30))
	assert.Equal(t, "ids were issued twice", direct.Value(t, "SELECT COUNT(*)-COUNT(DISTINCT id) FROM t"), "0")
}
