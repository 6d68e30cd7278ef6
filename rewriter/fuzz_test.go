package rewriter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// nasty are the seeds of all fuzz targets.
var nasty = []string{
	"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (id,a) VALUES (NULL,1),(0,2),('0',3),(DEFAULT,4),(5,5);",
	"insert t value(1,'a''b\\'c',\"x\"\"y\"),(null,'),(',x'27')", "REPLACE INTO `d`.`t``x` (`i``d`,ID) VALUES (-5,0)",
	"INSERT INTO t (id,a) VALUES (NULL,LAST_INSERT_ID()),(7,@@identity)", "INSERT/**/INTO--\n t#\n(a)VALUES(1 -- )\n)",
	"/*!50000 INSERT */ INTO t (a) VALUES (1)", "/*!99999 SELECT 'it''s */ INSERT INTO t (a) VALUES (1)",
	"INSERT INTO t (a) VALUES ($$x$$)", "INSERT INTO t (a) VALUES ('\xBF\x5C'),('\x95\x5C')", "SELECT 1; INSERT INTO t(a) VALUES (';'); # x",
	"CREATE PROCEDURE p() BEGIN INSERT INTO t(a) VALUES (1); END; SELECT 1", "BEGIN NOT ATOMIC INSERT INTO t VALUES (1); END",
	"PREPARE s FROM 'INSERT INTO t VALUES (1)'", "SET STATEMENT max_statement_time=1 FOR INSERT INTO t VALUES (1)",
	"ANALYZE INSERT INTO t VALUES (1)", "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t", "lbl: BEGIN NOT ATOMIC END",
	"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=VALUES(a)", "INSERT INTO t (a) SELECT 1", "INSERT INTO t(a)VALUES(1--1),(- -1),(1/1)",
	"CREATE TEMPORARY TABLE IF NOT EXISTS t (a int)", "DROP TEMPORARY TABLE t", "USE `d`", "((SELECT 1))", "INSERT INTO 2024_log(a) VALUES (1e5,.5)",
	"INSERT INTO .t (a) VALUES (1)", "INSERT INTO t () VALUES ()", "INSERT INTO t VALUES (1,),(,)", "INSERT INTO t (a) VALUES (N'x' 'y', _utf8'z', \\N, @`a`, :x)",
}

func fuzzMode(b uint8) Mode {
	return Mode{
		ANSIQuotes: b&1 != 0, NoBackslashEscapes: b&2 != 0, NoAutoValueOnZero: b&4 != 0, MariaDB: b&8 != 0,
		Charset: Charset(b>>4) % 5, MultiStatements: b&128 != 0,
	}
}

// FuzzScanner: Split and ReadHead read any bytes, spans ascend inside the text, what lies between and behind them is blank,
// a statement that Split cuts out is one to Split too, ReadHead sees no less in it than in its own copy, and an answer that
// ReadHead gives without more does not change with what follows.
func FuzzScanner(f *testing.F) {
	for i, s := range nasty {
		f.Add([]byte(s), uint8(128|i&15))
		f.Add([]byte(s), uint8(i<<4))
	}
	f.Fuzz(func(t *testing.T, text []byte, mode uint8) {
		m := fuzzMode(mode)
		m.MultiStatements = true
		at := 0
		for _, s := range Split(nil, text, m) {
			if s.Start != at || s.End < s.Start || s.End > len(text) {
				t.Fatalf("span %+v of %q at %d", s, text, at)
			}
			at = s.End + 1
			if s.End < len(text) && text[s.End] != ';' {
				t.Fatalf("span %+v of %q does not end at ';'", s, text)
			}
			if s.Doubt { // the caller takes it for a Compound, whatever its head says
				continue
			}
			one := text[s.Start:s.End]
			if again := Split(nil, one, m); len(again) > 1 {
				t.Fatalf("%q is one statement of %q, and several alone: %+v", one, text, again)
			}
			h, _ := ReadHead(one, m)
			if h2, more := ReadHead(text[s.Start:], m); !more && h2.Kind != h.Kind {
				t.Fatalf("%q reads as kind %d, with what follows as %d", one, h.Kind, h2.Kind)
			}
		}
		for _, n := range Hidden(nil, text, m) {
			if len(n.Table) > len(text) {
				t.Fatalf("table %q from %q", n.Table, text)
			}
		}
		for cut := range min(len(text), 64) {
			h, more := ReadHead(text[:cut], m)
			whole, _ := ReadHead(text, m)
			if !more && (h.Kind != whole.Kind || !bytes.Equal(h.Target.Table, whole.Target.Table)) {
				t.Fatalf("%q reads as %+v for certain, %q as %+v", text[:cut], h, text, whole)
			}
		}
	})
}

// FuzzPlan: all bytes outside the edits are unchanged, and TiDB's parser sees the same statement plus the id.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("INSERT INTO t (a) VALUES ("+strings.Repeat("1", 90)+")"), uint8(0))
	for i, s := range nasty {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(i&7))
		f.Add([]byte(s), uint8(i<<4))
	}
	f.Fuzz(func(t *testing.T, text []byte, mode uint8) {
		m := fuzzMode(mode)
		rule := &Rule{Schema: "*", Table: "*", Column: "id"}
		before := tidb(text, m)
		checkHead(t, text, m, before)
		p := new(Plan)
		s := &Statement{Text: text, Mode: m, Rules: []*Rule{rule}}
		err := p.Read(s)
		if errors.Is(err, ErrNeedTable) {
			s.Table = tableFor(before, int(mode))
			err = p.Read(s)
		}
		if err != nil {
			checkRefusal(t, text, err, before)
			return
		}
		out := p.Append(nil, text, planIDs(p))
		if got := undo(p, text, out); !bytes.Equal(got, text) {
			t.Fatalf("%q\n gives %q\n without its edits %q", text, out, got)
		}
		if before == nil {
			return
		}
		after := tidb(out, m)
		if after == nil {
			t.Fatalf("TiDB reads %q\n but not %q", text, out)
		}
		if err := compare(p, before, after); err != nil {
			t.Fatalf("%v: %q\n gives %q", err, text, out)
		}
	})
}

// tidb returns the statement if TiDB reads text as one plain INSERT or REPLACE of values in the same mode; nil otherwise.
// The value driver that the parser is tested with panics at decimals of more than 81 digits.
func tidb(text []byte, m Mode) (stmt *ast.InsertStmt) {
	defer func() {
		if recover() != nil {
			stmt = nil
		}
	}()
	// TiDB has comments of its own, takes the inside of MariaDB's for a comment, and reads UTF-8 alone.
	if m.Charset != SingleByte || !utf8.Valid(text) || bytes.Contains(text, []byte("/*T!")) || bytes.Contains(text, []byte("/*M!")) {
		return nil
	}
	p := parser.New()
	var mode mysql.SQLMode
	if m.ANSIQuotes {
		mode |= mysql.ModeANSIQuotes
	}
	if m.NoBackslashEscapes {
		mode |= mysql.ModeNoBackslashEscapes
	}
	p.SetSQLMode(mode)
	stmts, _, err := p.Parse(string(text), "", "")
	if err != nil || len(stmts) != 1 {
		return nil
	}
	s, ok := stmts[0].(*ast.InsertStmt)
	if !ok || s.Select != nil || s.Setlist || len(s.OnDuplicate) > 0 || s.IgnoreErr {
		return nil
	}
	return s
}

func tableFor(s *ast.InsertStmt, id int) *Table {
	n := 2
	if s != nil && len(s.Lists) > 0 {
		n = len(s.Lists[0])
	}
	t := &Table{Columns: make([]Column, max(n, 1))}
	for i := range t.Columns {
		t.Columns[i].Name = "c" + strings.Repeat("x", i)
	}
	t.Columns[id%len(t.Columns)].Name = "id"
	return t
}

// checkHead: what TiDB takes for an INSERT must not pass as anything else, nor as one into another table.
func checkHead(t *testing.T, text []byte, m Mode, s *ast.InsertStmt) {
	if s == nil {
		return
	}
	h, _ := ReadHead(text, m)
	want := Insert
	if s.IsReplace {
		want = Replace
	}
	name := s.Table.TableRefs.Left.(*ast.TableSource).Source.(*ast.TableName)
	if h.Kind != want && h.Kind != Compound || h.Target.Table != nil && string(h.Target.Table) != name.Name.O {
		t.Fatalf("%q: TiDB reads INSERT into %s, ReadHead %+v", text, name.Name.O, h)
	}
}

// checkRefusal: ErrRefusedByServer stands only for tuples of other lengths and an id named twice.
func checkRefusal(t *testing.T, text []byte, err error, s *ast.InsertStmt) {
	if s == nil || !errors.Is(err, ErrRefusedByServer) {
		return
	}
	width, named := len(s.Columns), 0
	for _, c := range s.Columns {
		if c.Name.L == "id" {
			named++
		}
	}
	if width == 0 {
		width = len(s.Lists[0])
	}
	for _, l := range s.Lists {
		if len(l) != width {
			return
		}
	}
	if named < 2 {
		t.Fatalf("%q: %v, but TiDB finds nothing wrong", text, err)
	}
}

// undo takes the edits out of the rewritten text again.
func undo(p *Plan, text, out []byte) []byte {
	var back []byte
	at, o := 0, 0
	for i, e := range p.edits {
		n := int(e.start) - at
		if o+n > len(out) {
			return nil
		}
		back = append(back, out[o:o+n]...)
		back = append(back, text[e.start:e.end]...)
		at = int(e.end)
		// What the edit put in ends where the bytes up to the next edit begin.
		one := *p
		one.edits = p.edits[:i+1]
		o = len(one.Append(nil, text, planIDs(p))) - len(text[at:])
	}
	return append(back, out[o:]...)
}

// compare returns how b differs from a beyond the ids that p says it has.
func compare(p *Plan, a, b *ast.InsertStmt) error {
	if restore(a.Table) != restore(b.Table) || a.IsReplace != b.IsReplace || a.Priority != b.Priority {
		return fmt.Errorf("another target")
	}
	if p.Rows != len(a.Lists) || len(a.Lists) != len(b.Lists) {
		return fmt.Errorf("%d rows read, TiDB %d and %d", p.Rows, len(a.Lists), len(b.Lists))
	}
	colsA, idA := columnNames(a)
	colsB, idB := columnNames(b)
	if len(a.Columns) == 0 && len(b.Columns) == 0 { // the id stays where it is, or no list has it
		idA = -2
	} else if len(a.Columns) > 0 && colsA != colsB || idB < 0 {
		return fmt.Errorf("columns %q and %q", colsA, colsB)
	}
	generated := 0
	for i := range a.Lists {
		if idA == -2 {
			n, err := compareInPlace(a.Lists[i], b.Lists[i])
			if err != nil {
				return err
			}
			generated += n
			continue
		}
		va, vb := a.Lists[i], b.Lists[i]
		at := idA
		if len(a.Columns) == 0 {
			at = missingFrom(va, vb)
		}
		x, y := values(va, at), values(vb, idB)
		if x != y {
			return fmt.Errorf("values %s and %s", x, y)
		}
		if at < 0 || restore(va[at]) != restore(vb[idB]) && !strings.Contains(restore(vb[idB]), "+0*LAST") {
			generated++
		}
	}
	if generated != p.Columns[0].Generated {
		return fmt.Errorf("%d ids generated, the texts show %d", p.Columns[0].Generated, generated)
	}
	return nil
}

// compareInPlace counts the values of a row that differ: the id, or none.
func compareInPlace(a, b []ast.ExprNode) (differ int, err error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("rows of %d and %d values", len(a), len(b))
	}
	for i := range a {
		x, y := restore(a[i]), restore(b[i])
		if x != y && !strings.Contains(y, "+0*LAST") {
			differ++
			if x != "NULL" && x != "DEFAULT" && strings.Trim(x, "_UTF8MB40'") != "" {
				return 0, fmt.Errorf("%s became %s", x, y)
			}
		}
	}
	return differ, nil
}

// missingFrom finds the position in a of the value that b has at its end: the first of a that b does not have there.
func missingFrom(a, b []ast.ExprNode) int {
	for i := range a {
		if i == len(b)-1 || restore(a[i]) != restore(b[i]) {
			return i
		}
	}
	return -1
}

func columnNames(s *ast.InsertStmt) (names string, id int) {
	id = -1
	for i, c := range s.Columns {
		if c.Name.L == "id" {
			id = i
			continue
		}
		names += c.Name.O + "\x00"
	}
	return names, id
}

func values(list []ast.ExprNode, without int) string {
	var b strings.Builder
	for i, v := range list {
		if i != without {
			b.WriteString(restore(v) + "\x00")
		}
	}
	return b.String()
}

func restore(n ast.Node) string {
	var b strings.Builder
	if err := n.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
		return "unprintable: " + err.Error()
	}
	return b.String()
}

// The comparison of FuzzPlan must see what a wrong rewriter would do.
func TestFuzzPlanHasTeeth(t *testing.T) {
	in := "INSERT INTO t (a) VALUES ('x'),(2)"
	p := &Plan{Rows: 2, Columns: []Filled{{Generated: 2}}}
	for _, tt := range []struct {
		out  string
		fine bool
	}{
		{"INSERT INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)", true},
		{"INSERT INTO u (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)", false},
		{"REPLACE INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)", false},
		{"INSERT INTO t (b,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)", false},
		{"INSERT INTO t (a) VALUES ('x'),(2)", false},
		{"INSERT INTO t (a,`id`) VALUES ('x,77',77),(2,LAST_INSERT_ID(77)+1)", false},
		{"INSERT INTO t (`id`,a) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)", false},
		{"INSERT INTO t (a,`id`) VALUES ('x',77)", false},
	} {
		err := compare(p, tidb([]byte(in), Mode{}), tidb([]byte(tt.out), Mode{}))
		if (err == nil) != tt.fine {
			t.Errorf("%s: %v", tt.out, err)
		}
	}
	q := new(Plan)
	if err := q.Read(statement([]byte(in))); err != nil {
		t.Fatal(err)
	}
	out := q.Append(nil, []byte(in), planIDs(q))
	if got := undo(q, []byte(in), out); string(got) != in {
		t.Errorf("undone: %q", got)
	}
	if got := undo(q, []byte(in), bytes.Replace(out, []byte("'x'"), []byte("'y'"), 1)); string(got) == in {
		t.Error("a changed value was not seen")
	}
}
