package rewriter

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// selectTable is what the statements of these tests write to.
var selectTable = &rule.Table{Columns: []rule.Column{{Name: "id", Max: 1 << 62}, {Name: "a"}, {Name: "b"}}}

// numbered is a Numbering whose ids are 77, 78, ...
func numbered(p *Plan, runs ...Run) *Numbering {
	n := &Numbering{LastID: 5}
	if len(runs) == 0 {
		runs = []Run{{First: 77, Count: 4}}
	}
	for range p.Columns {
		n.Columns = append(n.Columns, Numbers{Runs: runs, Stride: 1})
	}
	return n
}

// readSelect reads a statement whose rows come from a query.
func readSelect(t *testing.T, in string, m Mode) *Plan {
	t.Helper()
	p := new(Plan)
	err := p.Read(&Statement{Text: []byte(in), Mode: m, Rules: []*rule.Rule{testRule}, Table: selectTable})
	assert.MustTrue(t, err == nil && p.Selected, "%s: %v, selected %t", in, err, p.Selected)
	return p
}

const (
	wrapped = " FROM (SELECT `idproxy3`,LAST_INSERT_ID(LAST_INSERT_ID()+1) AS `idproxy2` FROM `idproxy0` LIMIT 18446744073709551615) AS `idproxy1`"
	guarded = "IF(`idproxy2`=6 AND (LAST_INSERT_ID()>9 OR LAST_INSERT_ID(5+0*`idproxy2`)<>5),9223372036854775807+CAST(LAST_INSERT_ID()-5 AS SIGNED),77+(`idproxy2`-6)+0*UUID_SHORT())"
)

// around is what INSERT INTO t(a) query becomes.
func around(query string) string {
	return "WITH `idproxy0`(`idproxy3`) AS (" + query + ") SELECT `idproxy3`," + guarded + wrapped
}

func TestAppendSelect(t *testing.T) {
	const max = " LIMIT 18446744073709551615"
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t(a) SELECT 1", "INSERT INTO t(a,`id`) " + around("SELECT 1"+max)},
		{"INSERT INTO t(a) SELECT a FROM s -- x\n;", "INSERT INTO t(a,`id`) " + around("SELECT a FROM s"+max) + " -- x\n;"},
		{"REPLACE t(a)(SELECT a FROM s ORDER BY b)", "REPLACE t(a,`id`)" + around("SELECT a FROM s ORDER BY b"+max)},
		{"INSERT INTO t(a) ( (SELECT a FROM s))", "INSERT INTO t(a,`id`) " + around("SELECT a FROM s"+max)},
		{"INSERT INTO t(a) SELECT a FROM s LIMIT 3", "INSERT INTO t(a,`id`) " + around("SELECT a FROM s LIMIT 3")},
		{"INSERT INTO t(a) SELECT a FROM s FETCH FIRST 3 ROWS ONLY", "INSERT INTO t(a,`id`) " + around("SELECT a FROM s FETCH FIRST 3 ROWS ONLY")},
		{"INSERT INTO t(a) SELECT s.limit FROM s", "INSERT INTO t(a,`id`) " + around("SELECT s.limit FROM s"+max)},
		{"INSERT INTO t(a) SELECT a FROM s FOR UPDATE", "INSERT INTO t(a,`id`) " + around("SELECT a FROM s "+max+" FOR UPDATE")},
		{"INSERT INTO t(a) SELECT a FROM s LOCK IN SHARE MODE", "INSERT INTO t(a,`id`) " + around("SELECT a FROM s "+max+" LOCK IN SHARE MODE")},
		{"INSERT INTO t(a) TABLE s", "INSERT INTO t(a,`id`) " + around("TABLE s"+max)},
		{"INSERT INTO t(a) WITH c(x) AS (SELECT 1) SELECT x FROM c", "INSERT INTO t(a,`id`) " + around("WITH c(x) AS (SELECT 1) SELECT x FROM c"+max)},
		{"INSERT INTO t(a) (SELECT 1) UNION (SELECT 2 LIMIT 1)", "INSERT INTO t(a,`id`) " + around("(SELECT 1) UNION (SELECT 2 LIMIT 1)"+max)},
		{"INSERT IGNORE t(a) SELECT x FROM y JOIN z ON y.a=z.a", "INSERT IGNORE t(a,`id`) " + around("SELECT x FROM y JOIN z ON y.a=z.a"+max)},
		{
			"INSERT t(a) SELECT 1 ON DUPLICATE KEY UPDATE a=VALUES(a)+1, b=t.a",
			"INSERT t(a,`id`) " + around("SELECT 1"+max) + " ON DUPLICATE KEY UPDATE a=VALUES(a)+1, b=t.a",
		},
	} {
		p := readSelect(t, tt.in, Mode{})
		assert.Equal(t, tt.in, string(p.AppendSelect(nil, []byte(tt.in), numbered(p))), tt.want)
	}
}

func TestAppendSelectBeside(t *testing.T) {
	const mysql = "IF(ROW_NUMBER() OVER `idproxy2`>4,9223372036854775807+CAST(ROW_NUMBER() OVER `idproxy2` AS SIGNED),77+(CAST(ROW_NUMBER() OVER `idproxy2` AS SIGNED)-1)+0*UUID_SHORT())"
	const mariaDB = "IF((@`idproxy2`:=@`idproxy2`+1)>4,9223372036854775807+CAST(@`idproxy2` AS SIGNED),77+(CAST(@`idproxy2` AS SIGNED)-1)+0*UUID_SHORT())"
	for _, tt := range []struct {
		in, want string
		mode     Mode
	}{
		{"INSERT t(a) SELECT x FROM s WHERE y", "INSERT t(a,`id`) SELECT x ," + mysql + " FROM s WHERE y WINDOW `idproxy2` AS () ", Mode{}},
		{"INSERT t(a) (SELECT x FROM s);", "INSERT t(a,`id`) (SELECT x ," + mysql + " FROM s WINDOW `idproxy2` AS () );", Mode{}},
		{"INSERT t(a) SELECT x FROM s WHERE y", "INSERT t(a,`id`) SELECT x ," + mariaDB + " FROM s WHERE y", Mode{MariaDB: true}},
		{
			"INSERT t(a) SELECT x FROM s ON DUPLICATE KEY UPDATE a=s.b",
			"INSERT t(a,`id`) SELECT x ," + mariaDB + " FROM s ON DUPLICATE KEY UPDATE a=s.b",
			Mode{MariaDB: true},
		},
	} {
		p := readSelect(t, tt.in, tt.mode)
		n := numbered(p)
		n.Beside = true
		can, _ := p.CanBeside()
		got := string(p.AppendSelect(nil, []byte(tt.in), n))
		assert.True(t, can && got == tt.want, "%s\n gives %s\n want  %s", tt.in, got, tt.want)
	}
	for _, in := range []string{
		"INSERT t(a) SELECT x FROM s ORDER BY x", "INSERT t(a) SELECT DISTINCT x FROM s", "INSERT t(a) SELECT x FROM s GROUP BY x", "INSERT t(a) SELECT MAX(x) FROM s",
		"INSERT t(a) SELECT x FROM s LIMIT 3", "INSERT t(a) SELECT x FROM s UNION SELECT 1", "INSERT t(a) TABLE s", "INSERT t(a) SELECT x FROM s HAVING x",
		"INSERT t SELECT NULL,1,2", "INSERT t(a) SELECT x FROM s FOR UPDATE", "INSERT t(a) SELECT SUM(x) OVER () FROM s", "INSERT t(a) WITH c AS (SELECT 1) SELECT 1",
	} {
		can, _ := readSelect(t, in, Mode{}).CanBeside()
		assert.True(t, !can, "%s can have ids beside its values", in)
	}
}

// The ids that a query gives.
func TestAppendSelectGiven(t *testing.T) {
	const in = "INSERT t SELECT x,1,2 FROM s"
	const generates = "(`idproxy3` IS NULL OR ROUND(`idproxy3`)=0)"
	p := readSelect(t, in, Mode{})
	if got, want := string(p.AppendCount(nil, []byte(in), true)), "WITH `idproxy0`(`idproxy3`,`idproxy4`,`idproxy5`) AS (SELECT x,1,2 FROM s LOCK IN SHARE MODE) "+
		"SELECT "+Untimed+"COUNT(*),LAST_INSERT_ID(),COUNT(CASE WHEN "+generates+" THEN 1 END),COUNT(`idproxy3`),MAX(CASE WHEN "+generates+" THEN NULL ELSE `idproxy3` END),"+
		"MIN(CASE WHEN "+generates+" THEN NULL ELSE `idproxy3` END) FROM `idproxy0` LIMIT 1"; got != want {
		t.Errorf("counted by %s\n want %s", got, want)
	}
	for _, tt := range []struct {
		name       string
		n          Numbers
		id, counts string
	}{
		{"none explicit", Numbers{Runs: []Run{{77, 4}}, Stride: 1}, "77+(`idproxy2`-6)+0*UUID_SHORT())", "CASE WHEN NOT " + generates + " THEN 1099511627776 ELSE 1 END"},
		{"all explicit", Numbers{Stride: 1, Given: GivenAny}, "AS SIGNED),`idproxy3`)", "CASE WHEN " + generates + " THEN 1099511627776 ELSE 1 END"},
		{
			"some",
			Numbers{Runs: []Run{{77, 4}}, Stride: 2, Given: GivenUpTo, Most: 900},
			"IF(" + generates + ",77+2*(`idproxy2`-6)+0*UUID_SHORT(),`idproxy3`)",
			"CASE WHEN `idproxy3`>900 THEN 1099511627776 WHEN NOT " + generates + " THEN 0 ELSE 1 END",
		},
		{"some of DOUBLE", Numbers{Runs: []Run{{77, 4}}, Stride: 1, Given: GivenAny, Float: true}, "CAST(77+(`idproxy2`-6)+0*UUID_SHORT() AS CHAR)", "THEN 0 ELSE 1 END"},
	} {
		got := string(p.AppendSelect(nil, []byte(in), &Numbering{LastID: 5, Columns: []Numbers{tt.n}}))
		assert.True(t, strings.Contains(got, tt.id) && strings.Contains(got, "LAST_INSERT_ID(LAST_INSERT_ID()+") && strings.Contains(got, tt.counts+") AS `idproxy2`"), "%s: %s", tt.name, got)
	}
}

func TestGuarded(t *testing.T) {
	for message, want := range map[string]bool{ // as MariaDB 10.11 and MySQL 9.7 wrote them
		"BIGINT value is out of range in '9223372036854775807 + cast(last_insert_id() - 500 as signed)'":         true,
		"BIGINT value is out of range in '(9223372036854775807 + cast((last_insert_id() - 500) as signed))'":     true,
		"BIGINT value is out of range in '9223372036854775807 + cast(@`idproxy2` as signed)'":                    true,
		"BIGINT value is out of range in '(9223372036854775807 + cast(`row_number() OVER idproxy2` as signed))'": true,
		"BIGINT value is out of range in '9223372036854775807 + `shop`.`s`.`v`'":                                 false,
		"BIGINT value is out of range in '9223372036854775807 + cast(`shop`.`s`.`v` as signed)'":                 false,
		"BIGINT UNSIGNED value is out of range in '18446744073709551615 + 1'":                                    false,
	} {
		assert.Equal(t, message, Guarded([]byte(message)), want)
	}
}

// Runs are found by a tree, and a name of the statement's own is not made up.
func TestAppendSelectRuns(t *testing.T) {
	const in = "INSERT t(a) SELECT IDPROXY7 FROM s"
	p := readSelect(t, in, Mode{})
	got := string(p.AppendSelect(nil, []byte(in), numbered(p, Run{10, 3}, Run{20, 3}, Run{90, 1})))
	assert.Contains(t, "the statement", got, "IF(`idproxy10`<9,10+(`idproxy10`-6),IF(`idproxy10`<12,20+(`idproxy10`-9),90+(`idproxy10`-12)))")
	var n Numbers
	n.Stride = 2
	n.Add([]uint64{5, 7, 9, 12, 14, 30})
	n.Add([]uint64{32, 40})
	assert.True(t, len(n.Runs) == 4 && n.Runs[0] == (Run{5, 3}) && n.Runs[2] == (Run{30, 2}) && n.Count() == 8, "runs %v", n.Runs)
}

// A server without WITH and window functions.
func TestAppendSelectOld(t *testing.T) {
	const in = "INSERT t(a) SELECT x FROM s ORDER BY x"
	p := readSelect(t, in, Mode{Version: 50744})
	got := string(p.AppendSelect(nil, []byte(in), numbered(p)))
	want := "FROM (SELECT NULL AS `idproxy3` FROM DUAL WHERE 0 UNION ALL (SELECT x FROM s ORDER BY x LIMIT 18446744073709551615)) AS `idproxy0`"
	assert.True(t, !strings.Contains(got, "WITH") && strings.Contains(got, want), "%s\n has no %s", got, want)
}

func TestSelectRefusals(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"INSERT t(a) SELECT @x:=1", "INSERT ... SELECT that sets a user variable"},
		{"INSERT t(a) SELECT f(1)", "INSERT ... SELECT that calls a function which may do more than read"},
		{"INSERT t(a) SELECT d.f(1)", "INSERT ... SELECT that calls a function which may do more than read"},
		{"INSERT t(a) SELECT `lower`(1)", "INSERT ... SELECT that calls a function which may do more than read"},
		{"INSERT t(a) SELECT x FROM (SELECT get_lock('x',1) x) y", "INSERT ... SELECT that calls a function which may do more than read"},
		{"INSERT t(a) SELECT ROW_COUNT()", "INSERT ... SELECT that calls a function which may do more than read"},
		{"INSERT t(a) SELECT LAST_INSERT_ID(7)", "INSERT ... SELECT that sets LAST_INSERT_ID()"},
		{"INSERT t(a) SELECT NEXT VALUE FOR q", "INSERT ... SELECT that draws from a sequence"},
		{"INSERT t(a) SELECT q.nextval", "INSERT ... SELECT that draws from a sequence"},
		{"INSERT t(a) SELECT 1 INTO @x", "INSERT ... SELECT with INTO"},
		{"INSERT t(a) SELECT SQL_CALC_FOUND_ROWS 1", "INSERT ... SELECT with an option behind SELECT that a query inside another cannot have"},
		{"INSERT t() SELECT 1", "INSERT ... SELECT with an empty list of columns"},
		{"INSERT t(a) SELECT x FROM s GROUP BY x ON DUPLICATE KEY UPDATE a=s.b", "ON DUPLICATE KEY UPDATE that may read columns of the query's tables"},
		{"INSERT t(a) SELECT x FROM s LIMIT 1 ON DUPLICATE KEY UPDATE a=y", "ON DUPLICATE KEY UPDATE that may read columns of the query's tables"},
		{"INSERT t(a) SELECT 1 ON DUPLICATE KEY UPDATE a=LAST_INSERT_ID()", "INSERT ... SELECT in a statement that reads LAST_INSERT_ID() behind it"},
		{"INSERT t(a) ((((((((((SELECT 1))))))))))", "INSERT ... SELECT in too many parentheses"},
		{"INSERT t(a) (SELECT 1", "not understood at byte 21: unexpected end of the statement"},
	} {
		p := new(Plan)
		err := p.Read(&Statement{Text: []byte(tt.in), Rules: []*rule.Rule{testRule}, Table: selectTable})
		form, ok := errors.AsType[*Unsupported](err)
		assert.True(t, ok && form.Form == tt.want, "%s: %v, want %q", tt.in, err, tt.want)
	}
	for _, in := range []string{
		"INSERT t(a) SELECT COUNT(*) FROM s WHERE x IN (1,2) AND EXISTS (SELECT 1)", "INSERT t(a) SELECT LAST_INSERT_ID()", "INSERT t(a) SELECT @x",
		"INSERT t(a) SELECT x FROM (SELECT 1) AS d(x)", "INSERT t(a) WITH c(x) AS (SELECT 1), d(y) AS (SELECT 2) SELECT x FROM c", "INSERT t(a) SELECT CAST(x AS DECIMAL(10,2)) FROM s",
		"INSERT t(a) SELECT 1 ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id),a=2", "INSERT t(a) SELECT x FROM s ON DUPLICATE KEY UPDATE a=@y+IF(t.b IS NULL,1,CURRENT_DATE)",
	} {
		readSelect(t, in, Mode{})
	}
}

// checkSelect reports an error when AppendSelect changes more of text than it puts around the
// query.
func checkSelect(p *Plan, text []byte) error {
	q := &p.query
	if can, must := p.CanBeside(); can || must {
		n := numbered(p)
		n.Beside = true
		out := p.AppendSelect(nil, text, n)
		if !bytes.Contains(out, text[q.outer.Start:q.listEnd]) || !bytes.Contains(out, text[q.listEnd:q.inner.End]) || !bytes.HasSuffix(out, text[q.inner.End:]) {
			return errors.New("bytes of the query are lost: " + string(out))
		}
	}
	out := p.AppendSelect(nil, text, numbered(p))
	cut := q.limit
	if cut < 0 {
		cut = q.inner.End
	}
	if !bytes.Contains(out, text[q.inner.Start:cut]) || !bytes.Contains(out, text[cut:q.inner.End]) || !bytes.HasSuffix(out, text[q.outer.End:]) {
		return errors.New("bytes of the query are lost: " + string(out))
	}
	at := 0
	for i, e := range p.edits {
		if int(e.start) < at || int(e.end) > q.outer.Start || e.op != opText || i >= len(p.texts) {
			return errors.New("an edit beside the list of columns")
		}
		at = int(e.end)
	}
	return nil
}
