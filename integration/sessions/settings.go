package sessions

import "fmt"

// setting draws a SET.
func (g *generator) setting() string {
	g.serial++
	switch g.IntN(18) {
	case 0:
		return "SET NAMES " + g.pick("utf8mb4", "utf8mb4", "latin1", "gbk", "sjis", "cp932", "big5", "utf8mb3", "cp1251", "utf8mb4 COLLATE utf8mb4_bin", "DEFAULT", "no_such")
	case 1:
		return "SET " + g.pick("character_set_client", "character_set_connection", "character_set_results") + "=" + g.pick("utf8mb4", "latin1", "utf8mb4", "sjis")
	case 2:
		if !g.manual { // the proxy's question of a column's character set begins a transaction
			return "SET " + g.pick("NAMES binary", "character_set_results=NULL")
		}
		return "SET character_set_results=" + g.pick("utf8mb4", "latin1", "utf8mb4")
	case 3:
		return "SET collation_connection=" + g.pick("utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_bin", "gbk_chinese_ci")
	case 4:
		if g.zero {
			return "SET sql_mode=" + g.pick("'NO_AUTO_VALUE_ON_ZERO'", "'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'")
		}
		return "SET sql_mode='STRICT_ALL_TABLES'"
	case 5, 6:
		return "SET " + g.pick("", "SESSION ", "@@") + "sql_mode=" + g.pick("''", "'STRICT_ALL_TABLES'", "'STRICT_TRANS_TABLES'", "'ANSI_QUOTES'", "'NO_BACKSLASH_ESCAPES'", "'PIPES_AS_CONCAT,IGNORE_SPACE'", "'ANSI'", "DEFAULT", "'STRICT_ALL_TABLES'", "'nonsense'", "CONCAT(@@sql_mode, ',ANSI_QUOTES')")
	case 7:
		return "SET auto_increment_increment=" + g.pick("1", "1", "2", "5", "10") + g.pick("", ", auto_increment_offset=1", ", auto_increment_offset=2")
	case 9:
		return g.pick("SET last_insert_id=", "SET @@identity=", "SET last_insert_id=") + fmt.Sprint(g.IntN(1000))
	case 10:
		return "SET SQL_SELECT_LIMIT=" + g.pick("1", "2", "DEFAULT", "DEFAULT", "0", "100")
	case 11:
		return "SET " + g.pick("sql_notes=0", "sql_notes=1", "sql_warnings=1", "max_error_count=0", "max_error_count=2", "max_error_count=64", "max_error_count=DEFAULT")
	case 12:
		return "SET " + g.pick("lc_messages='de_DE'", "lc_messages='en_US'", "time_zone='+01:00'", "unique_checks=1", "foreign_key_checks=0", "sql_safe_updates=0", "group_concat_max_len=20", "div_precision_increment=2")
	case 13:
		// Texts are ordered by, and ids are others, so none is a text.
		return "SET " + g.pick("@t1 = 'var'", "@t1 = NULL", "@t1 = 5", "@last = LAST_INSERT_ID()")
	case 14:
		return "SET SESSION TRANSACTION " + g.pick("ISOLATION LEVEL READ COMMITTED", "ISOLATION LEVEL REPEATABLE READ")
	case 15:
		return "SET no_such_variable=1"
	}
	if g.manual {
		return "SET autocommit=" + g.pick("0", "0", "1")
	}
	return "SET autocommit=1"
}

// transaction draws a statement of one.
func (g *generator) transaction() string {
	return g.pick("BEGIN", "START TRANSACTION", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE SAVEPOINT s", "COMMIT AND CHAIN", "SET autocommit=1")
}

// other draws a statement that is no INSERT.
func (g *generator) other() string {
	t := g.any()
	return g.pick(g.update(withValues), "DO 1", "DO LAST_INSERT_ID(77)", "SELECT COUNT(*) FROM "+t.name, "SHOW COLUMNS FROM p1", "SELECT 1 UNION SELECT 2", "SELECT nowhere FROM "+t.name, "USE {db}", "SELECT @@sql_mode",
		"SELECT @@character_set_client, @@collation_connection, @@insert_id", "SELECT @@autocommit, @@sql_select_limit", "nonsense", "DELETE FROM "+t.name+" WHERE id < 50", "SELECT DATABASE() = '{db}'")
}

// query reads a table.
func (g *generator) query() {
	t := g.any()
	g.say(g.pick("SELECT * FROM "+t.name+" ORDER BY a, n, u, id", "SELECT id, u FROM "+t.name+" ORDER BY id", "SELECT a, n FROM "+t.name+" WHERE id = LAST_INSERT_ID()",
		"SELECT COUNT(*), MAX(n), MAX(u) FROM "+t.name, "SELECT l.what, l.ref FROM log l ORDER BY l.k DESC LIMIT 3",
		"SELECT SQL_CALC_FOUND_ROWS a FROM p1 ORDER BY a, n LIMIT 1;SELECT FOUND_ROWS()"), 0)
}
