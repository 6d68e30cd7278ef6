package catalog

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// scripted is a session whose server gives prepared answers, and notes what it was asked.
type scripted struct {
	settings Settings
	columns  map[string][][]byte // by what a PREPARE ends with
	rows     map[string][]string // by what a question begins with; its first column is called View for one of a view
	asked    []string
}

func (s *scripted) Settings() Settings       { return s.settings }
func (s *scripted) Learn() (Settings, error) { return s.settings, nil }

func (s *scripted) Query(sql string) (out wire.Result, err error) {
	s.asked = append(s.asked, sql)
	for begins, values := range s.rows {
		if !strings.HasPrefix(sql, begins) {
			continue
		}
		var row [][]byte
		for i, v := range values {
			name := "c"
			if i == 0 && strings.Contains(strings.Join(values, " "), " VIEW ") {
				name = "View"
			}
			out.Payloads = append(out.Payloads, columnPayload(name, columnType{code: mysql.MYSQL_TYPE_VAR_STRING, length: 99, charset: 45}))
			row = append(row, []byte(v))
		}
		out.Rows = append(out.Rows, row)
		return out, nil
	}
	return out, &mysql.MyError{Code: mysql.ER_TABLEACCESS_DENIED_ERROR, State: "42000", Message: "denied"}
}

func (s *scripted) Prepare(sql []byte) (p wire.PrepareReply, err error) {
	s.asked = append(s.asked, "PREPARE "+string(sql))
	for ends, columns := range s.columns {
		if strings.HasSuffix(string(sql), ends) {
			p.ID, p.Definitions, p.Shown.Payloads = 7, true, columns
			return p, nil
		}
	}
	return p, &mysql.MyError{Code: mysql.ER_BAD_FIELD_ERROR, State: "42S22", Message: "no such column"}
}

func (s *scripted) Close(uint32) error {
	s.asked = append(s.asked, "CLOSE")
	return nil
}

// What is asked about a table, in its order, and what comes of it.
func TestTable(t *testing.T) {
	key := columnType{code: mysql.MYSQL_TYPE_LONGLONG, flags: mysql.NOT_NULL_FLAG | mysql.PRI_KEY_FLAG | noDefaultValue, length: 20, charset: wire.BinaryCollation}
	id, note := columnPayload("id", key), columnPayload("note", columnType{code: mysql.MYSQL_TYPE_LONG, length: 11, charset: wire.BinaryCollation})
	exact, wild := rule.Rule{Schema: "shop", Table: "t", Column: "id", Source: "s"}, rule.Rule{Schema: "shop", Table: "*", Column: "id", Source: "s"}
	mariaDB, mySQL := Settings{Mode: rewriter.Mode{MariaDB: true}}, Settings{Mode: rewriter.Mode{Version: 90700}}
	plain := map[string][][]byte{"SELECT * FROM `shop`.`t`": {id, note}}
	view := map[string][]string{
		"SHOW CREATE TABLE `shop`.`t`":      {"t", "CREATE VIEW `t` AS select `orders`.`id` AS `id` from `orders`"},
		"SHOW CREATE TABLE `shop`.`orders`": {"orders", "CREATE TABLE `orders` (`id` bigint NOT NULL)"},
	}
	for name, tt := range map[string]struct {
		server scripted
		rule   rule.Rule
		each   bool
		base   string // table behind the view
		err    uint16
		want   []string
	}{
		"an exact rule": {
			server: scripted{settings: mariaDB, columns: plain}, rule: exact,
			want: []string{"PREPARE SELECT * FROM `shop`.`t`", "CLOSE"},
		},
		"a wildcard, which a default would keep off": {
			server: scripted{settings: mySQL, columns: plain, rows: map[string][]string{"SHOW CREATE TABLE": {"t", "CREATE TABLE `t` (`id` bigint NOT NULL, `note` int, PRIMARY KEY (`id`))"}}}, rule: wild,
			want: []string{"PREPARE SELECT * FROM `shop`.`t`", "CLOSE", "SHOW CREATE TABLE `shop`.`t`"},
		},
		"no such column, and a key that MySQL may have generated": {
			server: scripted{settings: mySQL, columns: map[string][][]byte{"SELECT * FROM `shop`.`t`": {note}}, rows: map[string][]string{"SHOW CREATE TABLE": {"t", "CREATE TABLE `t` (`note` int)"}}}, rule: exact,
			want: []string{"PREPARE SELECT * FROM `shop`.`t`", "CLOSE", "PREPARE SELECT `id` FROM `shop`.`t`", "PREPARE SELECT `my_row_id` FROM `shop`.`t`", "SHOW CREATE TABLE `shop`.`t`"},
		},
		"a view, whose table has the series": {
			server: scripted{settings: mariaDB, columns: plain, rows: view}, rule: exact, each: true, base: "orders",
			want: []string{"PREPARE SELECT * FROM `shop`.`t`", "CLOSE", "SHOW CREATE TABLE `shop`.`t`", "SHOW CREATE TABLE `shop`.`orders`"},
		},
		"nothing": {
			server: scripted{settings: mariaDB}, rule: exact, err: mysql.ER_BAD_FIELD_ERROR,
			want: []string{"PREPARE SELECT * FROM `shop`.`t`"},
		},
	} {
		about := About{
			Name: rewriter.Name{Schema: []byte("shop"), Table: []byte("t")}, Rules: []*rule.Rule{&tt.rule}, Changes: 3,
			EachTable: func(*rule.Rule) bool { return tt.each },
			Before:    func() *Table { return nil },
		}
		f := assert.Of((&Asker{Session: &tt.server, Names: new(Spellings)}).Table(about)).Must(t, name)
		assert.NoDiff(t, name+": questions", cmp.Diff(tt.want, tt.server.asked))
		assert.True(t, (f.Err != nil) == (tt.err != 0) && (f.Err == nil || f.Err.Code == tt.err), "%s: refused by %v, want %d", name, f.Err, tt.err)
		base, err := f.Series("id", rewriter.Name{})
		assert.True(t, err == nil && string(base.Table) == tt.base, "%s: the ids are of the series of %q, %v; want %q", name, base.Table, err, tt.base)
		if f.Err != nil {
			continue
		}
		tt.server.asked, about.Before = nil, func() *Table { return f }
		again, err := (&Asker{Session: &tt.server, Names: new(Spellings)}).Table(about)
		assert.True(t, err == nil && len(tt.server.asked) <= 2 && again.Table == f.Table && again.View == f.View && len(again.Bases) == len(f.Bases),
			"%s: asked for again: %q, %+v, %v", name, tt.server.asked, again, err)
	}
}

// TestHeldQuery: ids in a column of text are compared as text, which an index answers.
func TestHeldQuery(t *testing.T) {
	for _, tt := range []struct {
		text bool
		want string
	}{
		{false, "SELECT MAX(`i``d`) FROM `shop`.`orders` WHERE `i``d` IN (4503599627370496,4503599627370497)"},
		{true, "SELECT MAX(`i``d`) FROM `shop`.`orders` WHERE `i``d` IN ('4503599627370496','4503599627370497')"},
	} {
		assert.Equal(t, "the question", HeldQuery("shop", "orders", rule.Column{Name: "i`d", Text: tt.text}, []uint64{1 << 52, 1<<52 + 1}), tt.want)
	}
}

func TestParseGreatest(t *testing.T) {
	for in, want := range map[string]uint64{"": 0, "-5": 0, "0": 0, "17": 17, "18446744073709551615": math.MaxUint64} {
		assert.Of(parseGreatest(in)).Equal(t, fmt.Sprintf("parseGreatest(%q)", in), want)
	}
	for _, in := range []string{"x", "1.5", "18446744073709551616"} {
		assert.Of(parseGreatest(in)).Fails(t, fmt.Sprintf("parseGreatest(%q)", in), "")
	}
}

func TestReadProbed(t *testing.T) {
	row := func(values ...string) (r [][]byte) {
		for _, v := range values {
			r = append(r, []byte(v))
		}
		return r
	}
	good := row("ANSI_QUOTES", "gbk", "73686f70", "2", "1048576", "1", "17", "latin1")
	want := Probed{SQLMode: "ANSI_QUOTES", Charset: "gbk", Connection: "latin1", Schema: []byte("shop"), Increment: 2, MaxPacket: 1 << 20, LastID: 17, Folds: true}
	got, ok := readProbed(good)
	assert.True(t, ok && cmp.Diff(want, got) == "", "%+v, %v; want %+v", got, ok, want)
	got, _ = readProbed(row("", "gbk", "73", "1", "1", "2", "0", "gbk"))
	assert.True(t, got.Folds, "lower_case_table_names=2 does not fold")
	for _, bad := range [][][]byte{nil, good[:7], row("", "gbk", "73", "x", "1", "0", "0", "gbk"), row("", "gbk", "73", "0", "1", "0", "0", "gbk"), row("", "gbk", "73", "1", "", "0", "0", "gbk"), row("", "gbk", "73", "1", "1", "0", "", "gbk")} {
		p, ok := readProbed(bad)
		assert.True(t, !ok, "%q is understood as %+v", bad, p)
	}
}
