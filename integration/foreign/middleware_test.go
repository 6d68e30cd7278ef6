package foreign

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"
	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// middleware is a stand-in for kingshard, Gaea and Radon, made from what these answer: a table
// shop.orders over two shards, by id % 2. It answers what they answer, and knows nothing else.
type middleware struct {
	t *testing.T

	mu     sync.Mutex
	shards [2][]uint64
	seen   []string // texts
	drops  bool     // it drops rows of the second shard, and says nothing
	apart  bool     // it answers MAX(id) with a row of each shard
	zero   bool     // it says that LAST_INSERT_ID() is 0; else it has an error for that
}

func startMiddleware(t *testing.T, version string) (*middleware, *mysql.Config) {
	t.Helper()
	m := &middleware{t: t}
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	var all sync.WaitGroup
	users := server.NewInMemoryAuthenticationHandler(gomysql.AUTH_NATIVE_PASSWORD)
	assert.Must(t, users.AddUser("app", "secret"))
	s := server.NewServer(version, 33, gomysql.AUTH_NATIVE_PASSWORD, nil, nil)
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				conn, err := s.NewCustomizedConn(c, users, m)
				for err == nil && !conn.Closed() {
					err = conn.HandleCommand()
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.InterpolateParams = "app", "secret", "tcp", l.Addr().String(), "shop", true
	return m, c
}

var (
	anInsert = regexp.MustCompile("(?i)^(?:INSERT|REPLACE) (?:IGNORE )?INTO (?:shop\\.)?orders ?\\(([a-z, `]*)\\) VALUES (.*?)(?: ON DUPLICATE .*)?$")
	aRow     = regexp.MustCompile(`\(([^,()]*(?:\([^)]*\)[^,()]*)*),([^,()]*)\)`)
	aTable   = regexp.MustCompile("^SELECT \\* FROM `shop`\\.`orders` LIMIT 0$")
	aMax     = regexp.MustCompile("^SELECT MAX\\(`id`\\) FROM `shop`\\.`orders`$")
)

// HandleQuery implements server.Handler.
func (m *middleware) HandleQuery(text string) (*gomysql.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, text)
	insert := anInsert.FindStringSubmatch(text)
	switch {
	case strings.HasPrefix(text, "SELECT @@") && !strings.Contains(text, " LIMIT "):
		return m.settings(text)
	case aTable.MatchString(text):
		r := gomysql.NewResultset(2)
		for i, name := range []string{"id", "name"} {
			r.Fields[i] = &gomysql.Field{Name: []byte(name), Charset: 33, Type: gomysql.MYSQL_TYPE_VAR_STRING, ColumnLength: 60}
		}
		*r.Fields[0] = gomysql.Field{Name: []byte("id"), Charset: 63, Type: gomysql.MYSQL_TYPE_LONGLONG, Flag: gomysql.PRI_KEY_FLAG | gomysql.NOT_NULL_FLAG | 4096, ColumnLength: 20}
		return gomysql.NewResult(r), nil
	case aMax.MatchString(text) && m.apart:
		r, err := gomysql.BuildSimpleTextResultset([]string{"MAX(id)"}, [][]any{{slices.Max(m.shards[0])}, {slices.Max(m.shards[1])}})
		return gomysql.NewResult(r), err
	case aMax.MatchString(text):
		return rows([]string{"MAX(id)"}, m.greatest())
	case strings.HasPrefix(text, "SELECT CAST(MAX("): // each shard says it, and nobody adds that up
		return rows([]string{"MAX"}, nil)
	case insert != nil:
		return m.insert(insert[1], insert[2])
	case m.zero && strings.HasPrefix(text, "SELECT LAST_INSERT_ID()"):
		return rows([]string{"id"}, uint64(0))
	}
	return nil, gomysql.NewError(gomysql.ER_UNKNOWN_ERROR, "insert, select and nothing else: "+text)
}

func rows(names []string, values ...any) (*gomysql.Result, error) {
	r, err := gomysql.BuildSimpleTextResultset(names, [][]any{values})
	return gomysql.NewResult(r), err
}

func (m *middleware) settings(text string) (*gomysql.Result, error) {
	known := map[string]any{
		"@@sql_mode": "STRICT_TRANS_TABLES", "@@character_set_client": "utf8mb4", "@@character_set_connection": "utf8mb4", "@@auto_increment_increment": 1,
		"@@max_allowed_packet": 67108864, "@@lower_case_table_names": 0,
	}
	names := strings.Split(strings.TrimPrefix(text, "SELECT "), ",")
	var values []any
	for _, name := range names {
		value, ok := known[name]
		if !ok {
			return nil, gomysql.NewError(gomysql.ER_UNKNOWN_ERROR, "no such variable: "+name)
		}
		values = append(values, value)
	}
	return rows(names, values...)
}

func (m *middleware) greatest() any {
	all := slices.Concat(m.shards[0], m.shards[1])
	if len(all) == 0 {
		return nil
	}
	return slices.Max(all)
}

// insert stores rows whose id is a number. Others it drops, as Gaea does, and says nothing.
func (m *middleware) insert(columns, values string) (*gomysql.Result, error) {
	at := 0
	for i, name := range strings.Split(columns, ",") {
		if strings.Trim(name, " `") == "id" {
			at = i + 1
		}
	}
	var stored uint64
	for _, row := range aRow.FindAllStringSubmatch(values, -1) {
		if at == 0 {
			return nil, gomysql.NewError(gomysql.ER_UNKNOWN_ERROR, "the shard key is not there")
		}
		if id, err := strconv.ParseUint(strings.TrimSpace(row[at]), 10, 64); err == nil && !(m.drops && id%2 == 1) {
			m.shards[id%2] = append(m.shards[id%2], id)
			stored++
		}
	}
	return &gomysql.Result{Status: gomysql.SERVER_STATUS_AUTOCOMMIT, AffectedRows: stored}, nil
}

// UseDB implements server.Handler.
func (m *middleware) UseDB(string) error { return nil }

// HandleFieldList implements server.Handler.
func (m *middleware) HandleFieldList(string, string) ([]*gomysql.Field, error) {
	return nil, fmt.Errorf("not supported")
}

// HandleStmtPrepare implements server.Handler: nothing is said of columns.
func (m *middleware) HandleStmtPrepare(query string) (params, columns int, context any, err error) {
	return strings.Count(query, "?"), 0, nil, nil
}

// HandleStmtExecute implements server.Handler.
func (m *middleware) HandleStmtExecute(_ any, query string, args []any) (*gomysql.Result, error) {
	for _, a := range args {
		text := fmt.Sprint(a)
		if b, ok := a.([]byte); ok {
			text = "'" + string(b) + "'"
		}
		query = strings.Replace(query, "?", text, 1)
	}
	return m.HandleQuery(query)
}

// HandleStmtClose implements server.Handler.
func (m *middleware) HandleStmtClose(any) error { return nil }

// HandleOtherCommand implements server.Handler.
func (m *middleware) HandleOtherCommand(cmd byte, _ []byte) error {
	return gomysql.NewError(gomysql.ER_UNKNOWN_ERROR, fmt.Sprintf("command %d", cmd))
}

// startBefore starts idproxy in front of a middleware, and connects to it.
func startBefore(t *testing.T, config *mysql.Config, kind string) *sql.DB {
	t.Helper()
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, upstream_kind: %s}]
sources: {ids: {segment: {start: 1000}}}
rules:
  - {table: shop.orders, column: id, source: ids}
`, config.Addr, kind))
	db := harness.Open(t, config, proxy.Addr("a"))
	db.SetMaxOpenConns(1)
	return db
}

// TestMiddleware: a middleware is known by its greeting, by what it does not say of a prepared
// statement, or because the configuration says it. It gets plain numbers.
func TestMiddleware(t *testing.T) {
	for _, c := range []struct{ version, kind string }{
		{"5.6.20-kingshard", "auto"}, {"5.7.25-gaea", "auto"}, {"8.0.99", "auto"}, {"8.0.99", "middleware"},
	} {
		t.Run(c.version+" "+c.kind, func(t *testing.T) {
			t.Parallel()
			m, config := startMiddleware(t, c.version)
			m.shards[1] = []uint64{41}
			db := startBefore(t, config, c.kind)
			result := harness.MustExec(t, db, "INSERT INTO orders (name) VALUES ('ann'), ('bob'), ('cid')")
			affected, _ := result.RowsAffected()
			id, _ := result.LastInsertId()
			assert.True(t, affected == 3 && id == 1000, "affected %d, insert id %d; want 3 and 1000", affected, id)
			harness.MustExec(t, db, "INSERT INTO shop.orders (id, name) VALUES (NULL, 'dan')")
			m.mu.Lock()
			defer m.mu.Unlock()
			if want := [2][]uint64{{1000, 1002}, {41, 1001, 1003}}; !slices.Equal(m.shards[0], want[0]) || !slices.Equal(m.shards[1], want[1]) {
				t.Errorf("the shards have %v, want %v; texts:\n%s", m.shards, want, strings.Join(m.seen, "\n"))
			}
		})
	}
}

// TestMiddlewareForms: what a middleware gets of each form, and what the client sees of it. A
// middleware says that LAST_INSERT_ID() is 0, or has an error for it: idproxy answers.
func TestMiddlewareForms(t *testing.T) {
	t.Parallel()
	for _, zero := range []bool{false, true} {
		t.Run(fmt.Sprint("zero ", zero), func(t *testing.T) {
			t.Parallel()
			everyForm(t, zero)
		})
	}
}

func everyForm(t *testing.T, zero bool) {
	m, config := startMiddleware(t, "5.7.25-gaea")
	m.zero = zero
	db := startBefore(t, config, "auto")
	next := uint64(1000)
	for _, f := range []struct {
		form    string
		text    string // what gets there, with the ids $1 and $2
		args    []any
		ids     uint64
		refused uint16
	}{
		{form: "INSERT INTO orders (name) VALUES ('bob')", text: "INSERT INTO orders (name,`id`) VALUES ('bob',$1)", ids: 1},
		{form: "INSERT INTO orders (name) VALUES ('bob'), ('cid')", text: "INSERT INTO orders (name,`id`) VALUES ('bob',$1), ('cid',$2)", ids: 2},
		{form: "INSERT INTO orders (id, name) VALUES (NULL, 'bob')", text: "INSERT INTO orders (id, name) VALUES ($1, 'bob')", ids: 1},
		{form: "INSERT INTO orders (id, name) VALUES (0, 'bob')", text: "INSERT INTO orders (id, name) VALUES ($1, 'bob')", ids: 1},
		{form: "INSERT INTO orders (id, name) VALUES (DEFAULT, 'bob')", text: "INSERT INTO orders (id, name) VALUES ($1, 'bob')", ids: 1},
		{form: "INSERT INTO orders (name) VALUES (?), (?)", args: []any{"bob", "cid"}, text: "INSERT INTO orders (name,`id`) VALUES ('bob',$1), ('cid',$2)", ids: 2},
		{form: "REPLACE INTO orders (name) VALUES ('bob')", text: "REPLACE INTO orders (name,`id`) VALUES ('bob',$1)", ids: 1},
		{form: "INSERT IGNORE INTO orders (name) VALUES ('bob')", text: "INSERT IGNORE INTO orders (name,`id`) VALUES ('bob',$1)", ids: 1},
		{
			form: "INSERT INTO orders (name) VALUES ('bob') ON DUPLICATE KEY UPDATE name = 'eve'",
			text: "INSERT INTO orders (name,`id`) VALUES ('bob',$1) ON DUPLICATE KEY UPDATE name = 'eve'", ids: 1,
		},
		{form: "INSERT INTO orders (name) SELECT 'bob'", refused: gomysql.ER_NOT_SUPPORTED_YET},
	} {
		result, err := db.Exec(f.form, f.args...)
		if f.refused != 0 {
			is, ok := errors.AsType[*mysql.MySQLError](err)
			assert.True(t, ok && is.Number == f.refused, "%s: %v; want error %d", f.form, err, f.refused)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", f.form, err)
			continue
		}
		id, _ := result.LastInsertId()
		var last uint64
		err = db.QueryRow("SELECT LAST_INSERT_ID() AS id FROM DUAL").Scan(&last)
		assert.True(t, err == nil && last == next && uint64(id) == next, "%s: insert id %d, LAST_INSERT_ID() is %d, %v; want %d", f.form, id, last, err, next)
		want := strings.NewReplacer("$1", fmt.Sprint(next), "$2", fmt.Sprint(next+1)).Replace(f.text)
		m.mu.Lock()
		if got := m.seen[len(m.seen)-2]; got != want { // behind it, LAST_INSERT_ID() was asked for
			t.Errorf("%s gets there as\n%s, want\n%s", f.form, got, want)
		}
		m.mu.Unlock()
		next += f.ids
	}
}

// TestMiddlewareNotAsked: what became of skipped rows such a server does not answer. It is not told LAST_INSERT_ID()
// for that either.
func TestMiddlewareNotAsked(t *testing.T) {
	t.Parallel()
	m, config := startMiddleware(t, "5.7.25-gaea")
	m.drops, m.zero = true, true
	db := startBefore(t, config, "auto")
	result := harness.MustExec(t, db, "INSERT IGNORE INTO orders (name) VALUES ('ann'), ('bob'), ('cid')")
	var last uint64
	assert.NoError(t, db.QueryRow("SELECT LAST_INSERT_ID()").Scan(&last))
	id, _ := result.LastInsertId()
	assert.True(t, id == 0 && last == 0, "insert id %d, LAST_INSERT_ID() is %d; want 0, for nobody knows them", id, last)
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.seen, func(text string) bool { return strings.HasPrefix(text, "SET ") }); i >= 0 {
		t.Errorf("%q gets there", m.seen[i])
	}
}

// TestMiddlewareGreatestOfShards: the greatest id is that of all shards, also where nobody compares them.
func TestMiddlewareGreatestOfShards(t *testing.T) {
	t.Parallel()
	m, config := startMiddleware(t, "5.7.25-gaea")
	m.shards, m.apart = [2][]uint64{{40}, {5001}}, true
	result := harness.MustExec(t, startBefore(t, config, "auto"), "INSERT INTO orders (name) VALUES ('ann')")
	id, _ := result.LastInsertId()
	assert.True(t, id > 5001, "id %d; 5001 is there", id)
}

// TestMiddlewares: one of two middlewares lags behind none, and is not asked whether it is read-only.
func TestMiddlewares(t *testing.T) {
	t.Parallel()
	_, config := startMiddleware(t, "5.7.25-gaea")
	_, other := startMiddleware(t, "5.7.25-gaea")
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstreams: [%q, %q]}]
sources: {ids: {segment: {start: 1000}}}
rules:
  - {table: shop.orders, column: id, source: ids}
`, config.Addr, other.Addr))
	harness.MustExec(t, harness.Open(t, config, proxy.Addr("a")), "INSERT INTO orders (name) VALUES ('ann')")
}

// TestMiddlewareDropsRows: a middleware that stores fewer rows than it was sent, and says nothing, is
// not believed.
func TestMiddlewareDropsRows(t *testing.T) {
	t.Parallel()
	m, config := startMiddleware(t, "5.7.25-gaea")
	db := startBefore(t, config, "auto")
	m.drops = true
	_, err := db.Exec("INSERT INTO orders (name) VALUES ('ann'), ('bob'), ('cid')")
	is, ok := errors.AsType[*mysql.MySQLError](err)
	assert.True(t, ok && is.Number == 1105 && strings.Contains(is.Message, "stored 2 of 3 rows"), "%v; want error 1105", err)
	m.drops = false
	harness.MustExec(t, db, "INSERT INTO orders (name) VALUES ('dan')") // the session goes on
}
