package rewriter

import (
	"errors"
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

var testRule = &rule.Rule{Schema: "shop", Table: "*", Column: "id", Source: "s"}

var (
	idFirst = &rule.Table{Columns: []rule.Column{{Name: "id"}, {Name: "a"}, {Name: "b"}}}
	idLast  = &rule.Table{Columns: []rule.Column{{Name: "a"}, {Name: "b"}, {Name: "ID"}}}
)

// rewrite reads in and renders it with the ids 77, 78, ...; or returns the error's text.
func rewrite(in string, m Mode, r *rule.Rule, table *rule.Table) (string, *Plan) {
	p := new(Plan)
	if err := p.Read(&Statement{Text: []byte(in), Mode: m, Rules: []*rule.Rule{r}, Table: table}); err != nil {
		return "error: " + err.Error(), p
	}
	return string(p.Append(nil, []byte(in), planIDs(p))), p
}

// rewritten is the text that rewrite returns.
func rewritten(in string, m Mode, r *rule.Rule, table *rule.Table) string {
	text, _ := rewrite(in, m, r, table)
	return text
}

// statement is a text in the default mode for the rule of most tests.
func statement(text []byte) *Statement { return &Statement{Text: text, Rules: []*rule.Rule{testRule}} }

// planIDs returns what p asks for: 77, 78, ... for its first column, 1077, ... for its second.
func planIDs(p *Plan) [][]uint64 {
	var all [][]uint64
	for i, c := range p.Columns {
		column := ids(c.Generated)
		if p.Form(i).Wide() {
			column = ids(2 * c.Generated)
		}
		for k := range column {
			column[k] += uint64(i) * 1000
		}
		all = append(all, column)
	}
	return all
}

func ids(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = 77 + uint64(i)
	}
	return out
}

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		in, want string
	}{
		{"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a,`id`) VALUES (1,LAST_INSERT_ID(77))"},
		{"INSERT INTO t (a) VALUES (LAST_INSERT_ID()), ('y')", "INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),77), ('y',LAST_INSERT_ID(77)+1)"},
		{"insert t(a)value(1),(2),(3);", "insert t(a,`id`)value(1,77),(2,78),(3,LAST_INSERT_ID(77)+2);"},
		{"INSERT INTO t(id) VALUES(NULL)", "INSERT INTO t(id) VALUES(LAST_INSERT_ID(77))"},
		{"INSERT INTO t(id) VALUES(0),('0'),(DEFAULT),(null),(00)", "INSERT INTO t(id) VALUES(77),(78),(79),(80),(LAST_INSERT_ID(77)+4)"},
		{"INSERT INTO t(id) VALUES(DEFAULT(id)),(default ( db . t . `ID` )),(DEFAULT(t.id))", "INSERT INTO t(id) VALUES(77),(78),(LAST_INSERT_ID(77)+2)"},
		{"INSERT INTO t(id) VALUES(\"0\")", "INSERT INTO t(id) VALUES(LAST_INSERT_ID(77))"},
		{"INSERT INTO t(a,id) VALUES(5,5),(6,NULL),(7,9)", "INSERT INTO t(a,id) VALUES(5,5),(6,LAST_INSERT_ID(77)),(7,9)"},
		{"REPLACE LOW_PRIORITY INTO db . `t` (`a``)`, `ID`) VALUES ('),(''\\',(', default )", "REPLACE LOW_PRIORITY INTO db . `t` (`a``)`, `ID`) VALUES ('),(''\\',(', LAST_INSERT_ID(77) )"},
		{"INSERT HIGH_PRIORITY t(t.a,db.t.b)VALUES(f(1,(2)),x'27')", "INSERT HIGH_PRIORITY t(t.a,db.t.b,`id`)VALUES(f(1,(2)),x'27',LAST_INSERT_ID(77))"},
		{"INSERT INTO t (t.id, b) VALUES (NULL, .5), (-5, 1e-5), (+5, N'x')", "INSERT INTO t (t.id, b) VALUES (LAST_INSERT_ID(77), .5), (-5, 1e-5), (+5, N'x')"},
		{"/* a ' */ INSERT -- b ' (\n INTO # c ' )\n t /* d */ ( /*e)*/ a /*f*/ ) /*g*/ VALUES /*h(*/ ( /*i*/ 1 -- j )\n ) /*k*/ ; # l", "/* a ' */ INSERT -- b ' (\n INTO # c ' )\n t /* d */ ( /*e)*/ a /*f*/ ,`id`) /*g*/ VALUES /*h(*/ ( /*i*/ 1 -- j )\n ,LAST_INSERT_ID(77)) /*k*/ ; # l"},
		{"INSERT /*+ SET_VAR(x=1) */ INTO t(a) VALUES(1--1)", "INSERT /*+ SET_VAR(x=1) */ INTO t(a,`id`) VALUES(1--1,LAST_INSERT_ID(77))"},
		{"INSERT INTO `values` (`value`,`values`) VALUES ('a' 'b',_utf8mb4'c')", "INSERT INTO `values` (`value`,`values`,`id`) VALUES ('a' 'b',_utf8mb4'c',LAST_INSERT_ID(77))"},
		{"INSERT INTO value(value) VALUE(1)", "INSERT INTO value(value,`id`) VALUE(1,LAST_INSERT_ID(77))"},
		{"INSERT INTO db.values(a) VALUES (1)", "INSERT INTO db.values(a,`id`) VALUES (1,LAST_INSERT_ID(77))"},
		{"INSERT INTO 2024_log(a) VALUES (INSERT('a',1,1,'b')),(REPLACE('a','b','c'))", "INSERT INTO 2024_log(a,`id`) VALUES (INSERT('a',1,1,'b'),77),(REPLACE('a','b','c'),LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO täble(ä) VALUES ('ü'),(ä)", "INSERT INTO täble(ä,`id`) VALUES ('ü',77),(ä,LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO t(a$b) VALUES (a$b),((SELECT 1,2)),(@`x`),(@@session.x),(\\N)", "INSERT INTO t(a$b,`id`) VALUES (a$b,77),((SELECT 1,2),78),(@`x`,79),(@@session.x,80),(\\N,LAST_INSERT_ID(77)+4)"},
		{"INSERT INTO t(a) VALUES (18446744073709551615)", "INSERT INTO t(a,`id`) VALUES (18446744073709551615,LAST_INSERT_ID(77))"},
		{"INSERT INTO t(id) VALUES (18446744073709551615),(NULL)", "INSERT INTO t(id) VALUES (18446744073709551615),(LAST_INSERT_ID(77))"},
		// The id moves to the end where LAST_INSERT_ID or identity is named.
		{"INSERT INTO t (id,a) VALUES (NULL,LAST_INSERT_ID())", "INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),LAST_INSERT_ID(77))"},
		{"INSERT INTO t (a , t.id , b) VALUES (1 , 5 , @@identity),(2,/*x*/NULL/*y*/,3)", "INSERT INTO t (a ,   b,`id`) VALUES (1 ,   @@identity,5),(2,/*x*//*y*/3,LAST_INSERT_ID(77))"},
		{"INSERT INTO t (id,a) VALUES (NULL,'last_insert_id() /*')", "INSERT INTO t (id,a) VALUES (LAST_INSERT_ID(77),'last_insert_id() /*')"},
		{"INSERT INTO t (a,id) VALUES (LAST_INSERT_ID(),NULL),(LAST_INSERT_ID(),'900')", "INSERT INTO t (a,id) VALUES (LAST_INSERT_ID(),77),(LAST_INSERT_ID(),900+0*LAST_INSERT_ID(77))"},
		{"INSERT INTO t (id,a) VALUES (0,@@`identity`),(900,1)", "INSERT INTO t (a,`id`) VALUES (@@`identity`,77),(1,900+0*LAST_INSERT_ID(77))"},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, Mode{MariaDB: true}, testRule, nil), tt.want)
	}
}

func TestPlanWithoutColumnList(t *testing.T) {
	for _, tt := range []struct {
		in    string
		table *rule.Table
		want  string
	}{
		{"INSERT INTO t VALUES (1,2,NULL)", nil, "error: " + ErrNeedTable.Error()},
		{"INSERT INTO t VALUES (NULL,1,2),(0,1,2)", idFirst, "INSERT INTO t VALUES (77,1,2),(LAST_INSERT_ID(77)+1,1,2)"},
		{"INSERT INTO t VALUES (1,2,NULL),(1,2,3)", idLast, "INSERT INTO t VALUES (1,2,LAST_INSERT_ID(77)),(1,2,3)"},
		{"INSERT INTO t VALUES (1,LAST_INSERT_ID(),NULL)", idLast, "INSERT INTO t VALUES (1,LAST_INSERT_ID(),LAST_INSERT_ID(77))"},
		{"INSERT INTO t VALUES (NULL,1,LAST_INSERT_ID())", idFirst, "INSERT INTO t (`a`,`b`,`id`) VALUES (1,LAST_INSERT_ID(),LAST_INSERT_ID(77))"},
		{"INSERT INTO t VALUES (NULL,1)", idFirst, "error: " + ErrRefusedByServer.Error()},
		{"INSERT INTO t VALUES (NULL,1,2),(1,2)", idLast, "error: " + ErrRefusedByServer.Error()},
		{"INSERT INTO t VALUES (1,2,3),()", idFirst, "error: " + ErrRefusedByServer.Error()},
		{"INSERT INTO t VALUES (1)", &rule.Table{Columns: []rule.Column{{Name: "a"}}}, "error: no column list, and no column id"},
		{"INSERT INTO t VALUES (NULL,@@identity,1)", &rule.Table{Columns: []rule.Column{{Name: "id"}, {Name: "ä"}, {Name: "b"}}}, "error: column name beyond ASCII"},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, Mode{MariaDB: true}, testRule, tt.table), tt.want)
	}
}

// TestPlanEmptyRows: MySQL takes ROW() for a row of defaults.
func TestPlanEmptyRows(t *testing.T) {
	for in, want := range map[string]string{
		"INSERT INTO t VALUES ROW(), ROW ()":  "INSERT INTO t (`id`) VALUES ROW(77), ROW (LAST_INSERT_ID(77)+1)",
		"REPLACE t () VALUES ROW()":           "REPLACE t (`id`) VALUES ROW(LAST_INSERT_ID(77))",
		"INSERT INTO t VALUES ROW(),ROW(1,2)": "error: " + ErrRefusedByServer.Error(),
	} {
		assert.Equal(t, in, rewritten(in, Mode{}, testRule, idFirst), want)
	}
}

func TestPlanRefusals(t *testing.T) {
	refused := ErrRefusedByServer.Error()
	for _, tt := range []struct{ in, want string }{
		{"REPLACE HIGH_PRIORITY t(a) VALUES (1)", "not understood at byte 8: unexpected word"},
		{"REPLACE IGNORE t(a) VALUES (1)", "not understood at byte 8: unexpected word"},
		{"INSERT IGNORE LOW_PRIORITY t(a) VALUES (1)", "not understood at byte 14: unexpected word"},
		{"INSERT LOW_PRIORITY DELAYED t(a) VALUES (1)", "not understood at byte 20: unexpected word"},
		{"INSERT INTO t PARTITION p0 (a) VALUES (1)", "not understood at byte 24: unexpected word"},
		{"INSERT INTO t PARTITION () (a) VALUES (1)", "not understood at byte 25: unexpected ')'"},
		{"INSERT INTO t PARTITION (p0,) (a) VALUES (1)", "not understood at byte 28: unexpected ')'"},
		{"INSERT INTO t (a) PARTITION (p0) VALUES (1)", "not understood at byte 18: unexpected word"},
		{"INSERT INTO t (a) SET a=1", "not understood at byte 18: unexpected word"},
		{"INSERT INTO t () SET a=1", "not understood at byte 17: unexpected word"},
		{"INSERT INTO t AS n (a) VALUES (1)", "not understood at byte 14: unexpected word"},
		{"REPLACE INTO t (a) VALUES (1) AS n", "not understood at byte 30: unexpected word"},
		{"REPLACE INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=1", "not understood at byte 30: unexpected word"},
		{"INSERT INTO t (a) VALUES ()", refused},
		{"INSERT INTO t (id) VALUES ()", refused},
		{"INSERT INTO t (a) VALUES (1),()", refused},
		{"INSERT INTO t () VALUES (1)", refused},
		{"INSERT INTO t () VALUES (),(1)", refused},
		{"INSERT INTO t VALUES (),(1)", refused},
		{"INSERT INTO t (a) VALUES (1); SELECT 1", "more than one statement"},
		{"INSERT INTO t (a) VALUES (1) SELECT", "not understood at byte 29: unexpected word"},
		{"INSERT INTO t (a) VALUES (1),", "not understood at byte 29: unexpected end of the statement"},
		{"INSERT INTO t (a) VALUES (1", "not understood at byte 27: end of the statement"},
		{"INSERT INTO t (a) VALUES (1]", "not understood at byte 27: control byte or bracket"},
		{"INSERT INTO t (a) VALUES (1;)", "not understood at byte 27: semicolon inside a tuple"},
		{"INSERT INTO t (a) VALUES ('x)", "not understood at byte 26: quote without its end"},
		{"INSERT INTO t (a) VALUES (1 /* )", "not understood at byte 28: comment without its end"},
		{"INSERT INTO t (a) VALUES (1 -- \x00\n)", "not understood at byte 28: zero byte in a comment"},
		{"INSERT INTO t (a) VALUES ($$x$$)", "not understood at byte 26: name that begins with a dollar sign"},
		{"INSERT INTO t (a) VALUES (1\xA0)", "not understood at byte 27: name that is not UTF-8, outside quotes"},
		{"INSERT INTO t (a) VALUES (1--\xA0)", "not understood at byte 27: dashes before a byte beyond ASCII"},
		{"INSERT\xA0INTO t (a) VALUES (1)", "not understood at byte 0: name that is not UTF-8, outside quotes"},
		{"INSERT /*+ QB_NAME(`*/`) */ INTO t (a) VALUES (1)", "not understood at byte 7: optimizer hint with quotes"},
		{"INSERT /*+ SET_VAR(Sql_Mode=NO_AUTO_VALUE_ON_ZERO) */ INTO t (id) VALUES (0)", "not understood at byte 7: optimizer hint that sets sql_mode or auto_increment_increment"},
		{"INSERT /*+ SET_VAR(auto_increment_increment=5) */ INTO t (a) VALUES (1)", "not understood at byte 7: optimizer hint that sets sql_mode or auto_increment_increment"},
		{"INSERT /*!50000 INTO */ t (a) VALUES (1)", "version comment"},
		{"INSERT INTO t (a) VALUES (1 /*! ,2 */)", "version comment"},
		{"INSERT INTO t (a) VALUES (1) /*!99999 */", "version comment"},
		{"INSERT INTO t (a,) VALUES (1)", "not understood at byte 17: unexpected ')'"},
		{"INSERT INTO t (a b) VALUES (1)", "not understood at byte 17: unexpected word"},
		{"INSERT INTO t (u.id) VALUES (1)", "column list with a column of another table"},
		{"INSERT INTO select (a) VALUES (1)", "not understood at byte 12: unexpected word"},
		{"INSERT INTO 't' (a) VALUES (1)", "not understood at byte 12: unexpected string"},
		{"INSERT INTO 1e5 (a) VALUES (1)", "not understood at byte 12: unexpected number"},
		{"EXPLAIN INSERT INTO t (a) VALUES (1)", "not understood at byte 0: unexpected word"},
		{"INSERT INTO t (id,ID) VALUES (1,2)", refused},
		{"INSERT INTO t (a) VALUES (1),(1,2)", refused},
		{"INSERT INTO t (a,id) VALUES (1)", refused},
		{"INSERT INTO t (id,a) VALUES (NULL)", refused},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, Mode{}, testRule, nil), "error: "+tt.want)
	}
}

func TestPlanModes(t *testing.T) {
	in := func(id string) string { return "INSERT INTO t (id) VALUES (" + id + ")" }
	for _, tt := range []struct {
		name, in string
		mode     Mode
		rule     *rule.Rule
		want     string
	}{
		{"zero kept", in("0"), Mode{NoAutoValueOnZero: true}, testRule, in("0")},
		{"zero string kept", in("'0'"), Mode{NoAutoValueOnZero: true}, testRule, in("'0'")},
		{"default kept", in("DEFAULT"), Mode{NoAutoValueOnZero: true}, testRule, in("DEFAULT")},
		{"null generated", in("NULL"), Mode{NoAutoValueOnZero: true}, testRule, in("LAST_INSERT_ID(77)")},
		{"explicit under reject, which the caller sees by Explicit > 0", in("5"), Mode{}, &rule.Rule{Column: "id", Explicit: rule.Reject}, in("5")},
		{"generated under reject", in("0"), Mode{}, &rule.Rule{Column: "id", Explicit: rule.Reject}, in("LAST_INSERT_ID(77)")},
		{"ansi quotes", `INSERT INTO "t" ("a""b") VALUES ("c\")`, Mode{ANSIQuotes: true}, testRule, "INSERT INTO \"t\" (\"a\"\"b\",`id`) VALUES (\"c\\\",LAST_INSERT_ID(77))"},
		{"ansi quotes off", `INSERT INTO t (a) VALUES ("c\")`, Mode{}, testRule, "error: not understood at byte 26: quote without its end"},
		{"ansi quotes on a value", `INSERT INTO t (id) VALUES ("0")`, Mode{ANSIQuotes: true}, testRule, "error: expression for column id"},
		{"no backslash escapes", `INSERT INTO t (a) VALUES ('c\')`, Mode{NoBackslashEscapes: true}, testRule, "INSERT INTO t (a,`id`) VALUES ('c\\',LAST_INSERT_ID(77))"},
		{"gbk", "INSERT INTO t (a) VALUES ('\xBF\x5C')", Mode{Charset: GBK}, testRule, "INSERT INTO t (a,`id`) VALUES ('\xBF\x5C',LAST_INSERT_ID(77))"},
		{"gbk read as latin1", "INSERT INTO t (a) VALUES ('\xBF\x5C')", Mode{}, testRule, "error: not understood at byte 26: quote without its end"},
		{"gbk escape before a lead byte", "INSERT INTO t (a) VALUES ('\\\xBF\x5C'')", Mode{Charset: GBK}, testRule, "INSERT INTO t (a,`id`) VALUES ('\\\xBF\x5C'',LAST_INSERT_ID(77))"},
		{"sjis name", "INSERT INTO \x83\x5C (`\x83\x60`) VALUES ('\x95\x5C')", Mode{Charset: SJIS}, testRule, "INSERT INTO \x83\x5C (`\x83\x60`,`id`) VALUES ('\x95\x5C',LAST_INSERT_ID(77))"},
		{"big5", "INSERT INTO t (a) VALUES ('\xA5\x5C')", Mode{Charset: Big5}, testRule, "INSERT INTO t (a,`id`) VALUES ('\xA5\x5C',LAST_INSERT_ID(77))"},
		{"gb18030", "INSERT INTO t (a) VALUES ('\x81\x30\x81\x30\xBF\x5C')", Mode{Charset: GB18030}, testRule, "INSERT INTO t (a,`id`) VALUES ('\x81\x30\x81\x30\xBF\x5C',LAST_INSERT_ID(77))"},
		{"mariadb version comment", "INSERT /*M! INTO */ t (a) VALUES (1)", Mode{MariaDB: true}, testRule, "error: version comment"},
		{"the same on mysql", "INSERT /*M! INTO */ t (a) VALUES (1)", Mode{}, testRule, "INSERT /*M! INTO */ t (a,`id`) VALUES (1,LAST_INSERT_ID(77))"},
		{"column with a backtick", "INSERT INTO t (a) VALUES (1)", Mode{}, &rule.Rule{Column: "i`d"}, "INSERT INTO t (a,`i``d`) VALUES (1,LAST_INSERT_ID(77))"},
		{"column beyond ASCII", "INSERT INTO t (a) VALUES (1)", Mode{}, &rule.Rule{Column: "ïd"}, "error: column name beyond ASCII"},
	} {
		assert.Equal(t, tt.name+": "+tt.in, rewritten(tt.in, tt.mode, tt.rule, nil), tt.want)
	}
}

func TestPlanFacts(t *testing.T) {
	navoz := Mode{NoAutoValueOnZero: true}
	tests := []struct {
		in   string
		mode Mode
		want Plan
	}{
		{"INSERT INTO t(id) VALUES (500)", Mode{}, Plan{Rows: 1, Columns: []Filled{{Explicit: 1, Last: 500, HasLast: true, Greatest: 500}}}},
		{"INSERT INTO t(id) VALUES (503),('501')", Mode{}, Plan{Rows: 2, Columns: []Filled{{Explicit: 2, Last: 501, HasLast: true, Greatest: 503}}}},
		{"INSERT INTO t(id) VALUES (-5)", Mode{}, Plan{Rows: 1, Columns: []Filled{{Explicit: 1, Last: 1<<64 - 5, HasLast: true, BelowZero: true}}}},
		{"INSERT INTO t(id) VALUES (600),(NULL),(700)", Mode{}, Plan{Rows: 3, Columns: []Filled{{Generated: 1, Explicit: 2, Last: 700, HasLast: true, Greatest: 700}}}},
		{"INSERT INTO t(id) VALUES (0),(1)", Mode{}, Plan{Rows: 2, ZeroDoubt: true, Columns: []Filled{{Generated: 1, Explicit: 1, Last: 1, HasLast: true, Greatest: 1}}}},
		{"INSERT INTO t(id) VALUES (0)", navoz, Plan{Rows: 1, ZeroDoubt: true, Columns: []Filled{{Explicit: 1, HasLast: true}}}},
		{"INSERT INTO t(id) VALUES (NULL)", navoz, Plan{Rows: 1, Columns: []Filled{{Generated: 1}}}},
		{"INSERT INTO t(a) VALUES (@@IDENTITY),(2)", Mode{MariaDB: true}, Plan{Rows: 2, Clauses: Clauses{ReadsLastID: true}, Columns: []Filled{{Generated: 2}}}},
		{"INSERT INTO t(a) VALUES (@@IDENTITY),(2)", Mode{}, Plan{Rows: 2, Clauses: Clauses{ReadsLastID: true}, Columns: []Filled{{Generated: 2}}}},
		{"INSERT IGNORE INTO t(a) VALUES (1)", Mode{}, Plan{Rows: 1, Plain: true, Clauses: Clauses{Ignore: true}, Columns: []Filled{{Generated: 1}}}},
		{"INSERT DELAYED INTO t(a) VALUES (1)", Mode{MariaDB: true}, Plan{Rows: 1, Plain: true, Clauses: Clauses{Delayed: true}, Columns: []Filled{{Generated: 1}}}},
		{"INSERT DELAYED INTO t(a) VALUES (1)", Mode{}, Plan{Rows: 1, Columns: []Filled{{Generated: 1}}}},
		{"INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=2", Mode{}, Plan{Rows: 1, Plain: true, Clauses: Clauses{Update: true}, Assigned: true, Columns: []Filled{{Generated: 1}}}},
		{"INSERT INTO t(id) VALUES (5) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id)", Mode{}, Plan{
			Rows: 1, Plain: true, Clauses: Clauses{Update: true, OwnLastID: true, ReadsLastID: true}, Columns: []Filled{{Explicit: 1, Last: 5, HasLast: true, Greatest: 5}},
		}},
		{"INSERT INTO t(a) VALUES (1) RETURNING id", Mode{MariaDB: true}, Plan{Rows: 1, Clauses: Clauses{Returning: true}, Columns: []Filled{{Generated: 1}}}},
		{"INSERT INTO t(a) VALUES (1) RETURNING @@identity", Mode{MariaDB: true}, Plan{Rows: 1, Plain: true, Clauses: Clauses{Returning: true, ReadsLastID: true}, Columns: []Filled{{Generated: 1}}}},
		{"INSERT INTO t(a) VALUES (1) AS n", Mode{}, Plan{Rows: 1, Plain: true, Columns: []Filled{{Generated: 1}}}},
		{"INSERT INTO t SET id=DEFAULT(id)", Mode{}, Plan{Rows: 1, ZeroDoubt: true, Columns: []Filled{{Generated: 1}}}},
		{"INSERT INTO t(id,a) VALUES (NULL,LAST_INSERT_ID()),(-1,2)", Mode{MariaDB: true}, Plan{Rows: 2, Plain: true, Clauses: Clauses{ReadsLastID: true}, Columns: []Filled{{Generated: 1, Explicit: 1, Last: 1<<64 - 1, HasLast: true, BelowZero: true}}}},
		{"INSERT INTO t(id) VALUES (18446744073709551616)", Mode{}, Plan{Rows: 1, Columns: []Filled{{Explicit: 1, GreatestUnknown: true}}}},
		{"INSERT INTO t(id) VALUES (-9223372036854775809)", Mode{}, Plan{Rows: 1, Columns: []Filled{{Explicit: 1, BelowZero: true}}}},
		{"INSERT INTO t(a) VALUES ('@@IDENTITY'),(2)", Mode{}, Plan{Rows: 2, Columns: []Filled{{Generated: 2}}}},
	}
	p := new(Plan) // one plan for all: nothing of a statement may stay
	for _, tt := range tests {
		assert.Must(t, p.Read(&Statement{Text: []byte(tt.in), Mode: tt.mode, Rules: []*rule.Rule{testRule}}), tt.in)
		assert.Equal(t, tt.in, p.facts(), tt.want.facts())
	}
}

// facts shows what a plan tells its reader.
func (p *Plan) facts() string {
	q := *p
	return fmt.Sprintf("rows %d columns %+v plain %v ignore %v update %v own %v assigned %v delayed %v returning %v expressions %v reads %v zero %v questions %v",
		q.Rows, q.Columns, q.Plain, q.Ignore, q.Update, q.OwnLastID, q.Assigned, q.Delayed, q.Returning, q.Expressions, q.ReadsLastID, q.ZeroDoubt, q.Questions)
}

func TestAppendIDsThatAreNotConsecutive(t *testing.T) {
	in := []byte("INSERT INTO t(a) VALUES (1),(2)")
	p := new(Plan)
	assert.Must(t, p.Read(statement(in)))
	for ids, want := range map[[2]uint64]string{
		{10, 4106}:             "INSERT INTO t(a,`id`) VALUES (1,10),(2,LAST_INSERT_ID(10)+4096)",
		{1<<64 - 2, 1<<64 - 1}: "INSERT INTO t(a,`id`) VALUES (1,18446744073709551614),(2,LAST_INSERT_ID(18446744073709551614)+1)",
		{10, 9}:                "INSERT INTO t(a,`id`) VALUES (1,10),(2,LAST_INSERT_ID(10)-1)",
	} {
		assert.Equal(t, fmt.Sprintf("ids %v give", ids), string(p.Append(nil, in, [][]uint64{ids[:]})), want)
	}
}

func TestErrorTypes(t *testing.T) {
	p := new(Plan)
	err := p.Read(statement([]byte("INSERT INTO t(a) SELECT f()")))
	u, ok := errors.AsType[*Unsupported](err)
	assert.True(t, ok && u.Form == "INSERT ... SELECT that calls a function which may do more than read", "got %v, want *Unsupported", err)
	err = p.Read(statement([]byte("INSERT INTO t VALUES (1)")))
	assert.True(t, errors.Is(err, ErrNeedTable), "got %v, want ErrNeedTable", err)
}
