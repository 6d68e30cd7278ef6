package parity

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// lastIDTexts read LAST_INSERT_ID() behind an INSERT. Where the rule says last_insert_id: packet the
// server does not know the value, and idproxy answers.
var lastIDTexts = []string{
	"SELECT LAST_INSERT_ID()",
	"select last_insert_id() AS id",
	"SELECT  LAST_INSERT_ID( )  `the id` FROM DUAL LIMIT 1;",
	"SELECT @@identity",
	"SELECT @@session.identity AS 'i'",
	"SELECT @@local.last_insert_id",
	"/* from a driver */ SELECT LAST_INSERT_ID() -- and so on",
}

// lastIDSession inserts rows, and reads LAST_INSERT_ID() in all ways. What it gets is compared from
// here on.
func lastIDSession(c *replay.Conn) {
	c.Must("INSERT INTO orders (u) VALUES (1), (2)")
	for _, text := range lastIDTexts {
		c.Must(text)
	}
	// What fails or changes nothing leaves the value.
	replay.WantCode(c.Query("INSERT INTO orders (u) VALUES (1)"), 1062)
	c.Must("SELECT LAST_INSERT_ID()", "INSERT IGNORE INTO orders (u) VALUES (1)", "SELECT LAST_INSERT_ID()",
		"INSERT INTO orders VALUES (77, 77)", "SELECT LAST_INSERT_ID()")
	// So does what is no INSERT. Another table's counter is the server's own.
	c.Must("SELECT 1", "UPDATE orders SET u = 4 WHERE u = 2", "SELECT LAST_INSERT_ID()",
		"INSERT INTO others (a) VALUES (1)", "SELECT LAST_INSERT_ID()")
	// Transactions, and texts of several statements.
	c.Must("BEGIN", "INSERT INTO orders (u) VALUES (10)", "SELECT LAST_INSERT_ID()", "ROLLBACK", "SELECT LAST_INSERT_ID()",
		"SET autocommit = 0", "INSERT INTO orders (u) VALUES (11)", "SELECT @@identity", "COMMIT", "SET autocommit = 1",
		"INSERT INTO orders (u) VALUES (12); SELECT LAST_INSERT_ID(); SELECT 1", "SELECT LAST_INSERT_ID(); INSERT INTO orders (u) VALUES (13); SELECT LAST_INSERT_ID()")
	// As prepared statements.
	insert, err := c.Prepare("INSERT INTO orders (u) VALUES (?)")
	replay.Check(err)
	read, err := c.Prepare("SELECT LAST_INSERT_ID() AS id")
	replay.Check(err)
	for u := range int64(3) {
		replay.Check(c.Execute(insert, 0, replay.WithTypes, replay.Long(20+u)))
		replay.Check(c.Execute(read, 0, replay.WithTypes))
	}
	// A ';' in a comment ends nothing. What stands in front of it in a text goes to the server.
	c.Must("SELECT LAST_INSERT_ID() /* a; b */; SELECT 2", "SELECT LAST_INSERT_ID() -- a; b\n; SELECT 2", "SELECT 1; SELECT LAST_INSERT_ID() AS id",
		"UPDATE orders SET u = 14 WHERE u = 13; SELECT @@identity; SELECT LAST_INSERT_ID();")
	// A row that brings its id to another table leaves the value, which the reply does not tell.
	c.Must("INSERT INTO others (id, a) VALUES (900, 1)", "SELECT LAST_INSERT_ID()", "INSERT INTO others (a) VALUES (1)", "SELECT LAST_INSERT_ID()",
		"INSERT INTO orders (u) VALUES (31)")
	// What the session is set to shows in each reply.
	for _, setting := range []string{
		"sql_mode = 'ANSI_QUOTES'", "sql_mode = 'NO_BACKSLASH_ESCAPES'", "sql_mode = DEFAULT", "sql_select_limit = 0", "sql_select_limit = DEFAULT",
		"character_set_results = utf16", "character_set_results = ucs2", "character_set_results = utf16le", "character_set_results = utf32", "character_set_results = NULL", "character_set_results = utf8mb4", "transaction_read_only = 1",
	} {
		c.Must("SET "+strings.Replace(setting, "transaction_read_only = 1", "SESSION TRANSACTION READ ONLY", 1), "SELECT LAST_INSERT_ID() AS id", "SELECT @@identity")
		replay.Check(c.Execute(read, 0, replay.WithTypes))
	}
	c.Must("BEGIN", "SELECT LAST_INSERT_ID()", "COMMIT", "SET SESSION TRANSACTION READ WRITE", "BEGIN", "INSERT INTO orders (u) VALUES (32)")
	replay.WantCode(c.Query("CREATE TABLE others (a INT)"), 1050) // it has committed, and its reply does not say so
	c.Must("SELECT LAST_INSERT_ID()")
	if c.Has(replay.OptionalMeta) && !c.MariaDB() {
		c.Must("SET resultset_metadata = NONE", "SELECT LAST_INSERT_ID()", "SET resultset_metadata = FULL")
	}
	// So do warnings and counts behind it.
	c.Must("INSERT IGNORE INTO orders (u) VALUES (32)", "SELECT LAST_INSERT_ID()", "SHOW WARNINGS", "INSERT INTO orders (u) VALUES (33)", "SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT()")
	if c.MariaDB() {
		c.Must("INSERT INTO orders (u) VALUES (34) RETURNING id + 0 AS x", "SELECT LAST_INSERT_ID()", "INSERT INTO others (a) VALUES (2) RETURNING id + 0 AS x", "SELECT LAST_INSERT_ID()",
			"INSERT INTO orders (u) VALUES (35)")
	}
	// A client may send the query before it has the reply to the INSERT.
	pipelined := []string{"INSERT INTO orders (u) VALUES (37)", "SELECT LAST_INSERT_ID()", "INSERT INTO orders (u) VALUES (37)", "SELECT @@identity", "DO 1", "INSERT INTO others (a) VALUES (3)", "SELECT LAST_INSERT_ID()"}
	c.Pipeline(func() {
		for _, text := range pipelined {
			c.SendQuery(text)
		}
	})
	for i := range pipelined {
		if err := c.Result(); (err != nil) != (i == 2) {
			replay.Check(err)
		}
	}
	c.Must("INSERT INTO orders (u) VALUES (38)")
	// What fails in front of the function leaves the value.
	replay.WantCode(c.Query("INSERT INTO orders (id, u, nowhere) VALUES (500, 1, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"), 1054)
	c.Must("SELECT LAST_INSERT_ID()")
	// A row that stays as it was counts for a client that asks for found rows, and has no id to show.
	c.Must("INSERT INTO orders (u) VALUES (39)", "INSERT INTO orders (u) VALUES (39) ON DUPLICATE KEY UPDATE u = u", "SELECT LAST_INSERT_ID()", "INSERT INTO orders (u) VALUES (40) ON DUPLICATE KEY UPDATE u = u", "SELECT LAST_INSERT_ID()")
	// The words for diagnostics may stand for something else.
	c.Must("SELECT LAST_INSERT_ID() AS warnings", "SELECT 'no errors', LAST_INSERT_ID()", "INSERT INTO others (id, a) VALUES (899, LAST_INSERT_ID()) /* errors */", "SELECT MAX(a) FROM others WHERE id = 899")
	// What sets the value is the server's own matter.
	c.Must("SELECT LAST_INSERT_ID(5)", "SELECT LAST_INSERT_ID()", "INSERT INTO orders (u) VALUES (30)", "SELECT LAST_INSERT_ID()",
		"SET last_insert_id = 6", "SELECT LAST_INSERT_ID()",
		"INSERT INTO orders (u) VALUES (36)")
	c.Command(mysql.COM_RESET_CONNECTION)
	replay.Check(c.Result())
	c.Must("SELECT LAST_INSERT_ID()")
}

// TestLastIDAnswered compares each byte of what idproxy answers with what a server answers.
func TestLastIDAnswered(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		for _, v := range append(variants(server.Kind), replay.Variant{Name: "found rows", Cfg: replay.Config{Caps: uint64(mysql.CLIENT_FOUND_ROWS)}}) {
			t.Run(v.Name, func(t *testing.T) {
				proxy := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) +
					"sources: {ids: {segment: {start: 100}}}\nrules: [{table: '*.orders', column: id, source: ids, last_insert_id: packet}]\n"})
				read := func(addr, id string) (got []byte) {
					cfg := v.Cfg
					cfg.Addr, cfg.User, cfg.Password, cfg.Schema = addr, servers.AppUser, servers.AppPassword, harness.Database(t, server)
					assert.Must(t, replay.Do(func() {
						c := replay.Login(cfg)
						defer c.Close()
						c.Must("CREATE TABLE orders (id "+id+" PRIMARY KEY, u INT UNIQUE) AUTO_INCREMENT = 100", "CREATE TABLE others (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
						c.Must("SELECT 1") // as does what a session is asked first
						from, masks := c.Got.Len(), len(c.GotMasks)
						lastIDSession(c)
						got = since(c, from, masks)
					}))
					return got
				}
				want, got := read(server.Addr, "BIGINT AUTO_INCREMENT"), read(proxy.Addr("a"), "BIGINT")
				if !bytes.Equal(got, want) {
					t.Error(fmt.Sprint(replay.FirstDifference(want, got)))
				}
			})
		}
	})
}

// TestKeptWarnings reads the warnings of an INSERT that left a question, which the proxy kept, at
// the beginning of a text: to a client without CLIENT_DEPRECATE_EOF each EOF says that more
// follows, as a server's does.
func TestKeptWarnings(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		proxy := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) +
			"sources: {ids: {segment: {}}}\nrules: [{table: '*.orders', column: id, source: ids}]\n"})
		read := func(addr, id string) (got []byte) {
			assert.Must(t, replay.Do(func() {
				c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword, Schema: harness.Database(t, server)})
				defer c.Close()
				replay.Check(c.Query("CREATE TABLE orders (id " + id + " PRIMARY KEY, u INT UNIQUE)"))
				replay.Check(c.Query("INSERT IGNORE INTO orders (u) VALUES (1), (1), (2)"))
				from, masks := c.Got.Len(), len(c.GotMasks)
				replay.Check(c.Query("SHOW WARNINGS; SELECT 1; SELECT 2"))
				got = since(c, from, masks)
			}))
			return got
		}
		want, got := read(server.Addr, "BIGINT AUTO_INCREMENT"), read(proxy.Addr("a"), "BIGINT")
		if !bytes.Equal(got, want) {
			t.Error(fmt.Sprint(replay.FirstDifference(want, got)))
		}
	})
}

// TestEndsOfReplies pipelines a command that idproxy answers itself behind replies whose end is
// hard to find: its answer must come behind their last packet.
func TestEndsOfReplies(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.NewParity(t, server)
		db := harness.Open(t, server.Config(p.DB), "")
		for _, text := range []string{
			"CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)",
			"CREATE PROCEDURE outs(OUT a INT, OUT b TEXT) BEGIN SELECT 1; SET a = 5, b = 'b'; END",
		} {
			assert.Of(db.Exec(text)).Must(t)
		}
		for _, v := range variants(server.Kind) {
			cfg := p.Config(v)
			cfg.Addr = p.Proxy.Addr("ruled")
			for name, run := range map[string]func(c *replay.Conn){"OUT parameters": outParameters, "no definitions": noDefinitions, "failed PREPARE": failedPrepare} {
				if err := replay.Do(func() {
					c := replay.Login(cfg)
					defer c.Close()
					run(c)
					c.Must("SELECT 'behind it all'")
				}); err != nil {
					t.Errorf("%s, %s, %s: %v", server.Kind, v.Name, name, err)
				}
			}
		}
	}
}

// TestPiecesEndAsOne sends a text that goes to the server in pieces, and compares every byte of its
// replies with those of the same text on a native column.
func TestPiecesEndAsOne(t *testing.T) {
	const text = "SELECT 1, 'a'; INSERT IGNORE INTO ruled (a) VALUES (1); SELECT 2 FROM ruled; INSERT IGNORE INTO ruled (a) VALUES (2); SELECT 3, 4 UNION SELECT 5, 6"
	for _, server := range harness.Servers(t) {
		p := replay.NewParity(t, server)
		for i, caps := range []uint64{0, replay.DeprecateEOF} {
			reply := func(addr, column, options string) (b []byte) {
				assert.Must(t, replay.Do(func() {
					c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword, Schema: p.DB, Caps: caps})
					defer c.Close()
					c.Must("DROP TABLE IF EXISTS ruled", "CREATE TABLE ruled (id BIGINT PRIMARY KEY "+column+", a INT)"+options)
					from := c.Got.Len()
					c.Must(text)
					b = c.Got.Bytes()[from:]
				}))
				return b
			}
			proxied := reply(p.Proxy.Addr("ruled"), "", "")
			native := reply(server.Addr, "AUTO_INCREMENT", fmt.Sprintf(" AUTO_INCREMENT=%d", 1+2*i)) // the source goes on
			err := replay.FirstDifference(native, proxied)
			assert.True(t, err == nil, "%s, caps %x: %v\n%q\n%q", server.Kind, caps, err, native, proxied)
		}
	}
}

// refused is a statement that idproxy refuses.
const refused = "LOAD XML LOCAL INFILE 'x' INTO TABLE ruled"

func wantRefused(err error) {
	if replay.CodeOf(err) != mysql.ER_NOT_SUPPORTED_YET || !strings.Contains(err.Error(), "ruled") {
		replay.Fail("error %w, want idproxy's 1235", err)
	}
}

func outParameters(c *replay.Conn) {
	st, err := c.Prepare("CALL outs(?, ?)")
	replay.Check(err)
	for range 2 {
		c.Pipeline(func() {
			c.SendExecute(st, 0, replay.WithTypes, replay.Long(1), replay.Text("x"))
			c.SendQuery(refused)
		})
		replay.Check(c.Result())
		wantRefused(c.Result())
	}
}

// failedPrepare executes the statement prepared last, whose PREPARE has failed: the server must say
// that there is none.
func failedPrepare(c *replay.Conn) {
	_, err := c.Prepare("INSERT INTO ruled (nosuch) VALUES (?)")
	if replay.CodeOf(err) != mysql.ER_BAD_FIELD_ERROR {
		replay.Fail("PREPARE with an unknown column: %w", err)
	}
	c.SendExecute(replay.Prepared{ID: math.MaxUint32, Params: 1}, 0, replay.WithTypes, replay.Long(1))
	if err := c.Result(); replay.CodeOf(err) != mysql.ER_UNKNOWN_STMT_HANDLER {
		replay.Fail("execution of a statement whose PREPARE failed: %w", err)
	}
}

func noDefinitions(c *replay.Conn) {
	if c.Has(replay.OptionalMeta) {
		c.Must("SET resultset_metadata = NONE")
	}
	c.Pipeline(func() {
		c.CommandText(mysql.COM_STMT_PREPARE, "SELECT ?, 'x'")
		c.SendQuery(refused)
	})
	_, err := c.PreparedReply()
	replay.Check(err)
	wantRefused(c.Result())
}
