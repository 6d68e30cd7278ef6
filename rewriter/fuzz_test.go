package rewriter

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
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

// FuzzScanner: Split and ReadHead read any bytes, spans ascend inside the text, what lies between
// and behind them is blank, a statement that Split cuts out is one to Split too, ReadHead sees no
// less in it than in its own copy, and an answer that ReadHead gives without more does not change
// with what follows.
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
			assert.MustTrue(t, s.Start == at && s.End >= s.Start && s.End <= len(text), "span %+v of %q at %d", s, text, at)
			at = s.End + 1
			assert.MustTrue(t, s.End >= len(text) || text[s.End] == ';', "span %+v of %q does not end at ';'", s, text)
			if s.Doubt { // the caller takes it for a Compound, whatever its head says
				continue
			}
			one := text[s.Start:s.End]
			again := Split(nil, one, m)
			assert.MustTrue(t, len(again) <= 1, "%q is one statement of %q, and several alone: %+v", one, text, again)
			q, ok := ReadLastIDQuery(one)
			assert.MustTrue(t, !ok || q.Column != "" && MentionsLastID(one), "%q reads the last insert id as %+v", one, q)
			h, _ := ReadHead(one, m)
			h2, more := ReadHead(text[s.Start:], m)
			assert.MustTrue(t, more || h2.Kind == h.Kind, "%q reads as kind %d, with what follows as %d", one, h.Kind, h2.Kind)
		}
		for _, n := range Hidden(text, m).Tables {
			assert.MustTrue(t, len(n.Table) != 0 && len(n.Table) <= len(text), "table %q from %q", n.Table, text)
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

// FuzzPlan: all bytes outside the edits are unchanged, whatever the form, the mode, the rules and
// the table. What the result says is the business of package grammar's targets, where TiDB's parser
// reads it.
func FuzzPlan(f *testing.F) {
	f.Add([]byte("INSERT INTO t (a) VALUES ("+strings.Repeat("1", 90)+")"), uint8(0), uint8(0))
	for i, s := range slices.Concat(nasty, forms, queries) {
		f.Add([]byte(s), uint8(0), uint8(i))
		f.Add([]byte(s), uint8(i&15), uint8(i*7))
		f.Add([]byte(s), uint8(i<<4), uint8(i*11))
	}
	f.Fuzz(func(t *testing.T, text []byte, mode, facts uint8) {
		s := fuzzStatement(text, mode, facts)
		p := new(Plan)
		err := p.Read(s)
		if errors.Is(err, ErrNeedTable) {
			s.Table = fuzzTable(facts)
			err = p.Read(s)
		}
		if errors.Is(err, ErrNeedValues) {
			s.Values = make([]Value, len(p.Questions))
			for i := range s.Values {
				s.Values[i] = Value{Generate: facts>>(i%8)&1 != 0, Known: facts&4 != 0, Number: uint64(i)}
			}
			err = p.Read(s)
		}
		if err != nil {
			return
		}
		if p.Selected {
			assert.Must(t, checkSelect(p, text), fmt.Sprintf("%q", text))
			return
		}
		for i, c := range p.Columns {
			assert.MustTrue(t, c.Generated+c.Explicit+c.Texts == p.Rows, "%q: column %d of %d rows has %+v", text, i, p.Rows, c)
		}
		out := p.Append(nil, text, planIDs(p))
		got := undo(p, text, out)
		assert.MustTrue(t, bytes.Equal(got, text), "%q\n gives %q\n without its edits %q", text, out, got)
		again := p.Append(nil, text, planIDs(p))
		assert.MustTrue(t, bytes.Equal(again, out), "%q\n gives %q\n and then %q", text, out, again)
	})
}

// FuzzOpen: an INSERT that is read without knowing where it ends, ends where Split ends it, and is
// read as it is by itself.
func FuzzOpen(f *testing.F) {
	for i, s := range slices.Concat(nasty, forms, queries) {
		for _, behind := range []string{";", "; SELECT 1", ";INSERT INTO t (a) VALUES (';')", ";\x00"} {
			f.Add([]byte(s+behind), uint8(0), uint8(i))
			f.Add([]byte(s+behind), uint8(i*5), uint8(i*7))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, mode, facts uint8) {
		s := fuzzStatement(text, mode, facts)
		s.Table, s.Open = fuzzTable(facts), true
		open, alone := new(Plan), new(Plan)
		if err := open.Read(s); err != nil {
			assert.MustTrue(t, errors.Is(err, ErrOpen), "%q: %v", text, err)
			return
		}
		s.Mode.MultiStatements = true
		span, last, ok := Next(text, 0, s.Mode)
		if !ok || span != (Span{End: open.End}) {
			t.Fatalf("%q ends at %d, split at %+v", text, open.End, span)
		}
		if Ends(text, span.End, s.Mode) != last {
			t.Fatalf("%q is the last statement: %v", text[:span.End], last)
		}
		s.Text, s.Open = text[:open.End], false
		if err := alone.Read(s); err != nil {
			t.Fatalf("%q is read, alone it is not: %v", s.Text, err)
		}
		if !reflect.DeepEqual(open, alone) {
			t.Fatalf("%q\n of %q is read as %+v\n alone as %+v", s.Text, text, open, alone)
		}
	})
}

// queries are statements whose rows come from a query.
var queries = []string{
	"INSERT t (a) SELECT x,'y' FROM s -- z", "INSERT t ((SELECT NULL,2 FROM s ORDER BY 1)) ", "REPLACE t (a) SELECT 1 FOR UPDATE ;", "INSERT IGNORE t TABLE s LIMIT 3",
	"INSERT t (a) WITH c(x) AS (SELECT 1) SELECT c.x FROM c UNION SELECT 2", "INSERT t (a) SELECT COUNT(*) FROM s GROUP BY y", "INSERT t (a) VALUES ROW(1),ROW(2)",
	"INSERT t (a) SELECT x FROM s WHERE f IN (1) ON DUPLICATE KEY UPDATE a=s.b,id=LAST_INSERT_ID(id)", "INSERT t (a) (SELECT /*!50000 x */ FROM s)",
}

// forms are those that nasty has none of.
var forms = []string{
	"INSERT IGNORE t SET a=1,b:=f(2),id=DEFAULT", "INSERT t SET id=NULL,pid=LAST_INSERT_ID()", "INSERT t SET id='0'ON DUPLICATE KEY UPDATE a=1",
	"INSERT t VALUES (),()", "REPLACE DELAYED t () VALUES ()", "INSERT t PARTITION (p,`q`) (uid,id,a) VALUES (1,NULL,LAST_INSERT_ID()),(0,900,2)",
	"INSERT t (a) VALUES (1),(2) AS n ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id),a=n.a RETURNING id",
	"INSERT t (a) VALUES (1) AS n(x) ON DUPLICATE KEY UPDATE a=x+1 ; -- end", "INSERT t VALUES (NULL,(NULL),@x,-0,0.4),(1,2,3,4,'')",
	"INSERT /*!50000 IGNORE */ t (a/*!80000 ,id*/) VALUES (1/*!80000 ,0*/)/*! */", "INSERT t (id,a) VALUES (NULL,id+1),(NULL,`id`)",
}

func fuzzStatement(text []byte, mode, facts uint8) *Statement {
	s := &Statement{Text: text, Mode: fuzzMode(mode)}
	switch {
	case s.Mode.MariaDB:
		s.Mode.Version = 101119
	case facts&2 != 0:
		s.Mode.Version = 90704
	}
	for i, column := range []string{"id", "uid", "a"}[:1+facts%3] {
		s.Rules = append(s.Rules, &rule.Rule{Schema: "*", Table: "*", Column: column, Packet: i == 0 && facts&32 != 0})
	}
	for i := len(s.Rules) - 1; i >= 0 && facts>>(7-i)&1 != 0; i-- { // as Match orders them
		s.Rules[i].IDs = rule.UUID
	}
	return s
}

func fuzzTable(facts uint8) *rule.Table {
	t := &rule.Table{Invisible: []rule.Column{{Name: "id"}, {Name: "uid", Text: true}}}
	for i := range int(facts>>4) + 1 {
		t.Columns = append(t.Columns, rule.Column{Name: "c" + strings.Repeat("x", i), Max: 127})
	}
	t.Columns[int(facts)%len(t.Columns)].Name = "ID"
	t.Columns[int(facts/3)%len(t.Columns)].Name = "a"
	for _, columns := range [][]rule.Column{t.Columns, t.Invisible} {
		for i := range columns {
			columns[i].Text, columns[i].Bytes, columns[i].Length = true, facts&8 != 0, 36
		}
	}
	return t
}

// undo takes the edits out of the rewritten text again.
func undo(p *Plan, text, out []byte) []byte {
	var back []byte
	at, o := 0, 0
	for i, e := range p.edits {
		n := int(e.start) - at
		if n < 0 || int(e.end) < int(e.start) || o+n > len(out) {
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

// A byte that is changed outside the edits must be seen.
func TestUndoHasTeeth(t *testing.T) {
	for _, in := range append(forms, "INSERT INTO t (a) VALUES ('x'),(2)") {
		p, s := new(Plan), fuzzStatement([]byte(in), 8, 0)
		err := p.Read(s)
		if errors.Is(err, ErrNeedTable) {
			s.Table = &rule.Table{Columns: []rule.Column{{Name: "id"}, {Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
			err = p.Read(s)
		}
		if errors.Is(err, ErrNeedValues) {
			s.Values = make([]Value, len(p.Questions))
			err = p.Read(s)
		}
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		out := p.Append(nil, s.Text, planIDs(p))
		got := undo(p, s.Text, out)
		assert.True(t, string(got) == in, "%s\n undone %s", in, got)
		end := len(out) - 1
		if len(p.edits) > 0 {
			end = int(p.edits[0].start) - 1 // surely none of an edit's bytes
		}
		wrong := bytes.Clone(out)
		wrong[end] ^= 1
		got = undo(p, s.Text, wrong)
		assert.True(t, string(got) != in, "%s: a changed byte was not seen in %s", in, wrong)
	}
}
