package rewriter

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func show(h Head) string {
	s := [...]string{"other", "insert", "replace", "load", "portion", "prepare", "execute", "call", "set", "use", "ddl", "compound"}[h.Kind]
	if h.Create {
		s += " create"
	}
	if h.Drop {
		s += " drop"
	}
	if h.Temporary {
		s += " temporary"
	}
	if h.Target.Schema != nil || h.Target.Table != nil {
		s += fmt.Sprintf(" %s.%s", h.Target.Schema, h.Target.Table)
	}
	return s
}

// headOf is the head of a whole text.
func headOf(text string, m Mode) Head {
	head, _ := ReadHead([]byte(text), m)
	return head
}

func TestReadHead(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"SELECT 1", "other"},
		{"", "other"},
		{";", "other"},
		{"  ((SELECT 1))", "other"},
		{"COMMIT", "other"},
		{"INSERT INTO t VALUES (1)", "insert .t"},
		{"insert t set a=1", "insert .t"},
		{"INSERT INTO db.t(a)", "insert db.t"},
		{"INSERT INTO `d``b` . `t.x` (a)", "insert d`b.t.x"},
		{"INSERT INTO .t VALUES", "insert .t"},
		{"INSERT INTO.t VALUES", "insert INTO.t"},
		{"INSERT IGNORE.2 VALUES", "insert IGNORE.2"},
		{"REPLACE INTO.`t` VALUES", "replace .t"},
		{"INSERT INTO db /*x*/ . -- y\n values VALUES (1)", "insert db.values"},
		{"INSERT INTO `values` VALUES (1)", "insert .values"},
		{"REPLACE DELAYED INTO t SELECT 1", "replace .t"},
		{"INSERT HIGH_PRIORITY IGNORE INTO 2024_log VALUES (1)", "insert .2024_log"},
		{"INSERT INTO db.5 VALUES (1)", "insert db.5"},
		{"INSERT INTO 1e5 VALUES (1)", "insert"},
		{"INSERT INTO 't' VALUES (1)", "insert"},
		{"INSERT INTO \"t\" VALUES (1)", "insert"},
		{"INSERT INTO täble VALUES (1)", "insert .täble"},
		{"INSERT\xA0INTO t VALUES (1)", "insert"},
		{"\xA0INSERT INTO t VALUES (1)", "insert .t"},
		{"INSERT INTO\xA0t VALUES (1)", "insert"},
		{"\xEF\xBB\xBFINSERT INTO t VALUES (1)", "insert .t"},
		{"INSERTED", "other"},
		{"INSERT_x", "other"},
		{"/* a */ -- b\n # c\n /*+ d */ INSERT INTO t", "insert .t"},
		{"--INSERT INTO t", "other"},
		{"/*INSERT INTO t*/", "other"},
		{"/*!INSERT*/ INTO t", "insert .t"},
		{"/*!50000 INSERT INTO t */ VALUES (1)", "insert .t"},
		{"/*!99999 SELECT */ INSERT INTO t VALUES (1)", "insert .t"},
		{"/*!99999 INSERT INTO u */ INSERT INTO t VALUES (1)", "insert"},
		{"/*!99999 CALL p(' */ INSERT INTO t VALUES (1)", "compound"},
		{"INSERT /*!50000 INTO */ t VALUES (1)", "insert .t"},
		{"INSERT INTO /*!99999 u */ t VALUES (1)", "insert"},
		{"/*M! INSERT INTO t */ SELECT 1", "other"},
		{"LOAD DATA LOCAL INFILE 'a INTO TABLE b' REPLACE INTO TABLE db.t FIELDS", "load db.t"},
		{"LOAD XML INFILE 'x' INTO TABLE t", "load .t"},
		{"LOAD INDEX INTO CACHE t", "other"},
		{"PREPARE s FROM 'INSERT INTO t'", "prepare"},
		{"EXECUTE s", "execute"},
		{"EXECUTE IMMEDIATE 'x'", "execute"},
		{"CALL p()", "call"},
		{"SET a=1", "set"},
		{"SET @@session.sql_mode=''", "set"},
		{"SET STATEMENT a=1 FOR INSERT INTO t VALUES (1)", "compound"},
		{"SET statement=1", "set"},
		{"USE db", "use db."},
		{"use `d``b`;", "use d`b."},
		{"CREATE TABLE t (a int)", "ddl create .t"},
		{"CREATE OR REPLACE TEMPORARY TABLE IF NOT EXISTS d.t LIKE u", "ddl create temporary d.t"},
		{"DROP TEMPORARY TABLE IF EXISTS t, u", "ddl drop temporary .t"},
		{"DROP TABLES t", "ddl drop .t"},
		{"ALTER TABLE t ADD b int", "ddl .t"},
		{"TRUNCATE t", "ddl"},
		{"RENAME TABLE a TO b", "ddl"},
		{"CREATE DATABASE d", "ddl create"},
		{"DROP PROCEDURE p", "ddl drop"},
		{"CREATE DEFINER=`event`@table SQL SECURITY INVOKER VIEW v AS SELECT 1", "ddl create"},
		{"CREATE DEFINER=a@b PROCEDURE p() INSERT INTO t VALUES (1)", "other"},
		{"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a=1", "other"},
		{"CREATE OR REPLACE PACKAGE BODY p AS END", "other"},
		{"ALTER EVENT e DO INSERT INTO t VALUES (1)", "other"},
		{"EXPLAIN INSERT INTO t VALUES (1)", "other"},
		{"DESC t", "other"},
		{"EXPLAIN ANALYZE INSERT INTO t VALUES (1)", "compound"},
		{"ANALYZE INSERT INTO t VALUES (1)", "compound"},
		{"ANALYZE FORMAT=JSON INSERT INTO t VALUES (1)", "compound"},
		{"ANALYZE LOCAL TABLE t", "other"},
		{"BEGIN", "other"},
		{"BEGIN;", "other"},
		{"BEGIN WORK", "other"},
		{"BEGIN NOT ATOMIC INSERT INTO t VALUES (1); END", "compound"},
		{"BEGIN INSERT INTO t VALUES (1); END", "compound"},
		{"x: BEGIN NOT ATOMIC END", "compound"},
		{"`x` : LOOP END LOOP", "compound"},
		{"IF 1 THEN SELECT 1; END IF", "compound"},
		{"CASE 1 WHEN 1 THEN SELECT 1; END CASE", "compound"},
		{"<<x>> BEGIN END", "compound"},
		{"FLUSH TABLES", "other"},
		{"SHOW TABLES", "other"},
		{"TABLE t", "other"},
		{"WITH c AS (SELECT 1) SELECT * FROM c", "other"},
		{"REPLACE INTO t PARTITION (p0) VALUES (1)", "replace .t"},
		{"'INSERT INTO t'", "other"},
		{"$$ INSERT INTO t", "other"},
	} {
		assert.Equal(t, tt.in, show(headOf(tt.in, Mode{})), tt.want)
	}
	for _, tt := range []struct{ in, want string }{
		{"UPDATE t SET a=1", "other"},
		{"DELETE FROM t PARTITION (p0" + strings.Repeat(", p1", 100) + ") FOR PORTION OF p FROM 1 TO 2", "portion .t"},
		{"DELETE FROM t PARTITION (p0", "other"},
		{"UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a=1", "portion .t"},
		{"update low_priority ignore `d`.`t` partition (p0, p1) for /* x */ portion of p from 1 to 2 set a=1", "portion d.t"},
		{"DELETE LOW_PRIORITY QUICK IGNORE FROM d.t FOR PORTION OF p FROM 1 TO 2", "portion d.t"},
		{"DELETE FROM t WHERE a='FOR PORTION OF'", "other"},
		{"DELETE t FROM t JOIN u FOR PORTION OF p FROM 1 TO 2", "other"},
		{"UPDATE\xA0t FOR PORTION OF p FROM 1 TO 2 SET a=1", "portion"},
		{"UPDATE t\xA0FOR PORTION OF p FROM 1 TO 2 SET a=1", "portion"},
		{"UPDATE t SET a='\xA0', b='portion'", "other"},
		{"/*!100400 UPDATE */ t FOR PORTION OF p FROM 1 TO 2 SET a=1", "portion .t"},
		{"ANALYZE UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a=1", "compound"},
	} {
		assert.Equal(t, tt.in, show(headOf(tt.in, Mode{MariaDB: true})), tt.want)
		assert.True(t, headOf(tt.in, Mode{}).Kind != Portion, "%s is no MySQL's", tt.in)
	}
	assert.Equal(t, "MariaDB's comment", show(headOf("/*M!100100 INSERT INTO t */ VALUES (1)", Mode{MariaDB: true})), "insert .t")
	assert.Equal(t, "quoted name", show(headOf(`INSERT INTO "t" VALUES (1)`, Mode{ANSIQuotes: true})), "insert .t")
}

func TestReadHeadAsksForMore(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "SEL": true, "SELECT": true, "SELECT ": false, "INSERT": true, "INSERT INTO": true, "INSERT INTO t": true,
		"INSERT INTO t ": true, "INSERT INTO t (a": false, "INSERT INTO db.": true, "INSERT INTO `t": true, "INSERT INTO `t`": true,
		"INSERT INTO `t` V ": false, "INSERT /* x": true, "INSERT -- x": true, "/": true, "/*": true, "(": true, "-": true, "UPDATE t": false,
		"LOAD DATA INFILE 'x' INTO TABLE": true, "CREATE ": true, "CREATE VIEW ": false, "BEGIN": true, "BEGIN;x": false, "SET a=": false,
		"/*!50000 SELECT ": true,
	} {
		_, more := ReadHead([]byte(text), Mode{})
		assert.True(t, more == want, "%q: more is %v, want %v", text, more, want)
	}
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string // statements, separated by |; ~ in front of one in doubt
	}{
		{"", ""},
		{" ; ", "~ ; "},
		{"-- x", ""},
		{"SELECT 1", "SELECT 1"},
		{"SELECT 1;", "SELECT 1"},
		{"SELECT 1; /*x*/ ;; # y", "SELECT 1"},
		{"SELECT 1;;SELECT 2", "SELECT 1|~;SELECT 2"},
		{"SELECT ';', `;`, \";\" /*;*/ -- ;\n # ;\n;b", "SELECT ';', `;`, \";\" /*;*/ -- ;\n # ;\n|b"},
		{"SELECT '\\';';b", "SELECT '\\';'|b"},
		{"SELECT 1--;b", "SELECT 1--|b"},
		{"SELECT $$;$$;b", "~SELECT $$;$$|b"},
		{"SELECT a$$;b$$", "SELECT a$$|b$$"},
		{"SELECT 'x;b", "~SELECT 'x;b"},
		{"SELECT 1 /*;b", "~SELECT 1 /*;b"},
		{"/*!40101 SET a=1 */;b", "/*!40101 SET a=1 */|b"},
		{"SELECT 1 /*!99999 ; */ ;b", "~SELECT 1 /*!99999 | */ |b"},
		{"SELECT 1 /*!99999 it's */; INSERT INTO t VALUES ('x')", "~SELECT 1 /*!99999 it's */; INSERT INTO t VALUES ('x')"},
		{"SELECT 1 /*!99999 it's */; INSERT INTO t VALUES (1) -- it's\n;c", "~SELECT 1 /*!99999 it's */; INSERT INTO t VALUES (1) -- it's\n|c"},
		{"CREATE PROCEDURE p() INSERT INTO t VALUES (1);b", "CREATE PROCEDURE p() INSERT INTO t VALUES (1)|b"},
		{"CREATE PROCEDURE IF NOT EXISTS p() SELECT 1;b", "CREATE PROCEDURE IF NOT EXISTS p() SELECT 1|b"},
		{"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a=1;b", "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a=1|b"},
		{"CREATE PROCEDURE p() BEGIN IF a THEN b; END IF; CASE c WHEN 1 THEN d; END CASE; BEGIN e; END; END;", "CREATE PROCEDURE p() BEGIN IF a THEN b; END IF; CASE c WHEN 1 THEN d; END CASE; BEGIN e; END; END;"},
		{"CREATE PROCEDURE p() BEGIN a; END; b", "~CREATE PROCEDURE p() BEGIN a; END; b"},
		{"CREATE PROCEDURE p() BEGIN SELECT end; INSERT INTO t VALUES (1); END", "~CREATE PROCEDURE p() BEGIN SELECT end; INSERT INTO t VALUES (1); END"},
		{"CREATE PROCEDURE p() IF a THEN b; END IF;c", "~CREATE PROCEDURE p() IF a THEN b; END IF;c"},
		{"a; CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN b; END", "a| CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN b; END"},
		{"CREATE PACKAGE p AS a; END;b", "~CREATE PACKAGE p AS a; END;b"},
		{"BEGIN;INSERT INTO t VALUES (1);COMMIT", "BEGIN|INSERT INTO t VALUES (1)|COMMIT"},
		{"BEGIN NOT ATOMIC a; END;b", "BEGIN NOT ATOMIC a; END;b"},
		{"x:LOOP a; END LOOP;b", "x:LOOP a; END LOOP;b"},
	} {
		var got []string
		for _, s := range Split(nil, []byte(tt.in), Mode{MultiStatements: true}) {
			one := tt.in[s.Start:s.End]
			if s.Doubt {
				one = "~" + one
			}
			got = append(got, one)
		}
		assert.True(t, strings.Join(got, "|") == tt.want, "%q splits into %q, want %q", tt.in, got, tt.want)
	}
	got := Split(nil, []byte("a;b"), Mode{})
	assert.True(t, len(got) == 1 && got[0].End == 3, "without multi-statements: %+v", got)
	in := "CREATE PROCEDURE p AS x INT; BEGIN INSERT INTO t VALUES (1); END"
	got = Split(nil, []byte(in), Mode{MultiStatements: true, MariaDB: true})
	assert.True(t, len(got) == 1, "declarations of sql_mode ORACLE split: %+v", got)
}

func TestHidden(t *testing.T) {
	const unseen, unread = "?", "!"
	for _, tt := range []struct{ in, want string }{
		{"PREPARE s FROM 'INSERT INTO d.t VALUES (''x'', ?)'", "d.t"},
		{"PREPARE s FROM 'SELECT 1'", ""},
		{"PREPARE s FROM @v", unseen},
		{"BEGIN NOT ATOMIC PREPARE s FROM @v; EXECUTE s; DEALLOCATE PREPARE s; END", unseen},
		{"BEGIN NOT ATOMIC EXECUTE IMMEDIATE @v; END", unseen},
		{"BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'INSERT INTO ' || 't SELECT 1'; END", unseen},
		{"BEGIN NOT ATOMIC EXECUTE IMMEDIATE @v; INSERT INTO t VALUES (1); END", ".t " + unseen},
		{"SET STATEMENT max_statement_time=1 FOR EXECUTE IMMEDIATE 'SELECT ?' USING @a", ""},
		{"SET STATEMENT max_statement_time=1 FOR EXECUTE s USING @a", ""},
		{"BEGIN NOT ATOMIC SELECT prepare, immediate FROM t; END", ""},
		{"PREPARE s FROM 'INS' 'ERT INTO `a``b` VALUES (1)'", ".a`b"},
		{"PREPARE s FROM \"REPLACE\\nINTO t VALUES (1)\"", ".t"},
		{"PREPARE s FROM CONCAT('INSERT INTO ', @t)", unseen},
		{"EXECUTE IMMEDIATE 'LOAD DATA INFILE ''x'' INTO TABLE t'", ".t"},
		{"PREPARE s FROM 'EXECUTE IMMEDIATE ''INSERT INTO t VALUES (1)'''", ".t"},
		{"EXECUTE s USING 'INSERT INTO t'", ""},
		{"BEGIN NOT ATOMIC INSERT INTO a VALUES (1); REPLACE d.b SELECT REPLACE(c,'x','y'), INSERT ('a',1,1,'b'); END", ".a d.b"},
		{"SET STATEMENT x=1 FOR INSERT LOW_PRIORITY INTO t VALUES (1)", ".t"},
		{"ANALYZE FORMAT=JSON REPLACE INTO t VALUES (1)", ".t"},
		{"CREATE OR REPLACE TRIGGER x BEFORE INSERT ON u FOR EACH ROW INSERT INTO t VALUES (1)", ".t"},
		{"BEGIN NOT ATOMIC SELECT 'INSERT INTO t'; END", ""},
		{"BEGIN NOT ATOMIC LOAD DATA INFILE 'x' REPLACE INTO TABLE t; END", ".t .t"},
		{"BEGIN NOT ATOMIC INSERT INTO 'x", unread},
		{"BEGIN NOT ATOMIC INSERT INTO (SELECT 1); INSERT INTO t VALUES (1); END", ".t " + unread},
		{"BEGIN NOT ATOMIC INSERT INTO t VALUES (1); \x01 END", ".t " + unread},
		{"EXECUTE IMMEDIATE 'INSERT INTO @a'", unread},
		{"EXECUTE IMMEDIATE 'INSERT INTO'", ""},
	} {
		var got []string
		h := Hidden([]byte(tt.in), Mode{})
		for _, n := range h.Tables {
			got = append(got, fmt.Sprintf("%s.%s", n.Schema, n.Table))
		}
		if len(h.Unread) > 0 {
			got = append(got, unread)
		}
		if h.Unseen {
			got = append(got, unseen)
		}
		assert.True(t, strings.Join(got, " ") == tt.want, "%q hides %q, want %q", tt.in, got, tt.want)
	}
}
