package integration_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestEndsOfReplies pipelines a command that idproxy answers itself behind replies whose end is hard to find: its answer
// must come behind their last packet.
func TestEndsOfReplies(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := newParity(t, server)
		db := harness.Open(t, server.Config(p.db), "")
		for _, text := range []string{
			"CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)",
			"CREATE PROCEDURE outs(OUT a INT, OUT b TEXT) BEGIN SELECT 1; SET a = 5, b = 'b'; END",
		} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range variants(server.Kind) {
			cfg := p.config(v)
			cfg.addr = p.proxy.Addr("ruled")
			for name, run := range map[string]func(c *rawConn){"OUT parameters": outParameters, "no definitions": noDefinitions, "failed PREPARE": failedPrepare} {
				if err := rawDo(func() {
					c := loginRaw(cfg)
					defer c.close()
					run(c)
					c.must("SELECT 'behind it all'")
				}); err != nil {
					t.Errorf("%s, %s, %s: %v", server.Kind, v.name, name, err)
				}
			}
		}
	}
}

// TestPiecesEndAsOne sends a text that goes to the server in pieces, and compares every byte of its replies with those of the
// same text on a native column.
func TestPiecesEndAsOne(t *testing.T) {
	const text = "SELECT 1, 'a'; INSERT IGNORE INTO ruled (a) VALUES (1); SELECT 2 FROM ruled; INSERT IGNORE INTO ruled (a) VALUES (2); SELECT 3, 4 UNION SELECT 5, 6"
	for _, server := range harness.Servers(t) {
		p := newParity(t, server)
		for i, caps := range []uint64{0, deprecateEOF} {
			reply := func(addr, column, options string) (b []byte) {
				if err := rawDo(func() {
					c := loginRaw(rawConfig{addr: addr, user: servers.AppUser, password: servers.AppPassword, schema: p.db, caps: caps})
					defer c.close()
					c.must("DROP TABLE IF EXISTS ruled", "CREATE TABLE ruled (id BIGINT PRIMARY KEY "+column+", a INT)"+options)
					from := c.got.Len()
					c.must(text)
					b = c.got.Bytes()[from:]
				}); err != nil {
					t.Fatal(err)
				}
				return b
			}
			proxied := reply(p.proxy.Addr("ruled"), "", "")
			native := reply(server.Addr, "AUTO_INCREMENT", fmt.Sprintf(" AUTO_INCREMENT=%d", 1+2*i)) // the source goes on
			if err := firstDifference(native, proxied); err != nil {
				t.Errorf("%s, caps %x: %v\n%q\n%q", server.Kind, caps, err, native, proxied)
			}
		}
	}
}

// refused is a statement that idproxy refuses.
const refused = "LOAD XML LOCAL INFILE 'x' INTO TABLE ruled"

func wantRefused(err error) {
	if codeOf(err) != mysql.ER_NOT_SUPPORTED_YET || !strings.Contains(err.Error(), "ruled") {
		fail("error %w, want idproxy's 1235", err)
	}
}

func outParameters(c *rawConn) {
	st, err := c.prepare("CALL outs(?, ?)")
	check(err)
	for range 2 {
		c.pipeline(func() {
			c.sendExecute(st, 0, true, long(1), text("x"))
			c.sendQuery(refused)
		})
		check(c.result())
		wantRefused(c.result())
	}
}

// failedPrepare executes the statement prepared last, whose PREPARE has failed: the server must say that there is none.
func failedPrepare(c *rawConn) {
	_, err := c.prepare("INSERT INTO ruled (nosuch) VALUES (?)")
	if codeOf(err) != mysql.ER_BAD_FIELD_ERROR {
		fail("PREPARE with an unknown column: %w", err)
	}
	c.sendExecute(prepared{id: math.MaxUint32, params: 1}, 0, true, long(1))
	if err := c.result(); codeOf(err) != mysql.ER_UNKNOWN_STMT_HANDLER {
		fail("execution of a statement whose PREPARE failed: %w", err)
	}
}

func noDefinitions(c *rawConn) {
	if c.has(optionalMeta) {
		c.must("SET resultset_metadata = NONE")
	}
	c.pipeline(func() {
		c.commandText(mysql.COM_STMT_PREPARE, "SELECT ?, 'x'")
		c.sendQuery(refused)
	})
	_, err := c.preparedReply()
	check(err)
	wantRefused(c.result())
}
