package sizes

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// dumpRows is how many rows a dump has.
func dumpRows() int { return width.Of(10_000, 100_000) }

// dumpID is added to the ids of dumped rows, so that they can be told from all else in the text.
const dumpID = 770_000_000_000

// dumpParts are what values are made of: all that a reader of the dump could fall over.
var dumpParts = []string{
	`'`, `''`, `\`, `\\`, `\'`, `"`, "`", `,(`, `),(`, `),(NULL,'`, `;`, `--`, ` -- '`, `#`, `/*`, `*/`, `/*!40101 `, "\n", "\r", "\x1a", "\t",
	`INSERT INTO items VALUES (`, `$$`, "\x00", `\0`, `NULL`, `0x27`, `LAST_INSERT_ID()`, `%`, `_`, `a`, `é`, `中`, `縗`, `ソ`, `許`, ` `,
}

// dumpTable is the table that is dumped and restored. The text columns are in the character set of
// the dump.
func dumpTable(id, charset string) string {
	return "CREATE TABLE items (" + id + "n INT NOT NULL, v VARCHAR(400) NOT NULL, g VARCHAR(120) CHARACTER SET gbk, bl BLOB, " +
		"d DECIMAL(10,3), f DATETIME NULL, j VARBINARY(40), KEY (n)) ENGINE=InnoDB DEFAULT CHARSET=" + charset
}

// fillDump puts rows into the table.
func fillDump(t *testing.T, db *sql.DB, id bool, charset string) {
	t.Helper()
	const batch = 1000
	r := rand.New(rand.NewPCG(1, 2))
	text := func(most int, charset string) string {
		var b strings.Builder
		for range r.IntN(most) {
			part := dumpParts[r.IntN(len(dumpParts))]
			if charset == "gbk" && part == "é" {
				part = "é中"
			}
			b.WriteString(part)
		}
		if charset == "utf8mb4" {
			b.WriteString("😀")
		}
		return b.String()
	}
	blob := func(most int) []byte {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = "\x00'\"\\,()\n\xbf\x5c\xe7\x81\xfe\x27\x80"[r.IntN(15)]
		}
		return b
	}
	for n := 0; n < dumpRows(); n += batch {
		var values []string
		var args []any
		for i := range batch {
			row := "(?,?,?,?,?,?,?)"
			if id {
				row = fmt.Sprintf("(%d,?,?,?,?,?,?,?)", dumpID+n+i)
			}
			values = append(values, row)
			var g, d any
			if i%3 > 0 {
				g, d = text(4, "gbk"), fmt.Sprintf("%d.%d", i, r.IntN(1000))
			}
			args = append(args, n+i, text(12, charset), g, blob(40), d, "2026-11-21 10:00:00", blob(20))
		}
		_, err := db.Exec("INSERT INTO items VALUES "+strings.Join(values, ","), args...)
		assert.MustTrue(t, err == nil, "fill the table: %.300v", err)
	}
}

// dumpSum is what two tables have in common that hold the same rows, whatever their ids.
func dumpSum(t *testing.T, db *sql.DB, schema string) string {
	t.Helper()
	const row = "CONCAT_WS('|', n, HEX(v), IFNULL(HEX(g),'-'), HEX(bl), IFNULL(d,'-'), f, HEX(j))"
	var sum string
	assert.Must(t, db.QueryRow("SELECT CONCAT_WS(' ', COUNT(*), SUM(CRC32("+row+")), SUM(CONV(LEFT(SHA2("+row+",256),8),16,10)), SUM(LENGTH("+row+"))) FROM "+schema+".items").Scan(&sum))
	return sum
}

// dumpWay is a way to dump and restore.
type dumpWay struct {
	name    string
	charset string
	id      string   // the id column of the dumped table; empty: it has none, and the ruled table exists already
	ruled   string   // its id column, when it exists already
	args    []string // beside the default ones
	account bool     // the listener has an account, which cannot read what the client has locked
}

var dumpWays = []dumpWay{
	{name: "all by default, ids taken out", charset: "utf8mb4", id: "id BIGINT NOT NULL PRIMARY KEY, "},
	{name: "complete inserts, ids taken out", charset: "utf8mb4", id: "id BIGINT NOT NULL PRIMARY KEY, ", args: []string{"--complete-insert", "--hex-blob"}, account: true},
	{name: "no id column", charset: "utf8mb4", ruled: "id BIGINT NOT NULL PRIMARY KEY, ", args: []string{"--no-create-info", "--complete-insert"}},
	{name: "no id column, invisible id", charset: "utf8mb4", ruled: "id BIGINT NOT NULL DEFAULT 0 INVISIBLE PRIMARY KEY, ", args: []string{"--no-create-info"}},
	{name: "gbk", charset: "gbk", id: "id BIGINT NOT NULL PRIMARY KEY, ", args: []string{"--default-character-set=gbk"}},
	{name: "gbk, no id column", charset: "gbk", ruled: "id BIGINT NOT NULL PRIMARY KEY, ", args: []string{"--default-character-set=gbk", "--no-create-info", "--complete-insert", "--hex-blob"}},
	{name: "not extended", charset: "utf8mb4", id: "id BIGINT NOT NULL PRIMARY KEY, ", args: []string{"--skip-extended-insert", "--where=n < 2000"}},
}

// TestDump restores dumps of mysqldump and mariadb-dump whose ids were taken out, with the
// command-line client.
func TestDump(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		for _, d := range dumpWays {
			t.Run(d.name, func(t *testing.T) {
				from, to := harness.Database(t, server), harness.Database(t, server)
				config := server.Config(from)
				config.InterpolateParams = true
				db := harness.Open(t, config, "")
				harness.MustExec(t, db, dumpTable(d.id, d.charset))
				fillDump(t, db, d.id != "", d.charset)
				if d.ruled != "" {
					harness.MustExec(t, db, strings.Replace(dumpTable(d.ruled, d.charset), "items", to+".items", 1))
				}
				path := takeIDsOut(t, server.Dump(append(d.args, from, "items")...).Output, d.id != "")
				where := ""
				if d.name == "not extended" {
					where = " WHERE n >= 2000"
					harness.MustExec(t, db, "DELETE FROM items"+where)
				}
				d.restore(t, server, path, to)
				checkDump(t, db, from, to)
			})
		}
	})
}

var dumpedID = regexp.MustCompile(`\(77\d{10},`)

// takeIDsOut writes a dump to a file with NULL in place of its ids.
func takeIDsOut(t *testing.T, dump func() ([]byte, error), has bool) (path string) {
	t.Helper()
	text := assert.Of(dump()).Must(t, "dump")
	if has {
		n := len(dumpedID.FindAll(text, -1))
		assert.MustTrue(t, n >= 2000, "%d ids in the dump", n)
		text = dumpedID.ReplaceAll(text, []byte("(NULL,"))
	}
	assert.MustTrue(t, bytes.Contains(text, []byte("LOCK TABLES")) && bytes.Contains(text, []byte("NO_AUTO_VALUE_ON_ZERO")), "the dump is not of the kind that is meant")
	path = filepath.Join(t.TempDir(), "dump.sql")
	assert.Must(t, os.WriteFile(path, text, 0o600))
	return path
}

// restore runs the command-line client on a file, through a proxy.
func (d *dumpWay) restore(t *testing.T, server *servers.Server, path, schema string) {
	t.Helper()
	login := ""
	if d.account {
		login = ", account: {user: app, password: app}"
	}
	proxy := harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q%s}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: %s.items, column: id, source: ids}]
`, server.Addr, login, wireclient.SourceStart, schema))
	in := assert.Of(os.Open(path)).Must(t)
	defer in.Close()
	cmd := server.ClientTo(proxy.Addr("a"), "--default-character-set="+d.charset, schema) // the client takes the text apart, too
	cmd.Stdin = in
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	assert.Must(t, cmd.Start())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	assert.MustTrue(t, err == nil, "restore: %v, %v: %.500s", err, ctx.Err(), out.String())
}

// checkDump holds that all rows came back, each with an id of its own from the source.
func checkDump(t *testing.T, db *sql.DB, from, to string) {
	t.Helper()
	want, got := dumpSum(t, db, from), dumpSum(t, db, to)
	assert.True(t, got == want, "restored: %s, dumped: %s", got, want)
	var rows, ids, least int64
	assert.Must(t, db.QueryRow("SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) FROM "+to+".items").Scan(&rows, &ids, &least))
	assert.True(t, rows == ids && rows >= 2000 && least >= wireclient.SourceStart, "%d rows, %d ids from %d on", rows, ids, least)
	harness.MustExec(t, db, "UPDATE "+to+".items SET v = CONCAT(v, ' ') WHERE n = 77")
	assert.True(t, dumpSum(t, db, to) != got, "a blank more makes no difference: the comparison proves nothing")
}
