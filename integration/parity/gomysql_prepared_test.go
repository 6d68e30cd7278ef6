package parity

import (
	"errors"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
)

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
