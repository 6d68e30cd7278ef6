package foreign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// form is an INSERT, of which a server itself gives the ids to table native, and idproxy to table plain.
// %s stands for the table, which has a row 'ann' with id 1.
type form struct {
	name string
	text string
	args []any
}

// explicit is the id that a form brings.
const explicit = 500

var forms = []form{
	{name: "the id absent", text: "INSERT INTO %s (name) VALUES ('bob')"},
	{name: "several rows", text: "INSERT INTO %s (name) VALUES ('bob'), ('cid')"},
	{name: "NULL", text: "INSERT INTO %s (id, name) VALUES (NULL, 'bob')"},
	{name: "0", text: "INSERT INTO %s (id, name) VALUES (0, 'bob')"},
	{name: "DEFAULT", text: "INSERT INTO %s (id, name) VALUES (DEFAULT, 'bob')"},
	{name: "an explicit id", text: "INSERT INTO %s (id, name) VALUES (500, 'bob')"},
	{name: "no column list", text: "INSERT INTO %s VALUES (NULL, 'bob')"},
	{name: "SET", text: "INSERT INTO %s SET name = 'bob'"},
	{name: "IGNORE, the first row is there", text: "INSERT IGNORE INTO %s (name) VALUES ('ann'), ('bob')"},
	{name: "ON DUPLICATE KEY UPDATE, the row is there", text: "INSERT INTO %s (name) VALUES ('ann') ON DUPLICATE KEY UPDATE name = 'eve'"},
	{name: "ON DUPLICATE KEY UPDATE, the row is new", text: "INSERT INTO %s (name) VALUES ('bob') ON DUPLICATE KEY UPDATE name = 'eve'"},
	{name: "REPLACE", text: "REPLACE INTO %s (name) VALUES ('ann')"},
	{name: "INSERT ... SELECT", text: "INSERT INTO %s (name) SELECT 'bob'"},
	{name: "prepared", text: "INSERT INTO %s (name) VALUES (?), (?)", args: []any{"bob", "cid"}},
	{name: "a key that is there", text: "INSERT INTO %s (name) VALUES ('ann')"},
}

// outcome is what a client sees of a form: ids count from the first that was generated, new0. That of the
// statement before is before.
func (f form) outcome(t *testing.T, db *sql.DB, table string, first int64) string {
	t.Helper()
	seen := func(id int64) string {
		switch {
		case id == first-1:
			return "before"
		case id >= first && id != explicit:
			return fmt.Sprintf("new%d", id-first)
		}
		return fmt.Sprint(id)
	}
	var b strings.Builder
	result, err := db.Exec(fmt.Sprintf(f.text, table), f.args...)
	if refused, ok := errors.AsType[*mysql.MySQLError](err); ok {
		fmt.Fprintf(&b, "error %d", refused.Number)
	} else if err != nil {
		t.Fatal(err)
	} else {
		affected, _ := result.RowsAffected()
		id, _ := result.LastInsertId()
		fmt.Fprintf(&b, "affected %d, insert id %s", affected, seen(id))
	}
	var last int64
	assert.Must(t, db.QueryRow("SELECT LAST_INSERT_ID()").Scan(&last))
	fmt.Fprintf(&b, ", LAST_INSERT_ID() %s", seen(last))
	harness.MustExec(t, db, "DELETE FROM child")
	harness.MustExec(t, db, "INSERT INTO child (id, parent) VALUES (1, LAST_INSERT_ID())")
	if parent := harness.Count(t, db, "SELECT parent FROM child"); parent != last {
		t.Errorf("%s: a child names row %s, and LAST_INSERT_ID() is %s", f.name, seen(parent), seen(last))
	}
	rows := assert.Of(db.Query("SELECT id, name FROM " + table + " ORDER BY id")).Must(t)
	b.WriteString(":")
	for rows.Next() {
		var id int64
		var name string
		assert.Must(t, rows.Scan(&id, &name))
		fmt.Fprintf(&b, " %s %s", seen(id), name)
	}
	assert.Must(t, errors.Join(rows.Err(), rows.Close()))
	return b.String()
}

// start runs a server at a free address until the test ends.
func start(t *testing.T, user string, program func(addr string) *exec.Cmd) *mysql.Config {
	t.Helper()
	addr := harness.FreeAddr(t)
	cmd := program(addr)
	log := assert.Of(os.Create(filepath.Join(t.TempDir(), "log"))).Must(t)
	cmd.Stdout, cmd.Stderr = log, log
	assert.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
	})
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = user, "tcp", addr, "shop"
	db := harness.Open(t, c, "")
	defer db.Close()
	for deadline := time.Now().Add(3 * time.Minute); db.Ping() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the server does not answer:\n%s", text)
		}
	}
	return c
}

// build builds a command of a module of this folder.
func build(t *testing.T, module, command string, env ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), module)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-C", module, "-o", path, command)
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	assert.Must(t, err, string(out))
	return path
}

// testForms compares each form on a server's own AUTO_INCREMENT with idproxy. differ are those of
// which something differs, each with what is seen through idproxy.
func testForms(t *testing.T, server *mysql.Config, kind string, differ map[string]string) {
	db := harness.Open(t, server, "")
	for _, statement := range []string{
		"CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE)",
		"CREATE TABLE child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT NOT NULL)",
		"CREATE TABLE scrambled (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) NOT NULL)",
		"CREATE TABLE native (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE)",
	} {
		harness.MustExec(t, db, statement)
	}
	compareForms(t, server, kind, forms, differ)
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, upstream_kind: %s}]
sources: {scrambled: {segment: {scramble: {key: 0123456789abcdef0123456789abcdef, bits: 53}}}}
rules: [{table: shop.scrambled, column: id, source: scrambled}]
`, server.Addr, kind))
	through := harness.Open(t, server.Clone(), proxy.Addr("a"))
	harness.MustExec(t, through, "INSERT INTO scrambled (name) VALUES ('ann')") // whether it holds ids to come is asked of an empty table
}

// compareForms is testForms for tables that are there.
func compareForms(t *testing.T, server *mysql.Config, kind string, forms []form, differ map[string]string) {
	t.Helper()
	db := harness.Open(t, server.Clone(), "")
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, upstream_kind: %s}]
sources: {ids: {segment: {start: 1000}}}
rules: [{table: %s.plain, column: id, source: ids}]
`, server.Addr, kind, server.DBName))
	through := harness.Open(t, server.Clone(), proxy.Addr("a"))
	db.SetMaxOpenConns(1)
	through.SetMaxOpenConns(1)
	for _, f := range forms {
		for _, table := range []string{"native", "plain"} {
			harness.MustExec(t, db, "DELETE FROM "+table)
			harness.MustExec(t, db, "INSERT INTO "+table+" VALUES (1, 'ann')")
		}
		first := nextID(t, through, "plain")
		got := f.outcome(t, through, "plain", first)
		want := f.outcome(t, db, "native", nextID(t, db, "native"))
		if other, ok := differ[f.name]; ok {
			want = other
		}
		assert.Equal(t, f.name+": through idproxy", got, want)
	}
}

// nextID is the id behind the one that a row gets which is inserted and deleted again.
func nextID(t *testing.T, db *sql.DB, table string) int64 {
	t.Helper()
	result := harness.MustExec(t, db, "INSERT INTO "+table+" (name) VALUES ('gone')")
	id, err := result.LastInsertId()
	assert.MustTrue(t, err == nil && id != 0, "insert id %d, %v", id, err)
	harness.MustExec(t, db, "DELETE FROM "+table+" WHERE name = 'gone'")
	return id + 1
}

// TestGoMySQLServer: what it is is found out.
func TestGoMySQLServer(t *testing.T) {
	width.Wide(t, "it takes a minute to build")
	program := build(t, "gomysqlserver", ".", "CGO_ENABLED=0")
	server := start(t, "root", func(addr string) *exec.Cmd { return exec.Command(program, addr) })
	testForms(t, server, "auto", ofGoMySQLServer)
}

// ofGoMySQLServer are the forms of which a client sees something else than natively, there and in Dolt.
var ofGoMySQLServer = map[string]string{
	"IGNORE, the first row is there":            "affected 1, insert id new1, LAST_INSERT_ID() new1: 1 ann new1 bob",
	"ON DUPLICATE KEY UPDATE, the row is there": "affected 2, insert id 0, LAST_INSERT_ID() before: 1 eve", // natively the insert id is that of the row before
	"REPLACE":           "affected 2, insert id new0, LAST_INSERT_ID() new0: new0 ann", // natively the same
	"INSERT ... SELECT": "error 1235, LAST_INSERT_ID() before: 1 ann",
}
