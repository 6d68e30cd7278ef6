package wide

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/idsource/objectid"
	"idproxy/idsource/uuid"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// wideProxy starts a proxy that fills columns of UUIDs and ObjectIds, and one of numbers. Rules of
// their own name the tables whose UUIDs it may not leave alone.
func wideProxy(t *testing.T, server *servers.Server, db string, named ...string) string {
	t.Helper()
	rules := ""
	for _, table := range named {
		rules += fmt.Sprintf("  - {table: %s.%s, column: pid, source: public_id}\n", db, table)
	}
	return harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q}]
sources: {public_id: {uuidv7: {}}, doc_id: {objectid: {}}, ids: {segment: {key: "{schema}.{table}"}}}
rules:
%[3]s  - {table: "%[2]s.strict", column: pid, source: public_id, explicit: reject}
  - {table: "%[2]s.*", column: pid, source: public_id}
  - {table: "%[2]s.*", column: oid, source: doc_id}
  - {table: "%[2]s.*", column: id, source: ids}
`, server.Addr, db, rules)).Addr("a")
}

// wideColumn is a column for such ids.
type wideColumn struct {
	name, kind string
	shown      *regexp.Regexp // of what is stored, text as it is and bytes as hexadecimal digits
	only       string
}

var wideColumns = []wideColumn{
	{name: "pid", kind: "CHAR(36) CHARACTER SET utf8mb4", shown: withDashes},
	{name: "pid", kind: "CHAR(36) CHARACTER SET sjis", shown: withDashes},
	{name: "pid", kind: "VARCHAR(60) CHARACTER SET gbk", shown: withDashes},
	{name: "pid", kind: "CHAR(32) CHARACTER SET latin1 COLLATE latin1_bin", shown: withoutDashes},
	{name: "pid", kind: "BINARY(16)", shown: withoutDashes},
	{name: "pid", kind: "VARBINARY(20)", shown: withoutDashes},
	{name: "pid", kind: "UUID", shown: withDashes, only: "MariaDB"},
	{name: "oid", kind: "CHAR(24) CHARACTER SET utf8mb4", shown: ofObject},
	{name: "oid", kind: "BINARY(12)", shown: ofObject},
}

var (
	withDashes    = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	withoutDashes = regexp.MustCompile(`^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$`)
	ofObject      = regexp.MustCompile(`^[0-9a-f]{24}$`)
)

// wideSessions are settings that texts and parameters are read by.
var wideSessions = []struct{ set, only string }{
	{set: "SET NAMES utf8mb4"},
	{set: "SET NAMES gbk"},
	{set: "SET NAMES big5"},
	{set: "SET NAMES sjis"},
	{set: "SET NAMES gb18030", only: "MySQL"},
	{set: "SET NAMES latin1"},
	{set: "SET NAMES binary"},
	{set: "SET character_set_client=latin1, character_set_connection=utf16, character_set_results=NULL"},
	{set: "SET character_set_client=gbk, character_set_connection=latin1"},
	{set: "SET sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'"},
	{set: "SET sql_mode=''"},
	{set: "SET sql_mode='NO_AUTO_VALUE_ON_ZERO,IGNORE_SPACE,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH'", only: "MariaDB"},
}

// TestWideForms fills every kind of column by every form, in many character sets and modes, and
// looks at what is stored.
func TestWideForms(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		kind := server.Kind.String()
		db := harness.Database(t, server)
		direct, addr := wireclient.Open(t, server.Addr, db), wideProxy(t, server, db)
		for _, session := range wideSessions {
			if session.only != "" && session.only != kind {
				continue
			}
			s := wireclient.Open(t, addr, db)
			s.Must(t, session.set)
			for i, c := range wideColumns {
				if c.only != "" && c.only != kind {
					continue
				}
				table := fmt.Sprintf("t%d", i)
				direct.Must(t, "DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+" (a INT, "+c.name+" "+c.kind+" NOT NULL PRIMARY KEY)")
				rows := wideForms(t, s, table, c)
				assert.MustTrue(t, !t.Failed(), "%s: %s", session.set, c.kind)
				checkWide(t, direct, table, i, rows)
			}
		}
	})
}

// wideForms inserts rows in all forms; it returns how many.
func wideForms(t *testing.T, s *wireclient.Session, table string, c wideColumn) (rows int) {
	t.Helper()
	empty := "nullif(concat(1,(select 1)),11)"
	if c.kind == "UUID" { // takes no expressions
		empty = "null"
	}
	replace := strings.NewReplacer("EMPTY", empty, "T", table, "C", c.name)
	check := func(what string, n uint64, replies []wireclient.Reply, err error) {
		t.Helper()
		last := wireclient.Reply{}
		if err == nil {
			last = replies[len(replies)-1]
		}
		assert.True(t, err == nil && last.Err == nil && last.Affected == n && last.Warnings == 0 && last.InsertID == 0, "%s: %v, %v, %+v", what, err, last.Err, last)
		rows += int(n)
	}
	for _, form := range []struct {
		text string
		rows uint64
	}{
		{"insert into T (a) values (1),(2)", 2},
		{"insert into T values (3,NULL),(4,default)", 2},
		{"insert into T set a=5", 1},
		{"replace into T (C,a) values (EMPTY,6),(null,7)", 2},
		{"insert into T (a) values (8) on duplicate key update a=9", 1},
		{"insert ignore into T (a) values (10),(11)", 2},
		{"insert into T (a) values (12); insert into T (a) values (13)", 1},
		{"prepare p from 'insert into T (a) values (?),(14)'", 0},
		{"set @a=15, @b=null", 0},
		{"prepare q from 'insert into T (C,a) values (?,16),(EMPTY,?)'", 0},
	} {
		replies, err := s.Query(replace.Replace(form.text))
		check(form.text, form.rows, replies, err)
	}
	rows++ // the first of two statements
	for _, text := range []string{"execute p using @a", "execute p using @b", "execute q using @b, @a"} {
		replies, err := s.Query(text)
		check(text, 2, replies, err)
	}
	none, seven := wireclient.Null(mysql.MYSQL_TYPE_NULL), wireclient.Long(7)
	for i, e := range []struct {
		text string
		args []wireclient.Argument
		n    uint64
	}{
		{"insert into T (a) values (?)", []wireclient.Argument{seven}, 1},
		{"insert into T (a) values (1),(2),(?)", []wireclient.Argument{seven}, 3},
		{"insert into T (C,a) values (?,1),(null,2),(EMPTY,?)", []wireclient.Argument{none, seven}, 3},
		{"insert into T (C,a) values (?,1)", []wireclient.Argument{wireclient.Null(mysql.MYSQL_TYPE_BLOB)}, 1},
		{"insert into T (a) values (1)", nil, 1},
	} {
		name := fmt.Sprint(i)
		if replies, err := s.Prepare(name, replace.Replace(e.text)); err != nil || replies[0].Err != nil {
			t.Errorf("%s: %v, %v", e.text, err, replies)
			continue
		}
		for range 3 {
			replies, err := s.Execute(name, wireclient.Execution{Args: e.args})
			check(e.text, e.n, replies, err)
		}
		assert.Of(s.CloseStatement(name)).Must(t)
	}
	return rows
}

// checkWide looks at all ids of a table: their form, their number, and the time in them.
func checkWide(t *testing.T, direct *wireclient.Session, table string, column, rows int) {
	t.Helper()
	c := wideColumns[column]
	shown := "CONVERT(" + c.name + " USING latin1)"
	if strings.Contains(c.kind, "BINARY") {
		shown = "LOWER(HEX(" + c.name + "))"
	}
	got := direct.Must(t, "SELECT "+shown+" FROM "+table).Rows
	assert.True(t, len(got) == rows && rows >= 20, "%s: %d rows, want %d", c.kind, len(got), rows)
	seen := map[string]bool{}
	for _, row := range got {
		at := time.Time{}
		if id, err := uuid.Parse(row[0]); err == nil {
			parts, _ := id.Parts()
			at = parts.Time
		} else if id, err := objectid.Parse(row[0]); err == nil {
			at = id.Parts().Time
		}
		assert.True(t, c.shown.MatchString(row[0]) && !seen[row[0]] && time.Since(at).Abs() <= time.Minute, "%s: id %q of %v", c.kind, row[0], at)
		seen[row[0]] = true
	}
}

// TestWideBytesControl shows that what TestWideForms looks at would go wrong: bytes bound as a
// string, not as a BLOB, are converted on their way into a BINARY column.
func TestWideBytesControl(t *testing.T) {
	id, _ := hex.DecodeString("017f22e279b07cc398c4dc0c0c07398f")
	for _, server := range harness.Servers(t) {
		db := harness.Database(t, server)
		s := wireclient.Open(t, server.Addr, db)
		s.Must(t, "CREATE TABLE b (pid VARBINARY(40), a INT)", "SET character_set_client=latin1, character_set_connection=utf8mb4")
		assert.Of(s.Prepare("p", "INSERT INTO b VALUES (?,?)")).Must(t)
		for i, kind := range []byte{mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_VAR_STRING} {
			args := []wireclient.Argument{wireclient.TextOf(kind, string(id)), wireclient.Long(int64(i))}
			s.MustExecute(t, "p", args...)
			same := s.Value(t, fmt.Sprintf("SELECT LOWER(HEX(pid)) FROM b WHERE a=%d", i)) == hex.EncodeToString(id)
			assert.Equal(t, fmt.Sprintf("%s, type %d: stored unchanged", server.Kind, kind), same, kind == mysql.MYSQL_TYPE_BLOB)
		}
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
