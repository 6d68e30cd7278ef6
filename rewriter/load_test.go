package rewriter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

var loadRules = []*rule.Rule{{Schema: "s", Table: "t", Column: "id"}}

var loadColumns = &rule.Table{Columns: []rule.Column{{Name: "id", Bytes: true}, {Name: "a"}, {Name: "u", Bytes: true}}}

func TestLoadPlan(t *testing.T) {
	hidden := &rule.Table{Columns: []rule.Column{{Name: "a"}, {Name: "u"}}, Invisible: []rule.Column{{Name: "id"}}}
	for _, test := range []struct {
		text  string
		table *rule.Table
		mode  Mode
		want  string // the statement, and what was read of it
	}{
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a,u)", want: `(` + "`id`," + `a,u) | 2 fields, id at -1, "\t" "" "\\" "" "\n"`},
		{text: "load data low_priority local infile 'f' replace into table s.t (`U`,t.ID,@x,@`y`,@'z')", want: `3 fields`},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t", want: `INTO TABLE t | 3 fields, id at 0`},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t()", want: `t() | 3 fields, id at 0`},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t", table: hidden, want: "TABLE t (`id`,`a`,`u`) | 2 fields, id at -1"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t IGNORE 3 ROWS ( ) SET a = 1", table: hidden, want: "ROWS (`id`,`a`,`u` ) SET a = 1 | 2 fields"},
		{text: "LOAD DATA LOCAL INFILE 'f' IGNORE INTO TABLE t CHARACTER SET 'gbk' FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES STARTING BY '>' TERMINATED BY 0x0D0A (a);", want: `1 fields, id at -1, "," "\"" "" ">" "\r\n"`},
		{text: `LOAD DATA LOCAL INFILE 'f' INTO TABLE t COLUMNS TERMINATED BY 'a\tb\'''"\%\x' (a)`, want: `"a\tb''\"\\%x"`},
		{text: `LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '\t' (a)`, mode: Mode{NoBackslashEscapes: true}, want: `"\\t" "" "" "" "\n"`},
		{text: `LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS ESCAPED BY X'5c' (a)`, mode: Mode{NoBackslashEscapes: true}, want: `"\t" "" "\\"`},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t PARTITION (p0, p1) CHARSET DEFAULT (a) SET u = (SELECT 1), a = CONCAT(@id, 'id')", want: "(`id`,a) SET u"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS ENCLOSED BY 'ab' (a)", want: "error: statement that the server refuses"},
		{text: "LOAD XML LOCAL INFILE 'f' INTO TABLE t", want: "error: LOAD XML"},
		{text: "LOAD DATA INFILE 'f' INTO TABLE t (a)", want: "error: LOAD DATA without LOCAL"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) SET id = 1", want: "error: LOAD DATA whose SET names the generated column id"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) SET a = t.`Id`", want: "error: LOAD DATA whose SET names"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (id, a, id)", want: "error: LOAD DATA that reads a generated column twice"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '\xc3\xa4' (a)", want: "error: LOAD DATA with separators beyond ASCII"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY 'a' 'b' (a)", want: "error: not understood"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS (a)", want: "error: not understood"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t LINES (a)", want: "error: not understood"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) SET", want: "error: not understood"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) SET u = (1", want: "error: not understood"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a", want: "error: not understood"},
		{text: "LOAD DATA LOCAL INFILE 'f' /*!50000 INTO */ TABLE t (a)", want: "error: "},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t IGNORE 2 (a)", want: "error: not understood"},
		{text: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) ALGORITHM = BULK", want: "error: not understood"},
	} {
		if test.table == nil {
			test.table = loadColumns
		}
		var p LoadPlan
		got := ""
		if err := p.Read(&Statement{Text: []byte(test.text), Mode: test.mode, Rules: loadRules, Table: test.table}); err != nil {
			got = "error: " + err.Error()
		} else {
			got = fmt.Sprintf("%s | %d fields, id at %d, %q %q %q %q %q", p.Append(nil, []byte(test.text)), p.Fields, p.At[0], p.FieldTerm, p.Enclosed, p.Escaped, p.LineStart, p.LineTerm)
			assert.True(t, len(p.Bytes) == p.Fields, "%s: %d of %d fields are known", test.text, len(p.Bytes), p.Fields)
		}
		if strings.HasPrefix(test.text, "load data low") {
			test.want = "5 fields, id at 1"
		}
		assert.Contains(t, test.text, got, test.want)
	}
}

// Nothing but the columns in front of the list changes, whatever the text is.
func FuzzLoadPlan(f *testing.F) {
	for _, text := range []string{
		"LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a,u)", "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE s.t CHARSET gbk FIELDS TERMINATED BY x'2c' ENCLOSED BY '\\'' LINES STARTING BY 'x' IGNORE 1 LINES (@a, `b`) SET c = (1)",
		"LOAD DATA LOCAL INFILE 'f' INTO TABLE t PARTITION (p)", "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY '\\", "LOAD DATA LOCAL INFILE 'f' INTO TABLE t FIELDS TERMINATED BY 0x1 ()",
	} {
		f.Add(text, byte(0))
	}
	f.Fuzz(func(t *testing.T, text string, b byte) {
		mode := Mode{ANSIQuotes: b&1 != 0, NoBackslashEscapes: b&2 != 0, MariaDB: b&4 != 0, Charset: Charset(b >> 3 % 5), Version: 101119}
		var p LoadPlan
		err := p.Read(&Statement{Text: []byte(text), Mode: mode, Rules: loadRules, Table: loadColumns})
		if err != nil {
			form := (*Unsupported)(nil)
			assert.MustTrue(t, errors.As(err, &form) || errors.Is(err, ErrRefusedByServer), "%v", err)
			return
		}
		sent := p.Append(nil, []byte(text))
		without := bytes.Replace(sent, []byte("`id`,"), nil, 1)
		assert.MustTrue(t, (p.At[0] >= 0 || strings.Contains(text, "`id`,") || string(without) == text) && (p.At[0] < 0 || string(sent) == text), "%q -> %q", text, sent)
		assert.MustTrue(t, p.Fields >= 1 && p.At[0] < p.Fields && len(p.Bytes) == p.Fields && len(p.Enclosed) <= 1 && len(p.Escaped) <= 1, "%q -> %+v", text, p)
	})
}
