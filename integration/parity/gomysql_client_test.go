package parity

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// libraryStep is something that a program does with go-mysql's client. What it sees has to be the
// same on the server itself, where the tables have AUTO_INCREMENT, and through idproxy, where they
// have not.
type libraryStep struct {
	name string
	do   func(c *library) (seen any, err error)
}

// library is a session of go-mysql's client.
type library struct {
	*client.Conn
	db string
}

// libraryTables are orders and items, each with a rule, and notes without one. %s is the id's
// attribute.
var libraryTables = []string{
	`CREATE TABLE orders (id BIGINT UNSIGNED NOT NULL PRIMARY KEY %s, a VARCHAR(200), n BIGINT UNSIGNED, f DOUBLE, b BLOB, d DATETIME(6), u INT UNIQUE)
		CHARACTER SET utf8mb4`,
	"CREATE TABLE items (id BIGINT UNSIGNED NOT NULL PRIMARY KEY %s, a VARCHAR(200), u INT UNIQUE)",
	"CREATE TABLE notes (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a VARCHAR(200))",
	"CREATE PROCEDURE twice(x INT) BEGIN SELECT x; SELECT x + 1, 'two'; END",
}

// compareLibrary runs the steps both ways on one session each and compares all that they see.
func compareLibrary(t *testing.T, server *servers.Server, steps []libraryStep) {
	t.Helper()
	var seen [2][]string
	for i, attribute := range []string{"AUTO_INCREMENT", ""} {
		db, addr := harness.Database(t, server), server.Addr
		if attribute == "" {
			addr = harness.StartWith(t, server.Addr, "ids: {segment: {}}, more: {segment: {}}",
				fmt.Sprintf("{table: %s.orders, column: id, source: ids}, {table: %[1]s.items, column: id, source: more}", db)).Addr("a")
		}
		setUp := harness.Open(t, server.Config(db), "")
		for _, text := range libraryTables {
			if strings.Contains(text, "%s") {
				text = fmt.Sprintf(text, attribute)
			}
			assert.Of(setUp.Exec(text)).Must(t)
		}
		seen[i] = runLibrary(t, addr, db, steps)
	}
	assert.Equal(t, "(-server itself, +idproxy)", cmp.Diff(seen[0], seen[1]), "")
}

// runLibrary runs the steps on one session and says what each has seen.
func runLibrary(t *testing.T, addr, db string, steps []libraryStep) (seen []string) {
	t.Helper()
	c, err := client.Connect(addr, servers.AppUser, servers.AppPassword, db, func(c *client.Conn) error {
		return errors.Join(c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS), c.SetCapability(mysql.CLIENT_LOCAL_FILES))
	})
	assert.Must(t, err)
	defer func() { assert.NoError(t, c.Quit()) }()
	for _, step := range steps {
		saw, err := step.do(&library{c, db})
		text := fmt.Sprintf("%s: %s, %v", step.name, describe(saw), err)
		t.Log(text)
		seen = append(seen, strings.ReplaceAll(text, db, "DB"))
	}
	return seen
}

// describe says what a program can see of a result.
func describe(seen any) string {
	results, ok := seen.([]*mysql.Result)
	if r, one := seen.(*mysql.Result); one {
		results, ok = []*mysql.Result{r}, true
	}
	if !ok {
		return fmt.Sprint(seen)
	}
	var out strings.Builder
	for _, r := range results {
		if r == nil {
			out.WriteString("no result; ")
			continue
		}
		fmt.Fprintf(&out, "affected %d, insert id %d, status %#x, warnings %d", r.AffectedRows, r.InsertId, r.Status, r.Warnings)
		if r.HasResultset() {
			out.WriteString(describeRows(r.Resultset))
		}
		out.WriteString("; ")
	}
	return out.String()
}

func describeRows(r *mysql.Resultset) string {
	var out strings.Builder
	for _, f := range r.Fields {
		fmt.Fprintf(&out, " %s/%d", f.Name, f.Type)
	}
	for _, row := range r.Values {
		var values []string
		for _, v := range row {
			values = append(values, fmt.Sprintf("%q", fmt.Sprint(readable(v))))
		}
		fmt.Fprintf(&out, " (%s)", strings.Join(values, ", "))
	}
	return out.String()
}

// readable is a value in readable form, bytes as text.
func readable(v mysql.FieldValue) any {
	if b, ok := v.Value().([]byte); ok {
		return string(b)
	}
	return v.Value()
}

// execute runs one text, or prepares and runs it when there are arguments.
func execute(sql string, args ...any) func(*library) (any, error) {
	return func(c *library) (any, error) {
		r, err := c.Execute(sql, args...)
		return r, err
	}
}

// executeAll runs a text of several statements.
func executeAll(sql string) func(*library) (any, error) {
	return func(c *library) (any, error) {
		var all []*mysql.Result
		var failed error
		_, err := c.ExecuteMultiple(sql, func(r *mysql.Result, err error) {
			failed = errors.Join(failed, err)
			all = append(all, r)
		})
		return all, errors.Join(err, failed)
	}
}

// stream reads a result row by row.
func stream(sql string) func(*library) (any, error) {
	return func(c *library) (any, error) {
		var rows []string
		var r mysql.Result
		err := c.ExecuteSelectStreaming(sql, &r, func(row []mysql.FieldValue) error {
			rows = append(rows, fmt.Sprintf("%v %v", readable(row[0]), readable(row[1])))
			return nil
		}, nil)
		return rows, err
	}
}

// state does something and says in which state it leaves the session.
func state(do func(*client.Conn) error) func(*library) (any, error) {
	return func(c *library) (any, error) {
		err := do(c.Conn)
		return fmt.Sprintf("%s %s %t %t", c.GetDB(), c.GetCharset(), c.IsAutoCommit(), c.IsInTransaction()), err
	}
}

const lastInsertID = "SELECT LAST_INSERT_ID()"

var librarySteps = []libraryStep{
	{"INSERT", execute("INSERT INTO orders (a, u) VALUES ('one', 1)")},
	{"LAST_INSERT_ID()", execute(lastInsertID)},
	{"INSERT of rows", execute("INSERT INTO orders (a) VALUES ('two'), ('three'), ('four')")},
	{"failing INSERT", execute("INSERT INTO orders (a, u) VALUES ('again', 1)")},
	{"LAST_INSERT_ID() behind it", execute(lastInsertID)},
	{"several statements", executeAll("INSERT INTO orders (a) VALUES ('five'); SELECT LAST_INSERT_ID(), 'x'; INSERT INTO notes (a) VALUES ('n'); SELECT LAST_INSERT_ID()")},
	{"one of them fails", executeAll("INSERT INTO orders (a) VALUES ('six'); INSERT INTO orders (a, u) VALUES ('again', 1); SELECT 1")},
	{"BEGIN", state((*client.Conn).Begin)},
	{"INSERT in a transaction", execute("INSERT INTO orders (a) VALUES ('kept')")},
	{"COMMIT", state((*client.Conn).Commit)},
	{"BEGIN again", state(func(c *client.Conn) error { return c.BeginTx(false, "SERIALIZABLE") })},
	{"INSERT that is undone", execute("INSERT INTO orders (a) VALUES ('undone')")},
	{"ROLLBACK", state((*client.Conn).Rollback)},
	{"BEGIN, reading only", state(func(c *client.Conn) error { return c.BeginTx(true, "") })},
	{"INSERT in that", execute("INSERT INTO items (a) VALUES ('refused')")},
	{"ROLLBACK of that", state((*client.Conn).Rollback)},
	{"autocommit", state((*client.Conn).SetAutoCommit)},
	{"ping", state((*client.Conn).Ping)},
	{"rows", stream("SELECT id, a FROM orders ORDER BY id")},
	{"rows that are broken off", stream("SELECT id, a FROM orders WHERE (SELECT 1 UNION SELECT 2) = id")},
	{"gbk", state(func(c *client.Conn) error { return c.SetCharset("gbk") })},
	{"INSERT in gbk", execute("INSERT INTO orders (a) VALUES ('\xd5\x5c\xd6\xd0')")},
	{"utf8mb4", state(func(c *client.Conn) error { return c.SetCharset("utf8mb4") })},
	{"what came of it", execute("SELECT id, a, HEX(a) FROM orders ORDER BY id DESC LIMIT 1")},
	{"another schema", state(func(c *client.Conn) error { return c.UseDB("information_schema") })},
	{"INSERT without its table", execute("INSERT INTO orders (a) VALUES ('lost')")},
	{"INSERT with its schema", func(c *library) (any, error) {
		r, err := c.Execute("INSERT INTO " + c.db + ".orders (a) VALUES ('named')")
		return r, err
	}},
	{"back", func(c *library) (any, error) { return c.GetDB(), c.UseDB(c.db) }},
	{"list of fields", func(c *library) (any, error) {
		fields, err := c.FieldList("orders", "")
		return len(fields), err
	}},
	{"arguments", execute("SELECT ?, ?, ?, ?, ?, ?, ?", nil, -1, "text", []byte{0, 255}, 1.5, uint64(1<<63+1), "2026-01-02 03:04:05.678901")},
	{"no argument but NULL", execute("SELECT ?, ?", nil, nil)},
	{"wrong number of them", execute("SELECT ?", 1, 2)},
	{"procedure", func(c *library) (any, error) {
		s, err := c.Prepare("CALL twice(?)")
		if err != nil {
			return nil, err
		}
		var all []*mysql.Result
		err = s.ExecuteProcedureMultiResults(func(r *mysql.Result, err error) error {
			all = append(all, r)
			return err
		}, int8(1))
		return all, errors.Join(err, s.Close())
	}},
	{"LOCAL INFILE", func(c *library) (any, error) {
		r, err := c.ExecQueryRelayLocalInfile("LOAD DATA LOCAL INFILE 'x' INTO TABLE notes (a)", func([]byte) (io.Reader, error) {
			return strings.NewReader("line one\nline two\n"), nil
		})
		return r, err
	}},
	{"its own number", func(c *library) (any, error) {
		r, err := c.Execute("SELECT CONNECTION_ID()")
		if err != nil {
			return nil, err
		}
		id, err := r.GetUint(0, 0)
		return id == uint64(c.GetConnectionID()), err
	}},
}

func TestGoMySQLClient(t *testing.T) {
	t.Parallel()
	for name, server := range harness.AllServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareLibrary(t, server, librarySteps)
		})
	}
}

// arguments are those of one execution.
type arguments []any

// preparing prepares a text once and executes it with each of the arguments.
func preparing(sql string, executions ...arguments) func(*library) (any, error) {
	return func(c *library) (any, error) {
		s, err := c.Prepare(sql)
		if err != nil {
			return nil, err
		}
		var all []*mysql.Result
		var failed error
		for _, args := range executions {
			r, err := s.Execute(args...)
			all, failed = append(all, r), errors.Join(failed, err)
		}
		return all, errors.Join(failed, s.Close())
	}
}

// withAttribute has MySQL told something beside a statement, of which there is one in do.
func withAttribute(do func(*library) (any, error)) func(*library) (any, error) {
	return func(c *library) (any, error) {
		if err := c.SetQueryAttributes(mysql.QueryAttribute{Name: "trace", Value: "4711"}); err != nil {
			return nil, err
		}
		saw, err := do(c)
		return saw, errors.Join(err, c.SetQueryAttributes())
	}
}

const insertAll = "INSERT INTO orders (a, n, f, b, d) VALUES (?, ?, ?, ?, ?)"

var preparedSteps = []libraryStep{
	{"NULLs alone at first", preparing(insertAll, arguments{nil, nil, nil, nil, nil}, arguments{"then text", nil, nil, nil, nil})},
	{"all types", preparing(insertAll,
		arguments{"text", 7, 1.5, []byte{0, 255}, "2026-01-02 03:04:05.678901"},
		arguments{nil, nil, nil, nil, nil},
		arguments{[]byte("bytes"), uint64(1<<63 + 1), float32(0.25), "", "2026-01-02"},
		arguments{int8(-8), uint8(200), int16(-16), uint16(60_000), nil},
		arguments{true, uint32(1 << 31), int32(-32), int64(-64), nil},
	)},
	{"LAST_INSERT_ID()", execute(lastInsertID)},
	{"rows", preparing("INSERT INTO orders (a) VALUES (?), (?), ('third')", arguments{"first", nil}, arguments{1, 2})},
	{"no parameters", preparing("INSERT INTO orders (a) VALUES ('none')", nil, nil)},
	{"executed at once", execute("INSERT INTO orders (a) VALUES (?)", "once")},
	{"SET", preparing("INSERT INTO orders SET a = ?", arguments{"set"})},
	{"id as NULL or 0", preparing("INSERT INTO orders (id, a) VALUES (?, ?)",
		arguments{nil, "NULL"}, arguments{0, "0"}, arguments{uint64(0), "0"}, arguments{"0", "text 0"}, arguments{nil, nil})},
	{"id in one row of two", preparing("INSERT INTO orders (a, id) VALUES (?, ?), ('x', NULL)", arguments{"y", nil}, arguments{"z", 0})},
	{"id given", preparing("INSERT INTO items (id, a) VALUES (?, ?)",
		arguments{500, "int"}, arguments{"600", "text"}, arguments{uint64(1<<63 + 5), "large"}, arguments{500, "again"})},
	{"LAST_INSERT_ID() behind ids given", execute(lastInsertID)},
	{"some fail", preparing("INSERT INTO orders (a, u) VALUES (?, ?)", arguments{"a", 50}, arguments{"b", 50}, arguments{"c", 51})},
	{"one fails", preparing("INSERT INTO orders (a, u) VALUES (?, ?)", arguments{"d", 51})},
	{"LAST_INSERT_ID() behind it", execute(lastInsertID)},
	{"LAST_INSERT_ID() in it", preparing("INSERT INTO orders (a, n) VALUES (?, LAST_INSERT_ID())", arguments{"e"}, arguments{"f"})},
	{"IGNORE", preparing("INSERT IGNORE INTO orders (a, u) VALUES (?, ?)", arguments{"g", 51}, arguments{"h", 52})},
	{"ON DUPLICATE KEY UPDATE", preparing("INSERT INTO orders (a, u) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = ?",
		arguments{"i", 52, "j"}, arguments{"k", 53, "l"}, arguments{"m", 53, "l"})},
	{"REPLACE", preparing("REPLACE INTO orders (a, u) VALUES (?, ?)", arguments{"o", 53}, arguments{"p", 54})},
	{"LAST_INSERT_ID() behind all that", execute(lastInsertID)},
	{"attribute", withAttribute(preparing("INSERT INTO orders (a, n) VALUES (?, ?)", arguments{"q", 1}))},
	{"attribute without parameters", withAttribute(preparing("INSERT INTO orders (a) VALUES ('r')", nil))},
	{"table without a rule", preparing("INSERT INTO notes (a) VALUES (?)", arguments{"s"}, arguments{nil})},
	{"LAST_INSERT_ID() behind that", execute(lastInsertID)},
	{"streaming", func(c *library) (any, error) {
		s, err := c.Prepare("INSERT INTO orders (a) VALUES (?)")
		if err != nil {
			return nil, err
		}
		var r mysql.Result
		err = s.ExecuteSelectStreaming(&r, nil, nil, "t")
		return []uint64{r.InsertId, r.AffectedRows}, errors.Join(err, s.Close())
	}},
	{"BEGIN", state((*client.Conn).Begin)},
	{"undone", preparing("INSERT INTO orders (a) VALUES (?)", arguments{"u"})},
	{"ROLLBACK", state((*client.Conn).Rollback)},
	{"kept", preparing("INSERT INTO orders (a) VALUES (?)", arguments{"v"})},
	{"table that is missing", preparing("INSERT INTO missing (a) VALUES (?)", arguments{"w"})},
	{"column that is missing", preparing("INSERT INTO orders (missing) VALUES (?)", arguments{"w"})},
	{"too few values", preparing("INSERT INTO orders (a, n) VALUES (?)", arguments{"w"})},
	{"what came of it", execute("SELECT * FROM orders ORDER BY id")},
	{"and of the others", execute("SELECT * FROM items ORDER BY id")},
}

func TestGoMySQLPrepared(t *testing.T) {
	t.Parallel()
	for name, server := range harness.AllServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareLibrary(t, server, preparedSteps)
		})
	}
}
