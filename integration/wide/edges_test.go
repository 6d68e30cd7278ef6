package wide

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestWideRefused shows what no UUID goes into, and that nothing is stored then; and what an
// application may store itself.
func TestWideRefused(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		for table, kind := range map[string]string{
			"number": "BIGINT", "narrow": "CHAR(35)", "bytes": "BINARY(20)", "body": "TEXT", "sixteen": "CHAR(16) CHARACTER SET latin1", "wide": "CHAR(36) CHARACTER SET utf16",
			"t": "CHAR(36)", "strict": "CHAR(36)",
		} {
			direct.Must(t, "CREATE TABLE "+table+" (a INT, pid "+kind+")")
		}
		addr := wideProxy(t, server, db, "number", "narrow", "bytes", "body", "sixteen", "wide")
		for _, session := range []string{"SET NAMES binary", "SET NAMES utf8mb4"} {
			s := wireclient.Open(t, addr, db)
			s.Must(t, session)
			for _, tt := range []struct {
				text string
				code uint16
				want []string
			}{
				{"INSERT INTO number (a) VALUES (1)", 1467, []string{"column pid of table " + db + ".number has the type BIGINT", "source public_id", "CHAR(36)", "BINARY(16)"}},
				{"INSERT INTO narrow (a) VALUES (1)", 1467, []string{"CHAR(35)"}},
				{"INSERT INTO bytes (a) VALUES (1)", 1467, []string{"BINARY(20)"}},
				{"INSERT INTO body (a) VALUES (1)", 1467, []string{"has the type"}},
				{"INSERT INTO sixteen (a) VALUES (1)", 1467, []string{"CHAR(16)"}}, // and not BINARY(16)
				{"INSERT INTO wide (a) VALUES (1)", 1467, []string{"CHAR(36) CHARACTER SET utf16"}},
				{"INSERT INTO t (a) SELECT 1", 1235, []string{"INSERT ... SELECT into column pid, whose ids are no numbers"}},
				{"REPLACE INTO t (a,pid) SELECT 1,'x'", 1235, []string{"REPLACE ... SELECT"}},
				{"LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a)", 1235, []string{"LOAD DATA into column pid"}},
				{"PREPARE p FROM 'INSERT INTO t (a) SELECT 1'", 1235, []string{"SELECT"}},
				{"INSERT INTO t (pid,a) VALUES (UUID(),pid)", 1235, []string{"reads a generated column"}},
				{"INSERT INTO strict VALUES (1,'x')", 1235, []string{"explicit: reject"}},
				{"INSERT INTO strict VALUES (1,REPEAT('x',3))", 1235, []string{"explicit: reject"}},
			} {
				e := s.Fails(t, tt.text)
				for _, want := range tt.want {
					assert.True(t, e.Code == tt.code && strings.Contains(e.Message, want), "%s: %s: %v, want %d and %q", session, tt.text, e, tt.code, want)
				}
			}
			replies, err := s.Prepare("p", "INSERT INTO t (a) SELECT ?")
			assert.True(t, err == nil && replies[0].Err != nil && replies[0].Err.Code == 1235, "%s: a prepared INSERT ... SELECT: %v, %+v", session, err, replies)
		}
		for _, table := range []string{"number", "narrow", "bytes", "body", "sixteen", "wide", "t", "strict"} {
			assert.Equal(t, table+": rows", direct.Value(t, "SELECT COUNT(*) FROM "+table), "0")
		}
		s := wireclient.Open(t, addr, db)
		s.Must(t, "INSERT INTO strict VALUES (1,NULL)", "INSERT INTO t VALUES (1,'own'),(2,''),(3,0),(4,CONCAT('a','b'))")
		for a, want := range []string{"own", "", "0", "ab"} {
			assert.Equal(t, "stored", direct.Value(t, fmt.Sprintf("SELECT pid FROM t WHERE a=%d", a+1)), want)
		}
	})
}

// TestWideTableChanges alters the column under prepared statements and sessions.
func TestWideTableChanges(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct, s := wireclient.Open(t, server.Addr, db), wireclient.Open(t, wideProxy(t, server, db), db)
		direct.Must(t, "CREATE TABLE t (a INT, pid CHAR(36) NOT NULL)")
		s.Must(t, "PREPARE q FROM 'INSERT INTO t (a) VALUES (1)'", "EXECUTE q")
		s.MustPrepare(t, "p", "INSERT INTO t (a) VALUES (1)")
		s.MustExecute(t, "p")
		s.Must(t, "DELETE FROM t", "ALTER TABLE t MODIFY pid BINARY(16) NOT NULL")
		s.MustExecute(t, "p") // after the column became another
		s.Must(t, "EXECUTE q", "INSERT INTO t (a) VALUES (1)")
		for _, row := range direct.Must(t, "SELECT LOWER(HEX(pid)) FROM t").Rows {
			assert.True(t, withoutDashes.MatchString(row[0]), "%q is stored", row[0])
		}
		if server.Kind.String() == "MariaDB" {
			shown := s.Must(t, "INSERT INTO t (a) VALUES (2),(3) RETURNING LOWER(HEX(pid))").Rows
			stored := direct.Must(t, "SELECT LOWER(HEX(pid)) FROM t WHERE a>1 ORDER BY a").Rows
			assert.True(t, fmt.Sprint(shown) == fmt.Sprint(stored) && len(shown) == 2, "RETURNING shows %v, stored is %v", shown, stored)
		}
	})
}

// TestWideBound brings ids as parameters, as long data and as arguments, some of them NULL.
func TestWideBound(t *testing.T) {
	own := "\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f"
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct, s := wireclient.Open(t, server.Addr, db), wireclient.Open(t, wideProxy(t, server, db), db)
		direct.Must(t, "CREATE TABLE b (a INT, pid BINARY(16))", "CREATE TABLE t (a INT, pid CHAR(36))")
		s.Must(t, "SET character_set_client=latin1, character_set_connection=utf8mb4")
		for _, table := range []string{"b", "t"} {
			s.MustPrepare(t, table, "INSERT INTO "+table+" VALUES (?,?)")
		}
		pieces := wireclient.Argument{Kind: mysql.MYSQL_TYPE_BLOB, Chunks: []string{own[:7], own[7:]}}
		for i, e := range []struct {
			table string
			id    wireclient.Argument
			want  string // hexadecimal digits; empty: an id of the source
		}{
			{"b", wireclient.TextOf(mysql.MYSQL_TYPE_BLOB, own), hex.EncodeToString([]byte(own))},
			{"b", pieces, hex.EncodeToString([]byte(own))},
			{"b", wireclient.Null(mysql.MYSQL_TYPE_BLOB), ""},
			{"b", wireclient.Null(mysql.MYSQL_TYPE_VAR_STRING), ""},
			{"b", wireclient.Varchar("own"), hex.EncodeToString([]byte("own" + strings.Repeat("\x00", 13)))},
			{"t", wireclient.Varchar("m\xfcller"), hex.EncodeToString([]byte("m\xc3\xbcller"))},
			{"t", wireclient.Varchar(""), "-"},
			{"t", wireclient.Long(0), "30"},
			{"t", wireclient.Null(mysql.MYSQL_TYPE_LONGLONG), ""},
		} {
			if replies, err := s.Execute(e.table, wireclient.Execution{Args: []wireclient.Argument{wireclient.Long(int64(i)), e.id}}); err != nil || replies[0].Err != nil || replies[0].Warnings != 0 {
				t.Errorf("%s %v: %v, %+v", e.table, e.id, err, replies)
				continue
			}
			shown := map[string]string{"b": "LOWER(HEX(pid))", "t": "LOWER(HEX(CONVERT(pid USING utf8mb4)))"}[e.table]
			got := strings.ReplaceAll(direct.Value(t, fmt.Sprintf("SELECT CONCAT(%s,'') FROM %s WHERE a=%d", shown, e.table, i)), " ", "")
			if e.want == "" && e.table == "t" {
				digits, _ := hex.DecodeString(got)
				got = string(digits)
			}
			fits := got == strings.Trim(e.want, "-")
			if e.want == "" {
				fits = withoutDashes.MatchString(got) || withDashes.MatchString(got)
			}
			assert.True(t, fits, "%s %v: stored is %q, want %q", e.table, e.id, got, e.want)
		}
	})
}

// TestWideBulk executes rows of parameters, some of which bring their ids.
func TestWideBulk(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	direct := wireclient.Open(t, server.Addr, db)
	s := assert.Of(wireclient.DialWith(wireclient.BulkOperations, wideProxy(t, server, db), db)).Must(t)
	t.Cleanup(s.Close)
	s.Must(t, "SET character_set_client=latin1, character_set_connection=utf8mb4")
	bytes := "\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f"
	missing := func(kind byte, indicator byte) wireclient.Argument {
		return wireclient.Argument{Kind: kind, Indicator: indicator}
	}
	for name, tt := range map[string]struct {
		column, text string
		ids          []wireclient.Argument // none: the statement does not name them
		refused      bool
	}{
		"text, absent":            {column: "CHAR(36)", text: "INSERT INTO t (a) VALUES (?)"},
		"bytes, absent":           {column: "BINARY(16)", text: "INSERT INTO t (a) VALUES (?)"},
		"text, all NULL":          {column: "CHAR(36)", ids: []wireclient.Argument{missing(mysql.MYSQL_TYPE_NULL, 1), missing(mysql.MYSQL_TYPE_NULL, 1)}},
		"bytes, all NULL":         {column: "BINARY(16)", ids: []wireclient.Argument{missing(mysql.MYSQL_TYPE_VAR_STRING, 1), missing(mysql.MYSQL_TYPE_VAR_STRING, 2)}},
		"text, some":              {column: "CHAR(36)", ids: []wireclient.Argument{wireclient.Varchar("own"), missing(mysql.MYSQL_TYPE_VAR_STRING, 1), missing(mysql.MYSQL_TYPE_VAR_STRING, 3)}},
		"bytes, some":             {column: "BINARY(16)", ids: []wireclient.Argument{wireclient.TextOf(mysql.MYSQL_TYPE_BLOB, bytes), missing(mysql.MYSQL_TYPE_BLOB, 2)}},
		"bytes, some as text":     {column: "BINARY(16)", ids: []wireclient.Argument{wireclient.Varchar("own"), missing(mysql.MYSQL_TYPE_VAR_STRING, 1)}, refused: true},
		"text, some as numbers":   {column: "CHAR(36)", ids: []wireclient.Argument{wireclient.Long(7), missing(mysql.MYSQL_TYPE_LONGLONG, 1)}, refused: true},
		"expressions, some text":  {column: "CHAR(36)", text: "INSERT INTO t VALUES (?,NULLIF(?,'gone'))", ids: []wireclient.Argument{wireclient.Varchar("own"), wireclient.Varchar("gone")}},
		"expressions, some bytes": {column: "BINARY(16)", text: "INSERT INTO t VALUES (?,NULLIF(?,X'30'))", ids: []wireclient.Argument{wireclient.TextOf(mysql.MYSQL_TYPE_BLOB, bytes), wireclient.TextOf(mysql.MYSQL_TYPE_BLOB, "0")}},
	} {
		direct.Must(t, "DROP TABLE IF EXISTS t", "CREATE TABLE t (a INT, pid "+tt.column+" NOT NULL PRIMARY KEY)")
		s.Must(t, "DROP TABLE IF EXISTS other") // what is known of tables is forgotten
		statement := tt.text
		if statement == "" {
			statement = "INSERT INTO t VALUES (?,?)"
		}
		s.MustPrepare(t, name, statement)
		rows := [][]wireclient.Argument{{wireclient.Long(0)}, {wireclient.Long(1)}, {wireclient.Long(2)}}
		if tt.ids != nil {
			rows = nil
			for i, id := range tt.ids {
				rows = append(rows, []wireclient.Argument{wireclient.Long(int64(i)), id})
			}
		}
		replies := assert.Of(s.Bulk(name, true, rows)).Must(t, name)
		if tt.refused {
			e := replies[0].Err
			assert.True(t, e != nil && e.Code == 1235 && direct.Value(t, "SELECT COUNT(*) FROM t") == "0", "%s: %+v, want 1235 and no row", name, replies)
			continue
		}
		if r := replies[0]; r.Err != nil || r.Affected != uint64(len(rows)) || r.InsertID != 0 {
			t.Errorf("%s: %v, %+v", name, r.Err, r)
			continue
		}
		for _, row := range direct.Must(t, "SELECT a,IF(pid IN ('own',X'"+hex.EncodeToString([]byte(bytes))+"'),'own',IF(LENGTH(pid)=16,LOWER(HEX(pid)),pid)) FROM t").Rows {
			given := tt.ids != nil && tt.ids[row[0][0]-'0'].Indicator == 0 && row[0] == "0"
			assert.True(t, given == (row[1] == "own") && (given || withDashes.MatchString(row[1]) || withoutDashes.MatchString(row[1])), "%s: row %v", name, row)
		}
	}
}
