package integration_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	sqldriver "github.com/go-sql-driver/mysql"

	"idproxy/integration/harness"
)

// TestReloadPrepared: an INSERT that was prepared before a reload brought a rule for its table must not go in without an id;
// one that had a rule keeps it.
func TestReloadPrepared(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	base := oneListener(server.Addr) + "sources: {ids: {segment: {start: 5000}}}\n"
	rules := func(more string) string {
		return fmt.Sprintf("%srules:\n  - {table: %s.kept, column: id, source: ids}\n%s", base, db, more)
	}
	enforced := fmt.Sprintf("  - {table: %s.late, column: id, source: ids}\n", db)
	p := startProxy(t, harness.Spec{Config: rules("")})
	conn, err := harness.Open(t, server.Config(db), p.Addr("a")).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range []string{
		"CREATE TABLE kept (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE late (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
		"CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
	} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	insert := map[string]func() (int64, error){}
	for _, table := range []string{"kept", "late", "free"} {
		st, err := conn.PrepareContext(t.Context(), "INSERT INTO "+table+" (a) VALUES (?)")
		if err != nil {
			t.Fatal(err)
		}
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
		if got, err := insert[table](); err != nil || got != id {
			t.Errorf("%s: id %d, %v; want %d", table, got, err, id)
		}
	}
	want("kept", 5000)
	want("late", 1)
	want("free", 1)
	from := len(p.Log())
	if err := os.WriteFile(p.ConfigPath, []byte(rules(enforced)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitLog(t, p, from, `msg="configuration reloaded"`)
	want("kept", 5001)
	want("free", 2)
	_, err = insert["late"]()
	if e, ok := errors.AsType[*sqldriver.MySQLError](err); !ok || e.Number != mysql.ER_NEED_REPREPARE {
		t.Errorf("late: %v, want error 1615", err)
	}
	result, err := conn.ExecContext(t.Context(), "INSERT INTO late (a) VALUES (?)", 1) // prepared anew
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := result.LastInsertId(); id != 5002 {
		t.Errorf("late, prepared anew: id %d, want 5002", id)
	}
}
