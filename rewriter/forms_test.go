package rewriter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// updated is the assignment that ON DUPLICATE KEY UPDATE gets.
const updated = ",`t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`)"

func TestSetForm(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t SET a=1", "INSERT INTO t SET a=1,`id`=LAST_INSERT_ID(77)"},
		{"insert t set a = f(1,2) , t.b := 'x, y' ;", "insert t set a = f(1,2) , t.b := 'x, y',`id`=LAST_INSERT_ID(77) ;"},
		{"REPLACE LOW_PRIORITY db.t SET a='=,' -- x\n", "REPLACE LOW_PRIORITY db.t SET a='=,',`id`=LAST_INSERT_ID(77) -- x\n"},
		{"INSERT INTO t SET id=NULL", "INSERT INTO t SET id=LAST_INSERT_ID(77)"},
		{"INSERT INTO t SET id=NULL, a=1", "INSERT INTO t SET id=LAST_INSERT_ID(77), a=1"},
		{"INSERT INTO t SET a=1, db.t.`ID` := 0 /* x */", "INSERT INTO t SET a=1, db.t.`ID` := LAST_INSERT_ID(77) /* x */"},
		{"INSERT INTO t SET a=1, id=5", "INSERT INTO t SET a=1, id=5"},
		{"INSERT INTO t SET a=DEFAULT, id=DEFAULT", "INSERT INTO t SET a=DEFAULT, id=LAST_INSERT_ID(77)"},
		{"INSERT INTO t PARTITION (p0) SET a=1", "INSERT INTO t PARTITION (p0) SET a=1,`id`=LAST_INSERT_ID(77)"},
		{"INSERT INTO t SET a=(SELECT x AS y FROM u), b=CAST(1 AS CHAR)", "INSERT INTO t SET a=(SELECT x AS y FROM u), b=CAST(1 AS CHAR),`id`=LAST_INSERT_ID(77)"},
		// What reads the id, or the last insert id, stands in front of it.
		{"INSERT INTO t SET id=NULL, a=LAST_INSERT_ID()", "INSERT INTO t SET  a=LAST_INSERT_ID(),`id`=LAST_INSERT_ID(77)"},
		{"INSERT INTO t SET a=1, id = 0 , b=`id`+1", "INSERT INTO t SET a=1,   b=`id`+1,`id`=LAST_INSERT_ID(77)"},
		{"INSERT INTO t SET a=id, id=NULL", "INSERT INTO t SET a=id, id=LAST_INSERT_ID(77)"},
		{"INSERT INTO t SET id=5, a=LAST_INSERT_ID(), b=id", "INSERT INTO t SET id=5, a=LAST_INSERT_ID(), b=id"},
		{"INSERT INTO t SET id=1, ID=2", "error: " + ErrRefusedByServer.Error()},
		{"INSERT INTO t SET", "error: not understood at byte 17: unexpected end of the statement"},
		{"INSERT INTO t SET a", "error: not understood at byte 19: unexpected end of the statement"},
		{"INSERT INTO t SET a=", "error: not understood at byte 20: unexpected end of the statement"},
		{"INSERT INTO t SET a=1,", "error: not understood at byte 22: unexpected end of the statement"},
		{"INSERT INTO t SET a=1)", "error: not understood at byte 21: unexpected ')'"},
		{"INSERT INTO t SET a=(1", "error: not understood at byte 22: unexpected end of the statement"},
		{"INSERT INTO t SET a:1", "error: not understood at byte 19: unexpected ':'"},
		{"INSERT INTO t SET u.a=1", "error: column list with a column of another table"},
		{"INSERT INTO t SET a=1; SELECT 2", "error: more than one statement"},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, Mode{MariaDB: true}, testRule, nil), tt.want)
	}
}

func TestEmptyTuples(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t () VALUES ()", "INSERT INTO t (`id`) VALUES (LAST_INSERT_ID(77))"},
		{"INSERT INTO t VALUES ()", "INSERT INTO t (`id`) VALUES (LAST_INSERT_ID(77))"},
		{"REPLACE t PARTITION(p) value(),( /* x */ );", "REPLACE t PARTITION(p) (`id`) value(77),( /* x */ LAST_INSERT_ID(77)+1);"},
		{"INSERT INTO t ( ) VALUES (),()", "INSERT INTO t ( `id`) VALUES (77),(LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO t () VALUES () ON DUPLICATE KEY UPDATE a=1", "INSERT INTO t (`id`) VALUES (77) ON DUPLICATE KEY UPDATE a=1" + updated},
		{"INSERT INTO t VALUES () AS n", "INSERT INTO t (`id`) VALUES (77) AS n(`idproxy0`)"},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, Mode{}, testRule, nil), tt.want)
	}
}

func TestFormsByOutcome(t *testing.T) {
	for _, tt := range []struct {
		in   string
		mode Mode
		want string
	}{
		{"INSERT IGNORE INTO t(a) VALUES (1),(2)", Mode{}, "INSERT IGNORE INTO t(a,`id`) VALUES (1,77),(2,78)"},
		{"INSERT HIGH_PRIORITY IGNORE t SET a=1", Mode{}, "INSERT HIGH_PRIORITY IGNORE t SET a=1,`id`=77"},
		{"INSERT IGNORE INTO t(id,a) VALUES (NULL,LAST_INSERT_ID())", Mode{}, "INSERT IGNORE INTO t(id,a) VALUES (77,LAST_INSERT_ID())"},
		{"INSERT IGNORE INTO t(id,a) VALUES (NULL,id)", Mode{}, "INSERT IGNORE INTO t(a,`id`) VALUES (id,77)"},
		{"INSERT DELAYED IGNORE t(a) VALUES (1)", Mode{MariaDB: true}, "INSERT DELAYED IGNORE t(a,`id`) VALUES (1,77)"},
		{"REPLACE DELAYED INTO t(a) VALUES (1)", Mode{}, "REPLACE DELAYED INTO t(a,`id`) VALUES (1,LAST_INSERT_ID(77))"},
		{"INSERT INTO t(a) VALUES (1) RETURNING id, (SELECT 1);", Mode{MariaDB: true}, "INSERT INTO t(a,`id`) VALUES (1,LAST_INSERT_ID(77)) RETURNING id, (SELECT 1);"},
		{"INSERT INTO t SET a=1 RETURNING @@identity", Mode{MariaDB: true}, "INSERT INTO t SET a=1,`id`=77 RETURNING @@identity"},
		{"REPLACE t VALUES () RETURNING *", Mode{MariaDB: true}, "REPLACE t (`id`) VALUES (LAST_INSERT_ID(77)) RETURNING *"},
		{"INSERT INTO t(id,a) VALUES (NULL,LAST_INSERT_ID())", Mode{}, "INSERT INTO t(a,`id`) VALUES (LAST_INSERT_ID(),LAST_INSERT_ID(77*(`id`<=>`id`)))"},
		{"INSERT INTO t(a) VALUES (@@identity),(2)", Mode{}, "INSERT INTO t(a,`id`) VALUES (@@identity,77),(2,LAST_INSERT_ID(77*(`id`<=>`id`))+1)"},
		{"INSERT INTO t(a,id) VALUES (@@identity,0),(2,9)", Mode{}, "INSERT INTO t(a,id) VALUES (@@identity,77),(2,9+0*LAST_INSERT_ID(77*(`id`<=>`id`)))"},
		{"INSERT INTO t SET a=@@identity", Mode{}, "INSERT INTO t SET a=@@identity,`id`=LAST_INSERT_ID(77*(`id`<=>`id`))"},
		{`INSERT INTO t(id) VALUES (\N)`, Mode{MariaDB: true}, "INSERT INTO t(id) VALUES (LAST_INSERT_ID(77))"},
		{`INSERT INTO t(id) VALUES (\N)`, Mode{Version: 50744}, "INSERT INTO t(id) VALUES (LAST_INSERT_ID(77))"},
		{`INSERT INTO t(id) VALUES (\N)`, Mode{Version: 90704}, "error: expression for column id"},
		{"INSERT INTO t SET returning=1", Mode{}, "INSERT INTO t SET returning=1,`id`=LAST_INSERT_ID(77)"},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, tt.mode, testRule, nil), tt.want)
	}
}

func TestDuplicateKeyUpdate(t *testing.T) {
	maria := Mode{MariaDB: true}
	packet, text := *testRule, &rule.Table{Columns: []rule.Column{{Name: "id", Text: true}, {Name: "a"}}}
	packet.Packet = true
	for _, tt := range []struct {
		in    string
		mode  Mode
		rule  *rule.Rule
		table *rule.Table
		want  string
	}{
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1", want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=1" + updated},
		{in: "INSERT INTO t SET a=1 ON DUPLICATE KEY UPDATE a:=VALUES(a)+1 /* x */ ; -- y", want: "INSERT INTO t SET a=1,`id`=77 ON DUPLICATE KEY UPDATE a:=VALUES(a)+1" + updated + " /* x */ ; -- y"},
		{in: "INSERT INTO db.`t`(a,id) VALUES (1,5) on duplicate key update db.t.a=1,b=(SELECT 1,2)", want: "INSERT INTO db.`t`(a,id) VALUES (1,5) on duplicate key update db.t.a=1,b=(SELECT 1,2)" + updated},
		{
			in: `INSERT INTO "t" ("a") VALUES (1) ON DUPLICATE KEY UPDATE "a"=1`, mode: Mode{ANSIQuotes: true},
			want: "INSERT INTO \"t\" (\"a\",`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE \"a\"=1" + strings.ReplaceAll(updated, "`t`", `"t"`),
		},
		{in: "INSERT INTO d.5 (a) VALUES (1) ON DUPLICATE KEY UPDATE `5`.a=1", want: "INSERT INTO d.5 (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE `5`.a=1" + strings.ReplaceAll(updated, "`t`", "`5`")},
		{
			in: "INSERT INTO \x83\x60 (a) VALUES (1) ON DUPLICATE KEY UPDATE a=1", mode: Mode{Charset: SJIS},
			want: "INSERT INTO \x83\x60 (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=1" + strings.ReplaceAll(updated, "`t`", "`\x83\x60`"),
		},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1 RETURNING id", mode: maria, want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=1" + updated + " RETURNING id"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE returning=returning+1", want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE returning=returning+1" + updated},
		{in: "INSERT INTO t(a) VALUES (LAST_INSERT_ID()) ON DUPLICATE KEY UPDATE a=LAST_INSERT_ID()", want: "INSERT INTO t(a,`id`) VALUES (LAST_INSERT_ID(),77) ON DUPLICATE KEY UPDATE a=LAST_INSERT_ID()" + updated},
		// Rows that read the last insert id would read that of an updated row.
		{in: "INSERT INTO t(a) VALUES (LAST_INSERT_ID()),(2) ON DUPLICATE KEY UPDATE a=1", want: "INSERT INTO t(a,`id`) VALUES (LAST_INSERT_ID(),77),(2,78) ON DUPLICATE KEY UPDATE a=1"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1 RETURNING LAST_INSERT_ID()", mode: maria, want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=1 RETURNING LAST_INSERT_ID()"},
		// What the application has the server report stands, whatever that is.
		{in: "INSERT INTO t(a) VALUES (1),(2) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id), a=1", want: "INSERT INTO t(a,`id`) VALUES (1,77),(2,78) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id), a=1"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1,db.t.`id` = last_insert_id ( t . ID )", want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=1,db.t.`id` = last_insert_id ( t . ID )"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id)+0", want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id)+0"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=LAST_INSERT_ID(id)", want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=LAST_INSERT_ID(id)"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(a)", want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(a)"},
		// No assignment where the server knows no such function, and none where the id may be a
		// text that is no number.
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1", rule: &packet, want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=1"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1", table: text, want: "INSERT INTO t(a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=1"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE UPDATE a=1", want: "error: not understood at byte 41: unexpected word"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE", want: "error: not understood at byte 51: unexpected end of the statement"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1,", want: "error: not understood at byte 56: unexpected end of the statement"},
		{in: "INSERT INTO t(a) VALUES (1) ON DUPLICATE KEY UPDATE a=1 ON", want: "error: not understood at byte 56: unexpected word"},
		{in: "INSERT INTO t(a) VALUES (1) RETURNING a ON DUPLICATE KEY UPDATE a=1; b", want: "error: more than one statement"},
		// MySQL's row alias.
		{in: "INSERT INTO t(a) VALUES (1) AS n ON DUPLICATE KEY UPDATE a=id+n.a", want: "INSERT INTO t(a,`id`) VALUES (1,77) AS n(`a`,`idproxy0`) ON DUPLICATE KEY UPDATE a=id+n.a" + updated},
		{in: "INSERT INTO t(`a`,t.b) VALUES (1,2) as `n` /* x */ (x , y ) ON DUPLICATE KEY UPDATE a=x", want: "INSERT INTO t(`a`,t.b,`id`) VALUES (1,2,77) as `n` /* x */ (x , y ,`idproxy0`) ON DUPLICATE KEY UPDATE a=x" + updated},
		{in: "INSERT INTO t(a,b) VALUES (1,2) AS n(IDPROXY0,idproxy1)", want: "INSERT INTO t(a,b,`id`) VALUES (1,2,77) AS n(IDPROXY0,idproxy1,`idproxy2`)"},
		{in: "INSERT INTO t SET t.a=1 AS n ON DUPLICATE KEY UPDATE a=n.a", want: "INSERT INTO t SET t.a=1,`id`=77 AS n(`a`,`idproxy0`) ON DUPLICATE KEY UPDATE a=n.a" + updated},
		{in: "INSERT INTO t(id,a) VALUES (NULL,1) AS n ON DUPLICATE KEY UPDATE a=n.a", want: "INSERT INTO t(id,a) VALUES (77,1) AS n ON DUPLICATE KEY UPDATE a=n.a" + updated},
		{in: "INSERT INTO t(id,a) VALUES (NULL,1) AS n(x,y) ON DUPLICATE KEY UPDATE a=y", want: "INSERT INTO t(id,a) VALUES (77,1) AS n(x,y) ON DUPLICATE KEY UPDATE a=y" + updated},
		{in: "INSERT INTO t(id,a) VALUES (NULL,LAST_INSERT_ID()) AS n(x,y)", want: "INSERT INTO t(id,a) VALUES (77,LAST_INSERT_ID()) AS n(x,y)"},
		{in: "INSERT INTO t(id,a) VALUES (NULL,id) AS n(x,y)", want: "error: value that reads a generated column before it"},
		{in: "INSERT INTO t(a) VALUES (1) AS n()", want: "error: not understood at byte 33: unexpected ')'"},
		{in: "INSERT INTO t(a) VALUES (1) AS 'n'", want: "error: not understood at byte 31: unexpected string"},
	} {
		rule := tt.rule
		if rule == nil {
			rule = testRule
		}
		assert.Equal(t, tt.in, rewritten(tt.in, tt.mode, rule, tt.table), tt.want)
	}
}

// A value behind the id that names it reads what it has read natively: nothing yet.
func TestValuesThatReadTheID(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t(id,a) VALUES (NULL,id),(0,ID+1)", "INSERT INTO t(a,`id`) VALUES (id,77),(ID+1,LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO t(a,id,b) VALUES (1,NULL,(SELECT u.id FROM u))", "INSERT INTO t(a,b,`id`) VALUES (1,(SELECT u.id FROM u),LAST_INSERT_ID(77))"},
		{"INSERT INTO t(id,a) VALUES (NULL,`id`)", "INSERT INTO t(a,`id`) VALUES (`id`,LAST_INSERT_ID(77))"},
		{"INSERT INTO t(id,a) VALUES (NULL,'id'),(NULL,ids),(NULL,1e5)", "INSERT INTO t(id,a) VALUES (77,'id'),(78,ids),(LAST_INSERT_ID(77)+2,1e5)"},
		{"INSERT INTO t(a,id) VALUES (id,NULL)", "INSERT INTO t(a,id) VALUES (id,LAST_INSERT_ID(77))"},
		{"INSERT INTO t(a) VALUES (id)", "INSERT INTO t(a,`id`) VALUES (id,LAST_INSERT_ID(77))"},
		{"INSERT INTO t(id,a) VALUES (5,id)", "INSERT INTO t(id,a) VALUES (5,id)"},
		{"INSERT INTO t(id,a) VALUES (5,id),(NULL,id)", "error: value that reads a generated column before it"},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, Mode{}, testRule, nil), tt.want)
	}
}

func TestSeveralColumns(t *testing.T) {
	rules := []*rule.Rule{testRule, {Column: "code"}, {Column: "no"}}
	table := &rule.Table{Columns: []rule.Column{{Name: "code"}, {Name: "a"}, {Name: "id"}, {Name: "b"}}, Invisible: []rule.Column{{Name: "no"}}}
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t(a) VALUES (1),(2)", "INSERT INTO t(a,`code`,`no`,`id`) VALUES (1,1077,2077,77),(2,1078,2078,LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO t(id,a) VALUES (NULL,1),(5,2)", "INSERT INTO t(id,a,`code`,`no`) VALUES (LAST_INSERT_ID(77),1,1077,2077),(5,2,1078,2078)"},
		{"INSERT INTO t(no,a,id,code) VALUES (0,1,2,3),(4,5,NULL,NULL)", "INSERT INTO t(no,a,id,code) VALUES (2077,1,2,3),(4,5,LAST_INSERT_ID(77),1077)"},
		{"INSERT INTO t(id,a) VALUES (NULL,LAST_INSERT_ID()),(7,2)", "INSERT INTO t(a,`code`,`no`,`id`) VALUES (LAST_INSERT_ID(),1077,2077,77),(2,1078,2078,7+0*LAST_INSERT_ID(77))"},
		{"INSERT INTO t(a,id) VALUES (LAST_INSERT_ID(),NULL),(2,7)", "INSERT INTO t(a,id,`code`,`no`) VALUES (LAST_INSERT_ID(),77,1077,2077),(2,7+0*LAST_INSERT_ID(77),1078,2078)"},
		{"INSERT INTO t SET code=5, a=1", "INSERT INTO t SET code=5, a=1,`no`=2077,`id`=LAST_INSERT_ID(77)"},
		{"INSERT INTO t SET id=0, a=@@identity", "INSERT INTO t SET  a=@@identity,`code`=1077,`no`=2077,`id`=LAST_INSERT_ID(77)"},
		{"INSERT INTO t VALUES (),()", "INSERT INTO t (`code`,`no`,`id`) VALUES (1077,2077,77),(1078,2078,LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO t VALUES (NULL,1,0,2)", "INSERT INTO t (`code`,`a`,`id`,`b`,`no`) VALUES (1077,1,LAST_INSERT_ID(77),2,2077)"},
		{"INSERT INTO t VALUES (NULL,1,0,id)", "error: value that reads a generated column before it"},
		{"INSERT INTO t(a,b) VALUES (1,2) AS n ON DUPLICATE KEY UPDATE a=n.b", "INSERT INTO t(a,b,`code`,`no`,`id`) VALUES (1,2,1077,2077,77) AS n(`a`,`b`,`idproxy0`,`idproxy1`,`idproxy2`) ON DUPLICATE KEY UPDATE a=n.b" + updated},
		{"INSERT INTO t VALUES (1,2,3,4) AS n", "INSERT INTO t (`code`,`a`,`id`,`b`,`no`) VALUES (1,2,3,4,2077) AS n(`code`,`a`,`id`,`b`,`idproxy0`)"},
		{"INSERT INTO t(code,code) VALUES (1,2)", "error: " + ErrRefusedByServer.Error()},
		{"INSERT INTO t(a,code) VALUES (1)", "error: " + ErrRefusedByServer.Error()},
	} {
		p, mode := new(Plan), Mode{MariaDB: !strings.Contains(tt.in, "AS n")}
		got := ""
		if err := p.Read(&Statement{Text: []byte(tt.in), Mode: mode, Rules: rules, Table: table}); err != nil {
			got = "error: " + err.Error()
		} else {
			got = string(p.Append(nil, []byte(tt.in), planIDs(p)))
		}
		assert.Equal(t, tt.in, got, tt.want)
	}
	many := make([]*rule.Rule, MaxColumns+1)
	for i := range many {
		many[i] = &rule.Rule{Column: strings.Repeat("x", i+1)}
	}
	assert.Fails(t, fmt.Sprintf("%d columns are filled", len(many)), new(Plan).Read(&Statement{Text: []byte("INSERT INTO t(a) VALUES (1)"), Rules: many}), "")
}

func TestInvisibleColumn(t *testing.T) {
	table := &rule.Table{Columns: []rule.Column{{Name: "a"}, {Name: "b`"}}, Invisible: []rule.Column{{Name: "ID", Max: 5}}}
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t VALUES (1,2)", "INSERT INTO t (`a`,`b```,`id`) VALUES (1,2,LAST_INSERT_ID(77))"},
		{"INSERT INTO t PARTITION (p) VALUES (1,2)", "INSERT INTO t PARTITION (p) (`a`,`b```,`id`) VALUES (1,2,LAST_INSERT_ID(77))"},
		{"INSERT INTO t(a) VALUES (1)", "INSERT INTO t(a,`id`) VALUES (1,LAST_INSERT_ID(77))"},
		{"INSERT INTO t(id,a) VALUES (NULL,1)", "INSERT INTO t(id,a) VALUES (LAST_INSERT_ID(77),1)"},
		{"INSERT INTO t VALUES (1,2,3)", "error: " + ErrRefusedByServer.Error()},
	} {
		assert.Equal(t, tt.in, rewritten(tt.in, Mode{}, testRule, table), tt.want)
	}
	c, visible, ok := table.Column("id")
	assert.True(t, c.Max == 5 && !visible && ok, "Column(id) = %+v, %v, %v", c, visible, ok)
	c, visible, ok = table.Column("A")
	assert.True(t, c.Name == "a" && visible && ok, "Column(A) = %+v, %v, %v", c, visible, ok)
	_, _, ok = table.Column("c")
	assert.True(t, !ok, "there is a column c")
}

func TestExpressions(t *testing.T) {
	tests := []struct {
		id   string
		want string // the question; empty: refused
	}{{"00.0", "00.0"}, {"f(1)", ""}}
	for _, e := range []string{
		"@x", "@`x y`", "@'x'", "@a.b", "@1", "@@identity", "@@session.`x`", "(NULL)", "NULL+0", "-0", "+0", "0.0", ".0", "5.", "0e0", "1e-5", "1.5e+3", "0x1F",
		"0b01", "b'0'", "X'30'", "N'0'", "_utf8mb4'0'", "_latin1 'a' 'b'", "_binary x'30'", "_binary 0x30", "'00'", "' 0'", "''", "'0' '0'", "'\\0'", "'a'",
		"'a''b'", "FALSE", "TRUE", "- 5", "5.5", "'-0'", "'5.5'", "5 DIV 1", "(1+2)*@x%3/4 MOD 5", "- - 5", "5--1", "LAST_INSERT_ID()", "last_insert_id ( ) + 1",
		"1/*c*/+/*d*/2",
	} {
		tests = append(tests, struct{ id, want string }{e, e})
	}
	for _, e := range []string{
		"f(NULL)", "?", "\\N", "NULL COLLATE x", "a", "`a`", "t.id", "LAST_INSERT_ID(5)", "@x:=5", "@ x", "@@", "@", "@x.", "@@'x'", "CASE 1 WHEN 1 THEN 2 END", "(SELECT 1)", "1,", "1+", "+", "()", "(1", "1)",
		"1 2", "1=1", "1||0", "~1", "!0", "BINARY 1", "N 'x'", "x 'x'", "_utf8mb4", "1e", "1e+", "1e5x", "0x", "0xZ", "2024_log", "MOD(1,2)", "DIV 1", "INTERVAL 1 DAY", "DEFAULT(a)",
		"DEFAULT(id)+1", "DEFAULT+1", "VALUES(id)", "5e 1", ".", ". 5", "1. 5x", "NULL NULL", "'a' N'b'", "1 'a'", "b '0'", "0b2",
	} {
		tests = append(tests, struct{ id, want string }{id: e})
	}
	for _, tt := range tests {
		for _, form := range []string{"INSERT INTO t(id,a) VALUES (#, 1)", "INSERT INTO t(a,id) VALUES (1,#)", "INSERT INTO t SET id= # ,a=1", "INSERT INTO t SET a=1,id=#"} {
			in := strings.Replace(form, "#", tt.id, 1)
			p := new(Plan)
			err := p.Read(statement([]byte(in)))
			switch {
			case tt.want == "" && (err == nil || errors.Is(err, ErrNeedValues)):
				t.Errorf("%s: %v, questions %v", in, err, p.Questions)
			case tt.want == "":
			case !errors.Is(err, ErrNeedValues) || len(p.Questions) != 1:
				t.Errorf("%s: %v, questions %v", in, err, p.Questions)
			default:
				q := p.Questions[0]
				assert.True(t, in[q.Start:q.End] == tt.want, "%s asks for %q", in, in[q.Start:q.End])
			}
		}
	}
}

func TestExpressionsAnswered(t *testing.T) {
	table := &rule.Table{Columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}, {Name: "a"}}}
	tests := []struct {
		in     string
		values []Value
		want   string
		filled Filled
	}{
		{"INSERT INTO t(id) VALUES (@x)", []Value{{Generate: true}}, "INSERT INTO t(id) VALUES (77)", Filled{Generated: 1}},
		{"INSERT INTO t(id) VALUES (@x)", []Value{{Number: 9, Known: true}}, "INSERT INTO t(id) VALUES (9)", Filled{Explicit: 1, Last: 9, HasLast: true, Greatest: 9}},
		{"INSERT INTO t(id) VALUES (-@x)", []Value{{Number: 1<<64 - 9, Known: true}}, "INSERT INTO t(id) VALUES (-9)", Filled{Explicit: 1, Last: 1<<64 - 9, HasLast: true, BelowZero: true}},
		{"INSERT INTO t(id) VALUES (@x)", []Value{{}}, "error: variable for column id that holds no whole number", Filled{}},
		{"INSERT INTO t(id) VALUES ('')", []Value{{}}, "INSERT INTO t(id) VALUES ('')", Filled{Explicit: 1, GreatestUnknown: true}},
		{
			"INSERT INTO t(id,a) VALUES (LAST_INSERT_ID(),f(1)),(NULL,2)",
			[]Value{{Number: 9, Known: true}},
			"INSERT INTO t(id,a) VALUES (9,f(1)),(77,2)",
			Filled{Generated: 1, Explicit: 1, Greatest: 9},
		},
		{
			"INSERT INTO t(id,a) VALUES (@x,id),(@x,2)",
			[]Value{{Number: 1<<64 - 9, Known: true}, {Number: 9, Known: true}},
			"INSERT INTO t(id,a) VALUES (-9,id),(9,2)",
			Filled{Explicit: 2, Last: 9, HasLast: true, Greatest: 9, BelowZero: true},
		},
		{"INSERT INTO t SET id=@'x'ON DUPLICATE KEY UPDATE a=1", []Value{{Number: 9, Known: true}}, "INSERT INTO t SET id=9 ON DUPLICATE KEY UPDATE a=1,`t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`)", Filled{Explicit: 1, Last: 9, HasLast: true, Greatest: 9}},
		{
			"INSERT INTO t(id,a) VALUES (0.0 , 1),(NULL,2),('00',3),(4+4,4)",
			[]Value{{Generate: true}, {Generate: true}, {Number: 8, Known: true}},
			"INSERT INTO t(id,a) VALUES (77 , 1),(78,2),(79,3),(4+4,4)",
			Filled{Generated: 3, Explicit: 1, Last: 8, HasLast: true, Greatest: 8},
		},
		{"INSERT INTO t SET id=-0, a=LAST_INSERT_ID()", []Value{{Generate: true}}, "INSERT INTO t SET id=77, a=LAST_INSERT_ID()", Filled{Generated: 1}},
		{"INSERT INTO t SET id=(0), a=id", []Value{{Generate: true}}, "INSERT INTO t SET  a=id,`id`=77", Filled{Generated: 1}},
		{"INSERT INTO t(id,a) VALUES (0.0,@x:=1)", []Value{{Generate: true}}, "INSERT INTO t(id,a) VALUES (77,@x:=1)", Filled{Generated: 1}},
		{"INSERT INTO t(id,a) VALUES (@x,@x:=1)", []Value{{Generate: true}}, "error: expression for a generated column in a statement that sets what it reads", Filled{}},
		{"INSERT INTO t(id,a) VALUES (LAST_INSERT_ID(),LAST_INSERT_ID(5))", []Value{{Generate: true}}, "error: expression for a generated column in a statement that sets what it reads", Filled{}},
		{
			"INSERT INTO t(id,a) VALUES (@x,5) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id), a=@x:=1",
			[]Value{{Generate: true}},
			"INSERT INTO t(id,a) VALUES (77,5) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id), a=@x:=1",
			Filled{Generated: 1},
		},
		{"INSERT INTO t(id) VALUES (@x),(@y)", []Value{{Generate: true}}, "error: " + ErrNeedValues.Error(), Filled{}},
	}
	p := new(Plan)
	for _, tt := range tests {
		s := &Statement{Text: []byte(tt.in), Rules: []*rule.Rule{testRule}, Table: table, Values: tt.values}
		if err := p.Read(s); err != nil {
			assert.Equal(t, tt.in, "error: "+err.Error(), tt.want)
			continue
		}
		if got := string(p.Append(nil, s.Text, planIDs(p))); got != tt.want || p.Columns[0] != tt.filled || !p.Plain || !p.Expressions {
			t.Errorf("%s\n gives %s\n want  %s\n filled %+v\n want   %+v, plain %v", tt.in, got, tt.want, p.Columns[0], tt.filled, p.Plain)
		}
	}
	rules := []*rule.Rule{testRule, {Column: "code"}}
	err := p.Read(&Statement{Text: []byte("INSERT INTO t(code,id) VALUES (@a,@b)"), Rules: rules})
	assert.True(t, errors.Is(err, ErrNeedValues) && p.AskedFor(0) == 1 && p.AskedFor(1) == 0, "%v: asked for %d, %d", err, p.AskedFor(0), p.AskedFor(1))
	long := "INSERT INTO t(id) VALUES (@x)" + strings.Repeat(",(@x)", maxQuestions)
	assert.Equal(t, "257 expressions", rewritten(long, Mode{}, testRule, nil), "error: more than 256 expressions for ids")
}

func TestTextColumn(t *testing.T) {
	table := &rule.Table{Columns: []rule.Column{{Name: "id", Text: true}, {Name: "a"}}}
	for _, tt := range []struct {
		id     string
		filled Filled
	}{
		{"'abc'", Filled{Texts: 1}},
		{"'it''s'", Filled{Texts: 1}},
		{"''", Filled{Texts: 1}},
		{"'7'", Filled{Explicit: 1, Last: 7, HasLast: true, Greatest: 7}},
		{"'99999999999999999999'", Filled{Texts: 1}},
		{"UUID()", Filled{Texts: 1}},
		{"CONCAT('a', (SELECT 'b,c'), a)", Filled{Texts: 1}},
		{"CASE WHEN 1 THEN 'x' END", Filled{Texts: 1}},
		{"'0'", Filled{Generated: 1}},
		{"NULL", Filled{Generated: 1}},
	} {
		in := "INSERT INTO t VALUES (" + tt.id + ",1)"
		got, p := rewrite(in, Mode{}, testRule, table)
		assert.True(t, !strings.HasPrefix(got, "error") && p.Columns[0] == tt.filled, "%s: %s, %+v", in, got, p.Columns)
	}
	for _, id := range []string{"'00'", "'\\0'", "'-0'", "@x", "'a' 'b'"} {
		assert.Equal(t, id, rewritten("INSERT INTO t VALUES ("+id+",1)", Mode{}, testRule, table), "error: "+ErrNeedValues.Error())
	}
	// What goes as it is stays where it is, and with it the order of parameters.
	for in, want := range map[string]string{
		"INSERT INTO t(id,a) VALUES (NULL,LAST_INSERT_ID()),(CAST(? AS CHAR),?)": "INSERT INTO t(id,a) VALUES (?,LAST_INSERT_ID()),(CAST(? AS CHAR),?)",
		"INSERT INTO t SET id=UPPER(?), a=? ON DUPLICATE KEY UPDATE a=?":         "INSERT INTO t SET id=UPPER(?), a=? ON DUPLICATE KEY UPDATE a=?",
		"INSERT INTO t(id,a) VALUES (@x,?)":                                      "INSERT INTO t(id,a) VALUES (@x,?)",
	} {
		var p Plan
		st := &Statement{Text: []byte(in), Rules: []*rule.Rule{testRule}, Table: table, Prepared: true}
		if err := p.Read(st); err != nil {
			t.Errorf("%s: %v", in, err)
		} else if made, err := p.Prepare(st); err != nil || string(made.Text) != want || p.Columns[0].Texts != 1 {
			t.Errorf("%s: %s, %v, %+v", in, made.Text, err, p.Columns)
		}
	}
	var p Plan
	asked := &Statement{Text: []byte("INSERT INTO t VALUES (@x,1)"), Rules: []*rule.Rule{testRule}, Table: table, Values: []Value{{}}}
	err := p.Read(asked)
	assert.True(t, err == nil && p.Columns[0].Texts == 1 && string(p.Append(nil, asked.Text, [][]uint64{nil})) == string(asked.Text), "a variable that is a text: %v, %+v", err, p.Columns)
	in := "INSERT INTO t(a,id) VALUES (LAST_INSERT_ID(),NULL),(1,'9')"
	if got, p := rewrite(in, Mode{MariaDB: true}, testRule, table); got != "INSERT INTO t(a,id) VALUES (LAST_INSERT_ID(),77),(1,'9')" || !p.Plain {
		t.Errorf("%s: %s, plain %v", in, got, p.Plain)
	}
}

// A column in which the server itself counts takes LAST_INSERT_ID() from the statement, unless it
// is the rule's own.
func TestOtherCounter(t *testing.T) {
	id, seq := rule.Column{Name: "id", Max: 1 << 62}, rule.Column{Name: "seq", AutoIncrement: true}
	counted := rule.Column{Name: "ID", Max: 1 << 62, AutoIncrement: true}
	for _, tt := range []struct {
		name  string
		table *rule.Table
		plain bool
	}{
		{"none", &rule.Table{Columns: []rule.Column{id, {Name: "a"}}}, false},
		{"the rule's", &rule.Table{Columns: []rule.Column{counted, {Name: "a"}}}, false},
		{"another", &rule.Table{Columns: []rule.Column{id, {Name: "a"}, seq}}, true},
		{"another, invisible", &rule.Table{Columns: []rule.Column{id, {Name: "a"}}, Invisible: []rule.Column{seq}}, true},
		{"no facts", nil, false},
	} {
		var p Plan
		s := Statement{Text: []byte("INSERT INTO t (a) VALUES (1)"), Rules: []*rule.Rule{{Schema: "s", Table: "t", Column: "id"}}, Table: tt.table}
		err := p.Read(&s)
		assert.True(t, err == nil && p.Plain == tt.plain, "%s: plain %v, %v; want %v", tt.name, p.Plain, err, tt.plain)
	}
}
