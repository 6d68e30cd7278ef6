package oracle

import (
	"fmt"
	"strings"
)

// piece is one statement of a text of several, or a few that belong together.
type piece struct {
	kind string
	sql  string // § makes names differ, {n} is a number of their own
}

// asks says whether the proxy has to ask which rows of a piece went in.
func (p *piece) asks() bool {
	return (p.kind == "ignore" || p.kind == "update") && strings.Contains(p.sql, "), (")
}

// pieces are what texts are made of. Those of one kind say the same in other ways.
var pieces = []piece{
	{"insert", "INSERT INTO t (a) VALUES ('one§')"},
	{"insert", "INSERT INTO {db}.t (a) VALUES ('first§'), ('second§')"},
	{"insert", "REPLACE INTO tail (a,id,parent) VALUES ('replaced§', NULL, @@identity)"},
	{"child", "INSERT INTO mid (a,parent) VALUES ('child§', LAST_INSERT_ID())"},
	{"child", "INSERT INTO `tail` VALUES ('child§', LAST_INSERT_ID(), NULL, NULL, NULL, NULL, 0), ('later§', @@identity, NULL, NULL, NULL, NULL, NULL)"},
	{"child", "INSERT INTO readings VALUES ('read§', LAST_INSERT_ID())"},
	{"explicit", "INSERT INTO t (id,a) VALUES ({n},'explicit§')"},
	{"set", "SET sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'; INSERT INTO \"t\" (\"a\") VALUES ('q\"§'); SET sql_mode = DEFAULT"},
	{"set", "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPE§'); INSERT INTO t (a) VALUES ('b§\\'); SET sql_mode = DEFAULT"},
	{"set", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'; INSERT INTO t (id,a) VALUES (NULL,'null§'); SET sql_mode = DEFAULT"},
	{"set", "SET auto_increment_increment = 5; INSERT INTO t (a) VALUES ('far§'), ('wide§'); SET auto_increment_increment = DEFAULT"},
	{"set", "SET @x = LAST_INSERT_ID(); INSERT INTO t (a,parent) VALUES ('variable§', @x)"},
	{"charset", "SET NAMES gbk; INSERT INTO t (a) VALUES ('§\x95\\'), ('\x81`§'); SET NAMES utf8mb4"},
	{"charset", "SET NAMES sjis; INSERT INTO t (a) VALUES ('§\x83\\'); SET character_set_client = utf8mb4; INSERT INTO t (a) VALUES ('§\\'é')"},
	{"charset", "SET CHARACTER SET big5; INSERT INTO mid (a) VALUES ('\xa4|§\xb3\\'); SET NAMES DEFAULT"},
	{"use", "USE information_schema; INSERT INTO {db}.t (a) VALUES ('elsewhere§'); USE {db}; INSERT INTO t (a) VALUES ('back§')"},
	{"ddl", "CREATE TABLE IF NOT EXISTS extra (id BIGINT PRIMARY KEY); INSERT INTO t (a) VALUES ('behind§')"},
	{"ddl", "ALTER TABLE easy COMMENT '§'; INSERT INTO easy (a) VALUES ('altered§')"},
	{"ddl", "CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20)); INSERT INTO t (a) VALUES ('own§'); " +
		"SELECT * FROM t; DROP TEMPORARY TABLE t; INSERT INTO t (a) VALUES ('shared§')"},
	{"call", "CALL reading('call§')"},
	{"call", "CALL last_id(); INSERT INTO t (a,parent) VALUES ('called§', LAST_INSERT_ID())"},
	{"ignore", "INSERT IGNORE INTO t (a,u) VALUES ('skipped§', 1)"},
	{"ignore", "INSERT IGNORE INTO t (a,u) VALUES ('in§', NULL), ('skipped§', 1), ('more§', NULL)"},
	{"ignore", "INSERT IGNORE INTO t (a,u,parent) VALUES ('skipped§', 1, LAST_INSERT_ID()), ('in§', NULL, LAST_INSERT_ID())"},
	{"update", "INSERT INTO t (a,u) VALUES ('update§', 1) ON DUPLICATE KEY UPDATE a = VALUES(a)"},
	{"update", "INSERT INTO t (a,u) VALUES ('new§', {n}), ('update§', 1) ON DUPLICATE KEY UPDATE a = VALUES(a), n = 3"},
	{"update", "INSERT INTO t (a,u) VALUES ('update§', 1) ON DUPLICATE KEY UPDATE a = VALUES(a), parent = LAST_INSERT_ID()"},
	{"update", "INSERT INTO t (a,u) VALUES ('none§', 2) ON DUPLICATE KEY UPDATE a = a"},
	{"set form", "INSERT INTO t SET a = 'set§', parent = LAST_INSERT_ID()"},
	{"expression", "SET @n = {n}; INSERT INTO t (id,a) VALUES (@n,'given§'), (@nowhere,'none§')"},
	{"read", "SELECT LAST_INSERT_ID(), @@identity"},
	{"read", "SHOW WARNINGS"},
	{"read", "SELECT 1; DO 1"},
	{"write", "UPDATE readings SET parent = LAST_INSERT_ID()"},
	{"write", "DELETE FROM mid WHERE a LIKE 'child%'"},
	{"transaction", "BEGIN; INSERT INTO t (a) VALUES ('lost§'); ROLLBACK"},
	{"transaction", "START TRANSACTION; INSERT INTO t (a) VALUES ('kept§'); COMMIT"},
	{"fail", "INSERT INTO t (a,u,parent) VALUES ('dup§', 1, LAST_INSERT_ID())"},
	{"fail", "SELECT nothing"},
}

// textScripts returns sessions of texts in which every piece stands behind every kind of piece.
func textScripts() []script {
	f := newFormer(formMode{name: "texts"}, "texts")
	var all []script
	for i, last := range pieces {
		sc := script{name: fmt.Sprintf("text that ends with %q", last.sql)}
		seen := map[string]bool{}
		for _, first := range pieces {
			if seen[first.kind] || first.kind == "fail" {
				continue
			}
			seen[first.kind] = true
			chosen := []piece{first, last}
			if f.IntN(2) == 0 {
				chosen = []piece{first, pieces[f.IntN(len(pieces))], last}
			}
			sc.steps = append(sc.steps, f.text(chosen))
			for _, sql := range afterwards[(i+len(seen))%len(afterwards)] {
				st := step{sql: f.numbered(sql)}
				if last.asks() {
					st.deviation = countsOfQuestion[sql]
				}
				sc.steps = append(sc.steps, st)
			}
		}
		all = append(all, sc)
	}
	return all
}

// text is a step of several pieces.
func (f *former) text(chosen []piece) step {
	var st step
	var texts []string
	for _, p := range chosen {
		f.serial++
		texts = append(texts, f.numbered(p.sql))
		st.pieces = append(st.pieces, p.kind)
	}
	st.sql = strings.Join(texts, f.pick([]string{";", "; ", " ;\n", "; /* c */ "})) + f.pick([]string{"", ";", "; "})
	return st
}

// numbered makes the names and numbers in a text its own.
func (f *former) numbered(sql string) string {
	f.serial++
	return strings.NewReplacer("§", fmt.Sprint(f.serial), "{n}", fmt.Sprint(10_000+f.serial)).Replace(sql)
}
