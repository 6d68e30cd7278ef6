package sessions

import (
	"fmt"
	"slices"
	"strings"
)

// table is one that a session may have, as far as the generator knows: a statement that failed, or
// that was left out, makes it wrong, which makes for statements that fail.
type table struct {
	name    string
	ruled   bool
	auto    string   // behind the id's type
	columns []string // in their order; a, u, n and what was added
	engine  string
	gone    bool
	temp    bool // a temporary table has its name
}

// definitions are the columns but for id.
var definitions = map[string]string{
	"a": "a VARCHAR(20)", "u": "u INT UNIQUE", "n": "n INT NOT NULL DEFAULT 5", "ref": "ref BIGINT", "x": "x INT DEFAULT 3",
	"y": "y VARCHAR(10) NOT NULL", "z": "z SMALLINT NULL", "must": "must INT NOT NULL", "b": "b VARCHAR(20) CHARACTER SET latin1",
}

// begin draws the schema.
func (g *generator) begin() {
	for _, name := range []string{"r1", "r2", "r3", "p1", "p2"} {
		t := &table{name: name, ruled: name[0] == 'r', engine: "InnoDB"}
		switch {
		case !t.ruled:
			t.auto = "AUTO_INCREMENT"
		default:
			t.auto = g.pick("{plain}", "{plain}", "{kept}")
		}
		if g.one(4) && g.myISAM {
			t.engine = "MyISAM"
		}
		t.columns = []string{"id", "a", "u", "n", "ref"}
		if g.one(2) {
			t.columns = append(t.columns, "b")
		}
		g.Shuffle(len(t.columns), func(i, j int) { t.columns[i], t.columns[j] = t.columns[j], t.columns[i] })
		g.tables = append(g.tables, t)
		g.session.World = append(g.session.World, g.create(t, ""))
	}
	g.session.World = append(g.session.World, "CREATE TABLE log (k INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20), ref BIGINT) AUTO_INCREMENT=1000000",
		fmt.Sprintf("CREATE TABLE r4 (id BIGINT NOT NULL %s PRIMARY KEY, a VARCHAR(20)) {start %d}", g.pick("{plain}", "{kept}"), g.next()),
		"CREATE VIEW v1 AS SELECT id, a, u, n FROM p1",
		"INSERT INTO p1 (a, u, n) VALUES ('one', 1, 1), ('two', 2, 2), ('three', 3, 3), (NULL, NULL, 4)",
		"CREATE TABLE {db}b."+strings.TrimPrefix(g.create(g.tables[0], ""), "CREATE TABLE "))
	if g.trigger = g.one(5); g.trigger {
		g.session.World = append(g.session.World, "CREATE TRIGGER tr AFTER INSERT ON r1 FOR EACH ROW INSERT INTO log (what, ref) VALUES (NEW.a, NEW.id)")
	}
}

// next numbers a place where a counter begins.
func (g *generator) next() int {
	g.made++
	return g.made
}

// create writes CREATE TABLE.
func (g *generator) create(t *table, temporary string) string {
	g.next()
	columns := make([]string, len(t.columns))
	for i, c := range t.columns {
		columns[i] = g.define(t, c)
	}
	start := fmt.Sprintf("{start %d}", g.made)
	auto := t.auto
	if !t.ruled || temporary != "" {
		start = fmt.Sprintf("AUTO_INCREMENT=%d", 1_000_000+10_000*g.made)
		auto = "AUTO_INCREMENT"
	}
	text := fmt.Sprintf("CREATE %sTABLE %s (%s) ENGINE=%s %s", temporary, t.name, strings.Join(columns, ", "), t.engine, start)
	return strings.ReplaceAll(text, t.auto+" PRIMARY", auto+" PRIMARY")
}

// define writes the definition of a column.
func (g *generator) define(t *table, column string) string {
	if column == "id" {
		return "id " + g.pick("BIGINT", "INT", "BIGINT UNSIGNED") + " NOT NULL " + t.auto + " PRIMARY KEY"
	}
	return definitions[column]
}

// any is a table, mostly one with a rule that is there.
func (g *generator) any() *table {
	t := g.tables[g.IntN(len(g.tables))]
	if t.gone || !t.ruled {
		t = g.tables[g.IntN(len(g.tables))]
	}
	return t
}

// ddl draws the statements of a change, and notes what it does. seen says that it needs to pass a
// proxy's eyes.
func (g *generator) ddl() (text string, seen bool) {
	t := g.any()
	if t.gone {
		t.gone, t.temp = false, false
		g.Shuffle(len(t.columns), func(i, j int) { t.columns[i], t.columns[j] = t.columns[j], t.columns[i] })
		return g.create(t, ""), false
	}
	at := g.IntN(len(t.columns))
	column := t.columns[at]
	place := " FIRST"
	rest := slices.Delete(slices.Clone(t.columns), at, at+1)
	to := g.IntN(len(rest) + 1)
	if to > 0 {
		place = " AFTER " + rest[to-1]
	}
	alter := "ALTER TABLE " + t.name + " "
	switch g.IntN(14) {
	case 0, 1, 2: // another order
		t.columns = slices.Insert(rest, to, column)
		return alter + "MODIFY " + strings.NewReplacer(" UNIQUE", "", " PRIMARY KEY", "").Replace(g.define(t, column)) + place, false
	case 3, 4: // more
		c := g.pick("x", "y", "z", "must", "b")
		if slices.Contains(t.columns, c) {
			return alter + "ADD " + definitions[c], false
		}
		where := g.IntN(len(t.columns) + 1)
		place = " FIRST"
		if where > 0 {
			place = " AFTER " + t.columns[where-1]
		}
		t.columns = slices.Insert(t.columns, where, c)
		return alter + "ADD " + definitions[c] + place, false
	case 5, 6: // less
		if column == "id" || column == "u" || column == "a" {
			return alter + "DROP COLUMN nowhere", false
		}
		t.columns = rest
		return alter + "DROP COLUMN " + column, false
	case 7: // names change places
		if i, j := slices.Index(t.columns, "n"), slices.Index(t.columns, "u"); i >= 0 && j >= 0 {
			t.columns[i], t.columns[j] = "u", "n"
		}
		return alter + "RENAME COLUMN n TO u, RENAME COLUMN u TO n", false
	case 8:
		return alter + g.pick("ALTER n SET DEFAULT 7", "ALTER n DROP DEFAULT", "ALTER a SET DEFAULT 'd'", "ALTER u SET DEFAULT NULL", "ALTER must SET DEFAULT 1"), false
	case 9: // tables change places
		other := g.any()
		if other == t || other.gone || other.ruled != t.ruled {
			return "RENAME TABLE nowhere TO somewhere", false
		}
		t.name, other.name = other.name, t.name
		return fmt.Sprintf("RENAME TABLE %s TO swap, %s TO %[1]s, swap TO %[2]s", t.name, other.name), false
	case 10:
		t.gone = true
		return "DROP TABLE " + t.name, false
	case 11:
		text = "DROP TABLE " + t.name
		g.Shuffle(len(t.columns), func(i, j int) { t.columns[i], t.columns[j] = t.columns[j], t.columns[i] })
		return text + ";\n" + g.create(t, ""), false
	case 12:
		g.made++
		if !t.ruled {
			return "TRUNCATE TABLE " + t.name, false
		}
		return fmt.Sprintf("TRUNCATE TABLE %s;\nALTER TABLE %[1]s {start %d}", t.name, g.made), false
	}
	if g.one(8) && g.myISAM {
		return alter + "ENGINE=MyISAM", false
	}
	return alter + g.pick("ENGINE=InnoDB", "ADD KEY (n)", "COMMENT='x'", "MODIFY a VARCHAR(30)", "MODIFY a VARCHAR(20) CHARACTER SET latin1",
		"MODIFY a VARCHAR(12) NOT NULL", "DROP KEY n", "CONVERT TO CHARACTER SET utf8mb3"), false
}
