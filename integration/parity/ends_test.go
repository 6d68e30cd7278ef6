package parity

import (
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
			if err := replay.FirstDifference(native, proxied); err != nil {
				t.Errorf("%s, caps %x: %v\n%q\n%q", server.Kind, caps, err, native, proxied)
			}
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
