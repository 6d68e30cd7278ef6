package sessions

import (
	"fmt"
	"strings"
)

// withParams and withValues say whether a statement has parameters in the place of values.
const withParams, withValues = true, false

// insert draws an INSERT, with parameters or without.
func (g *generator) insert(params bool) (string, Trait) {
	switch n := g.IntN(20); {
	case n < 3:
		return g.insertSelect(params)
	case n == 3:
		return g.update(params), Inserts
	}
	return g.insertRows(params)
}

// insertRows draws an INSERT that brings its rows.
func (g *generator) insertRows(params bool) (string, Trait) {
	t := g.any()
	verb, traits := g.verb()
	g.upsert = strings.HasPrefix(verb, "INSERT") && g.one(5)
	rows := 1
	if g.one(3) && !strings.HasPrefix(verb, "REPLACE") { // natively 1062 for an explicit id behind a generated one
		rows, traits = 2+g.IntN(3), traits|Several
		if strings.Contains(verb, "IGNORE") {
			traits |= Skips
		}
	}
	text := verb + g.name(t)
	named := g.IntN(4) > 0
	columns := t.columns
	switch {
	case g.one(12):
		text += " () VALUES ()"
	case g.one(6):
		rows = 1
		text += " SET "
		for i, c := range g.some(t) {
			if i > 0 {
				text += ", "
			}
			text += c + "=" + g.value(c, params)
		}
	default:
		if named {
			columns = g.some(t)
			text += " (" + strings.Join(columns, g.pick(",", ", ")) + ")"
		} else {
			traits |= Placed
		}
		text += " " + g.pick("VALUES", "VALUES", "values", "VALUE") + " "
		for i := range rows {
			if i > 0 {
				text += ", "
			}
			values := make([]string, len(columns))
			for j, c := range columns {
				values[j] = g.value(c, params)
				if !named && c != "id" {
					values[j] = g.plain(params)
				}
			}
			if g.one(80) {
				values = values[1:]
			}
			text += "(" + strings.Join(values, ", ") + ")"
		}
	}
	if g.upsert {
		update := g.pick("n = n + 1", "n = VALUES(n)", "a = VALUES(a)", "n = n", "n = 3, a = 'dup'")
		if rows == 1 && g.one(3) { // of several, MySQL has 1869 for a column with AUTO_INCREMENT
			update = g.pick("id = LAST_INSERT_ID(id)", "id = LAST_INSERT_ID(id), n = n + 1")
		}
		text += " ON DUPLICATE KEY UPDATE " + update
		traits |= Asks
	}
	if g.mariaDB() && g.one(10) && (!g.packet || g.hides && t.ruled) {
		text += " RETURNING " + g.pick("id", "id, a", "*", "a AS x, id + 0", "1")
		traits |= Asks
	}
	if g.one(60) {
		text += g.pick(" nonsense", ")", " WHERE 1", ", ", " 'x")
	}
	return text, traits | Inserts
}

// verb draws what stands in front of a table's name.
func (g *generator) verb() (string, Trait) {
	switch g.IntN(10) {
	case 0:
		return "REPLACE INTO ", 0
	case 1, 2:
		return "INSERT IGNORE INTO ", Asks
	case 3:
		return g.pick("INSERT LOW_PRIORITY ", "INSERT HIGH_PRIORITY INTO ", "INSERT ", "INSERT /* x */ INTO "), 0
	}
	return "INSERT INTO ", 0
}

// name writes a table's name.
func (g *generator) name(t *table) string {
	switch g.IntN(12) {
	case 0:
		return "`" + t.name + "`"
	case 1:
		return "{db}." + t.name
	case 2:
		if t.name == "r1" {
			return "{db}b.r1"
		}
		if t.name == "p1" {
			return "v1"
		}
	}
	return t.name
}

// some are columns of a table in some order, mostly without the id.
func (g *generator) some(t *table) (columns []string) {
	for _, c := range t.columns {
		often := 5
		switch c {
		case "id":
			often = 2
		case "must", "y":
			often = 12
		}
		if g.IntN(often) > 0 {
			columns = append(columns, c)
		}
	}
	if g.one(50) {
		columns = append(columns, "nowhere")
	}
	if len(columns) == 0 {
		columns = []string{"a"}
	}
	g.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	return columns
}

// value writes a value for a column.
func (g *generator) value(column string, params bool) string {
	g.serial++
	if params && g.one(2) {
		return map[string]string{"id": "?/*id*/", "u": "?/*u*/"}[column] + map[bool]string{true: "?"}[column != "id" && column != "u"]
	}
	switch column {
	case "id":
		return g.pick("NULL", "NULL", "0", "null", "'0'", fmt.Sprint(g.explicit()), fmt.Sprint(g.explicit()), fmt.Sprintf("'%d'", g.explicit()))
	case "u":
		return g.pick("NULL", fmt.Sprint(1+g.IntN(30)), fmt.Sprint(1000+g.serial), fmt.Sprint(1000+g.serial), fmt.Sprint(1000+g.serial), "DEFAULT")
	case "n", "x", "z", "must":
		return g.pick(fmt.Sprint(g.IntN(100)), fmt.Sprint(g.IntN(10)), "DEFAULT", "1+1", "'7'", "40000", "NULL", "'no number'", "99999999999", "ABS(-3)", "3", "4", "5")
	case "ref":
		if g.upsert { // that reads it tells no insert id of a row that was there
			return "5"
		}
		return g.pick("NULL", "LAST_INSERT_ID()", "5", "@@identity", "@last", "(SELECT 1)")
	}
	if !params && g.one(8) {
		return g.pick("'\x83\\'", "'?'")
	}
	return g.pick("'x'", "'it''s'", "NULL", "DEFAULT", "'a;b'", "'\xc3\xa9'", "CONCAT('c', 'd')", "'-- no'", "_latin1'q'", "'much longer than the column is'", "5", "@t1", "\"dq\"", "'back\\\\slash'",
		fmt.Sprintf("'v%d'", g.serial), fmt.Sprintf("'v%d'", g.serial))
}

// plain writes a value for any column: in a list by position it may be that of the id, for which an
// expression is refused.
func (g *generator) plain(params bool) string {
	g.serial++
	if params && g.one(2) {
		return "?"
	}
	if !g.zero && g.one(10) {
		return "DEFAULT" // of an id, where 0 is a value, an error
	}
	return g.pick("NULL", "'x'", "7", fmt.Sprint(g.IntN(100)), fmt.Sprint(1000+g.serial), fmt.Sprint(1000+g.serial), "'7'", fmt.Sprintf("'v%d'", g.serial))
}

// insertSelect draws an INSERT of a query.
func (g *generator) insertSelect(params bool) (string, Trait) {
	t, from := g.any(), g.any()
	verb, traits := g.verb()
	if strings.Contains(verb, "IGNORE") {
		traits |= Skips
	}
	limit := g.pick("2", "3", "5")
	if params {
		limit = g.pick("2", "3")
	}
	columns := g.pick("a, n", "a, n", "n, a", "id, a, n")
	list := strings.ReplaceAll(columns, "id", g.pick("NULL", "0"))
	if g.one(3) {
		list = strings.ReplaceAll(list, "n", g.pick("n + 1", "'5'", "n"))
	}
	where := ""
	if params {
		where = " WHERE n < ?/*n*/"
	}
	query := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY a, n, u LIMIT %s", list, from.name, where, limit)
	if g.one(4) {
		query = fmt.Sprintf("SELECT %s FROM p1", list)
		if params { // by an index or without, which servers do not decide the same way each time
			query += where + " ORDER BY a, n, u"
		}
	}
	if g.one(6) {
		query = "SELECT 'sel', 1" + g.pick("", " FROM DUAL", " UNION ALL SELECT 'ect', 2")
		columns = "a, n"
	}
	return verb + t.name + " (" + columns + ") " + query, traits | Several | Asks | Inserts
}

// insertFrom says where the next ids begin and inserts what needs some, into a table that no DDL
// changes: an INSERT that is refused for its columns leaves them to the next one, natively. On
// MySQL no transaction is open: behind the proxy a ROLLBACK would warn of the temporary table that
// makes the server forget them.
func (g *generator) insertFrom() {
	g.serial++
	if !g.mariaDB() {
		g.say("SET autocommit=1", 0)
		g.say("COMMIT", 0)
	}
	if g.one(6) {
		g.say("SET insert_id="+fmt.Sprint(100_000+100*g.serial), 0)
		g.add(Step{Way: AsText, Text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE {db}.r4 (a)", File: g.pick("one\n", "one\ntwo\nthree\n"), Traits: Inserts | Several | Asks})
		g.look()
		return
	}
	from, verb := g.explicit(), g.pick("INSERT INTO", "INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO")
	if verb == "REPLACE INTO" { // an id that is there is natively 1062
		from = 100_000 + 100*g.serial
	}
	g.say(g.pick("SET insert_id=", "SET SESSION insert_id=", "SET @@insert_id=")+fmt.Sprint(from), 0)
	table := g.pick("{db}.r4", "{db}.r4", "{db}.log")
	column := map[bool]string{true: "what", false: "a"}[table == "{db}.log"]
	text := fmt.Sprintf("%s %s (%s) VALUES ('b%d')", verb, table, column, g.serial)
	if verb != "INSERT IGNORE INTO" && g.one(3) { // the row behind one that is skipped has its id on MariaDB, natively
		text += ", ('b'), ('c')"
	}
	if table == "{db}.r4" && !g.zero && g.one(3) {
		text = g.pick("INSERT INTO {db}.r4 VALUES (0, 'b')", "INSERT INTO {db}.r4 (a, id) VALUES ('b', NULL), ('c', '0')", "INSERT INTO {db}.r4 SET a = 'b'", "INSERT INTO {db}.r4 () VALUES ()")
	}
	traits := Inserts | Several | Asks
	if strings.Contains(text, "IGNORE") {
		traits |= Skips
	}
	if g.one(3) {
		g.cache(Step{Text: text, Traits: traits})
	} else {
		g.say(text, traits)
	}
	g.look()
}

// update draws an UPDATE or DELETE.
func (g *generator) update(params bool) string {
	t := g.any()
	value := "7"
	if params {
		value = "?/*n*/"
	}
	return g.pick(
		"UPDATE "+t.name+" SET n = n + 1 WHERE u < "+value, "UPDATE "+t.name+" SET a = "+value+" WHERE id = LAST_INSERT_ID()", "DELETE FROM "+t.name+" WHERE n = "+value,
		"UPDATE "+t.name+" SET n = LAST_INSERT_ID(12) WHERE u = "+value, "DELETE FROM "+t.name+" WHERE u > "+value+" AND n < 8",
	)
}
