package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	sqldriver "github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// TestReloadPrepared: an INSERT that was prepared before a reload brought a rule for its table gets
// ids from then on, and none from when another has taken it.
func TestReloadPrepared(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	base := harness.OneListener(server.Addr) + "sources: {ids: {segment: {start: 5000}}}\n"
	rules := func(more string) string {
		return fmt.Sprintf("%srules:\n  - {table: %s.kept, column: id, source: ids}\n%s", base, db, more)
	}
	enforced := fmt.Sprintf("  - {table: %s.late, column: id, source: ids}\n", db)
	p := replay.StartProxy(t, harness.Spec{Config: rules("")})
	conn := assert.Of(harness.Open(t, server.Config(db), p.Addr("a")).Conn(t.Context())).Must(t)
	defer conn.Close()
	for _, text := range []string{
		"CREATE TABLE kept (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE late (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
		"CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
	} {
		assert.Of(conn.ExecContext(t.Context(), text)).Must(t)
	}
	insert := map[string]func() (int64, error){}
	for _, table := range []string{"kept", "late", "free"} {
		st := assert.Of(conn.PrepareContext(t.Context(), "INSERT INTO "+table+" (a) VALUES (?)")).Must(t)
		defer st.Close()
		insert[table] = func() (int64, error) {
			result, err := st.ExecContext(t.Context(), 1)
			if err != nil {
				return 0, err
			}
			return result.LastInsertId()
		}
	}
	want := func(table string, id int64) {
		t.Helper()
		assert.Of(insert[table]()).Equal(t, table+": id", id)
	}
	want("kept", 5000)
	want("late", 1)
	want("free", 1)
	reload := func(more string) {
		t.Helper()
		from := len(p.Log())
		assert.Must(t, p.Reload(rules(more)))
		waitLog(t, p, from, `msg="configuration reloaded"`)
	}
	reload(enforced)
	want("kept", 5001)
	want("free", 2)
	want("late", 5002)
	want("late", 5003)
	reload(strings.Replace(enforced, "source: ids", "source: ids, mode: observe", 1))
	want("late", 5004) // of the server's own counter
	assert.Of(conn.ExecContext(t.Context(), "DELETE FROM late")).Must(t)
	reload(enforced)
	want("late", 5004)
	want("kept", 5005)
}

// TestReloadPreparedInSQL is the same for names, prepared while no table had a rule: from a literal
// and from a variable.
func TestReloadPreparedInSQL(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		base := harness.OneListener(server.Addr) + "sources: {ids: {segment: {start: 5000}}}\n"
		p := replay.StartProxy(t, harness.Spec{Config: base})
		conn, err := harness.Open(t, server.Config(db), p.Addr("a")).Conn(t.Context())
		assert.Must(t, err)
		defer conn.Close()
		execute := func(texts ...string) (id int64) {
			t.Helper()
			for _, text := range texts {
				result := assert.Of(conn.ExecContext(t.Context(), text)).Must(t, text)
				id, _ = result.LastInsertId()
			}
			return id
		}
		execute("CREATE TABLE late (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "SET @q = 'INSERT INTO late (a) VALUES (2)'",
			"PREPARE l FROM 'INSERT INTO "+db+".late (a) VALUES (1)'", "PREPARE v FROM @q", "EXECUTE l", "EXECUTE v", `PREPARE q FROM 'DO "x"'`)
		from := len(p.Log())
		rules := fmt.Sprintf("%srules: [{table: %s.late, column: id, source: ids}]\n", base, db)
		assert.Must(t, p.Reload(rules))
		waitLog(t, p, from, `msg="configuration reloaded"`)
		execute("EXECUTE q") // unread, for what "x" is was not known: it cannot name the table
		assert.Equal(t, "prepared from a literal: id", execute("EXECUTE l"), 5000)
		_, err = conn.ExecContext(t.Context(), "EXECUTE v") // whose text was not read
		e, ok := errors.AsType[*sqldriver.MySQLError](err)
		assert.True(t, ok && e.Number == mysql.ER_NOT_SUPPORTED_YET, "EXECUTE v: %v, want error 1235", err)
		assert.Equal(t, "prepared anew from a variable: id", execute("PREPARE v FROM @q", "EXECUTE v"), 5001)
	})
}
