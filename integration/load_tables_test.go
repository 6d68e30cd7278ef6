package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// loadWorlds are cases whose tables or settings differ. before runs on both sides, with AUTO for AUTO_INCREMENT; table t is
// loaded into and shown.
var loadWorlds = []struct {
	name, table, before string
	mysql               bool // on that server alone
	sql, file           string
}{
	{name: "BEFORE trigger", before: "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = UPPER(NEW.a)", sql: loadCSV + "(a,u)", file: "x,1\ny,1\nz,2\n"},
	{name: "AFTER trigger", before: "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW SET @seen = CONCAT_WS(',', @seen, NEW.a)", sql: loadCSV, file: "0,x,1\n3,y,1\n\\N,z,2\n"},
	{name: "first row skipped", before: "INSERT INTO t (id, a, u) VALUES (1, 'old', 1)", sql: loadCSV + "(a,u)", file: "x,1\ny,2\nz,3\n"},
	{name: "old rows replaced", before: "INSERT INTO t (id, a, u) VALUES (1, 'old', 1)", sql: "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (a,u)", file: "x,1\ny,2\nz,2\n"},
	{name: "zero is a value", before: "SET sql_mode='NO_AUTO_VALUE_ON_ZERO'", sql: loadCSV, file: "\\N,x,1\n0,y,2\n0,z,3\n"},
	{name: "zero is a value, missing", before: "SET sql_mode='NO_AUTO_VALUE_ON_ZERO'", sql: loadCSV + "(a,u)", file: "x,1\ny,2\n"},
	{name: "no escapes", before: "SET sql_mode='NO_BACKSLASH_ESCAPES'", sql: loadCSV + "(a,u)", file: "x\\,1\n\\N,2\n"},
	{name: "no escapes, but given", before: "SET sql_mode='NO_BACKSLASH_ESCAPES'", sql: loadCSV + "ESCAPED BY '\\' (a,u)", file: "x\\,1,2\n"},
	{name: "ANSI quotes", before: "SET sql_mode='ANSI_QUOTES'", sql: loadCSV + `("a","u")`, file: "x,1\n"},
	{name: "not strict", before: "SET sql_mode=''", sql: "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (a,u)", file: "x,1x\ny\nz,zz\n"},
	{name: "transaction", before: "BEGIN", sql: loadCSV + "(a,u)", file: "x,1\ny,2\n"},
	{name: "lock", before: "LOCK TABLES t WRITE", sql: loadCSV + "(a,u)", file: "x,1\ny,2\n"},
	{name: "generated column", table: "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARCHAR(20), u INT, g INT AS (u+1) STORED)", sql: loadCSV + "(a,u)", file: "x,1\ny,2\n"},
	{name: "partitions", table: "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARCHAR(20), u INT) PARTITION BY HASH (id) PARTITIONS 3", sql: loadCSV + "(a,u)", file: "x,1\ny,2\n"},
	{name: "MyISAM", table: "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARCHAR(20), u INT) ENGINE=MyISAM", sql: "LOAD DATA CONCURRENT LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY ',' (a,u)", file: "x,1\ny,2\n"},
	{name: "check", table: "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARCHAR(20), u INT, CHECK (u > 0))", sql: loadCSV + "(a,u)", file: "x,1\ny,-2\nz,3,more\nw,4\n"},
	{name: "unsigned", table: "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY AUTO, a VARCHAR(20), u INT)", sql: loadCSV, file: "0,x,1\n7,y,2\n"},
	{name: "hidden id, MySQL", mysql: true, table: "CREATE TABLE t (id BIGINT INVISIBLE PRIMARY KEY AUTO, a VARCHAR(20), u INT)", sql: loadCSV, file: "x,1\ny,2\n"},
	{name: "sjis", sql: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t CHARACTER SET sjis FIELDS TERMINATED BY ',' (a,u)", file: "\x83\\,1\n\x95\\\x83|,2\n"},
	{name: "gbk", sql: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t CHARACTER SET gbk FIELDS TERMINATED BY '|' (a,u)", file: "\x95\\|1\n\x81||2\n"},
	{name: "big5", sql: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t CHARACTER SET big5 FIELDS TERMINATED BY ',' ENCLOSED BY '\"' (a,u)", file: "\xa5\\,1\n\"\xb3\\\",2\n"},
	{name: "gb18030", mysql: true, sql: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t CHARACTER SET gb18030 FIELDS TERMINATED BY ',' (a,u)", file: "\x95\\,1\n\x81\x30\x81\x30,2\n"},
	{name: "broken utf8mb4", sql: loadCSV + "(a,u)", file: "\xff,2\ny,3\n"},
	{name: "reads the last insert id", sql: loadCSV + "(a) SET u = LAST_INSERT_ID()", file: "x\ny\n"},
}

func TestLoadDataTables(t *testing.T) {
	for _, s := range harness.Servers(t) {
		t.Run(s.Kind.String(), func(t *testing.T) {
			w := newLoadWorld(t, s)
			for _, c := range loadWorlds {
				if c.mysql && s.Kind != servers.MySQL {
					continue
				}
				if c.table == "" {
					c.table = loadTable
				} else if !strings.Contains(c.table, "PARTITION") {
					c.table += " AUTO_INCREMENT=1000001"
				}
				w.create(strings.Replace(c.table, "KEY AUTO)", "KEY AUTO,", 1))
				var shown [2]string
				for i, l := range []*loader{w.native, w.filled} {
					if c.before != "" {
						l.exec(c.before)
					}
					l.exec("SET @seen = NULL")
					shown[i] = generatedIDs.ReplaceAllString(quoted.ReplaceAllString(l.shownWithoutAlias(c.sql, c.file), ""), `"new"`)
					l.exec("COMMIT")
					l.exec("UNLOCK TABLES")
					l.exec("SET sql_mode=DEFAULT")
					l.exec("DROP TABLE t")
				}
				if strings.Contains(c.table, "PARTITION") { // its counter begins at 1
					shown[0] = strings.NewReplacer(`"1" "1" "x"`, `"new" "new" "x"`, `"2" "2" "y"`, `"new" "new" "y"`).Replace(shown[0])
				}
				if shown[0] != shown[1] {
					t.Errorf("%s: %s\n%q\nnative:\n%s\nthrough idproxy:\n%s", c.name, c.sql, c.file, shown[0], shown[1])
				}
			}
		})
	}
}

// shownWithoutAlias is shown for tables that may be locked under one name only.
func (l *loader) shownWithoutAlias(statement, file string) string {
	l.t.Helper()
	l.exec("DO LAST_INSERT_ID(5)")
	out := l.load(statement, strings.NewReader(file)) + "\n" + l.rows("SHOW WARNINGS")
	out += "last: " + l.rows("SELECT a, u FROM t WHERE id=LAST_INSERT_ID()") + l.rows("SELECT LAST_INSERT_ID()=5, @seen")
	return out + l.rows("SELECT IF(id>1000000,'new',id), t.* FROM t ORDER BY id")
}

// The servers' own clients load a file, several in one session, and one that is not there.
func TestLoadDataClients(t *testing.T) {
	for _, s := range harness.Servers(t) {
		t.Run(s.Kind.String(), func(t *testing.T) {
			w := newLoadWorld(t, s)
			w.create(loadTable)
			file := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(file, []byte(strings.Repeat("x\n", 100000)), 0o644); err != nil {
				t.Fatal(err)
			}
			load := "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE t (a); "
			cmd := s.ClientTo(w.proxy.Addr("a"), "--local-infile=1", "--force", "--skip-column-names", w.filledDB,
				"-e", load+"SELECT LAST_INSERT_ID()=(SELECT MIN(id) FROM t); "+load+"SELECT COUNT(*), COUNT(DISTINCT id) FROM t; LOAD DATA LOCAL INFILE '/nowhere' INTO TABLE t (a)")
			out, _ := cmd.CombinedOutput() // its status is that of the file that is not there
			if got := string(out); !strings.Contains(got, "/nowhere") || !strings.Contains(got, "1\n200000") || !strings.Contains(got, "200000\t200000") {
				t.Errorf("the client says %q", got)
			}
		})
	}
}
