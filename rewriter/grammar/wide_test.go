package grammar

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/rewriter"
	"idproxy/rule"
)

// TestWideComparisonHasTeeth holds wrong texts against the comparison of ids that are no numbers.
func TestWideComparisonHasTeeth(t *testing.T) {
	const (
		one, two = "'00000000-0000-0001-0000-000000000002'", "'00000000-0000-0003-0000-000000000004'"
		bytes    = "X'00000000000000010000000000000002'"
	)
	ids := [][]uint64{{1, 2, 3, 4}}
	for _, tt := range []struct {
		before, fine string
		binary       bool
		wrong        []string
	}{
		{before: "INSERT INTO t (a) VALUES (1),(2)", fine: "INSERT INTO t (a,`pid`) VALUES (1," + one + "),(2," + two + ")", wrong: []string{
			"INSERT INTO t (a,`pid`) VALUES (1," + two + "),(2," + one + ")",
			"INSERT INTO t (a,`pid`) VALUES (1," + one + "),(2," + one + ")",
			"INSERT INTO t (a,`pid`) VALUES (1," + one + "),(2,NULL)",
			"INSERT INTO t (a,`pid`) VALUES (1," + one + "),(2,IFNULL(NULL," + two + "))",
			"INSERT INTO t (a) VALUES (1),(2)",
			"INSERT INTO t (a,`pid`) VALUES (1,1),(2,3)",
			"INSERT INTO t (a,`pid`) VALUES (" + one + ",1),(" + two + ",2)",
		}},
		{before: "INSERT INTO t (pid,a) VALUES (NULL,1),('x',2)", fine: "INSERT INTO t (pid,a) VALUES (" + one + ",1),('x',2)", wrong: []string{
			"INSERT INTO t (pid,a) VALUES (NULL,1),('x',2)",
			"INSERT INTO t (pid,a) VALUES (NULL,1),(" + one + ",2)",
			"INSERT INTO t (pid,a) VALUES (" + one + ",1),(" + two + ",2)",
			"INSERT INTO t (pid,a) VALUES (" + one + ",1),('y',2)",
			"INSERT INTO t (pid,a) VALUES (" + one + "," + two + "),('x',2)",
			"INSERT INTO t (pid,a) VALUES (LAST_INSERT_ID(1),1),('x',2)",
		}},
		{before: "INSERT INTO t (pid,a) VALUES (f(1),DEFAULT)", fine: "INSERT INTO t (pid,a) VALUES (IFNULL(f(1)," + one + "),DEFAULT)", wrong: []string{
			"INSERT INTO t (pid,a) VALUES (f(1),DEFAULT)",
			"INSERT INTO t (pid,a) VALUES (" + one + ",DEFAULT)",
			"INSERT INTO t (pid,a) VALUES (IFNULL(" + one + ",f(1)),DEFAULT)",
			"INSERT INTO t (pid,a) VALUES (IFNULL(f(2)," + one + "),DEFAULT)",
			"INSERT INTO t (pid,a) VALUES (IFNULL(f(1),'other'),DEFAULT)",
			"INSERT INTO t (pid,a) VALUES (NULLIF(f(1)," + one + "),DEFAULT)",
			"INSERT INTO t (pid,a) VALUES (IFNULL(f(1)," + one + "),IFNULL(DEFAULT," + one + "))",
		}},
		{before: "INSERT INTO t SET pid=DEFAULT", fine: "INSERT INTO t SET pid=" + bytes, binary: true, wrong: []string{
			"INSERT INTO t SET pid=X'00000000000000010000000000000003'",
			"INSERT INTO t SET pid=DEFAULT",
		}},
	} {
		pid := rule.Column{Name: "pid", Text: true, Length: 36}
		if tt.binary {
			pid = rule.Column{Name: "pid", Text: true, Bytes: true, Length: 16}
		}
		s := &rewriter.Statement{
			Text: []byte(tt.before), Rules: []*rule.Rule{{Schema: "*", Table: "*", Column: "pid", IDs: rule.UUID}},
			Table: &rule.Table{Columns: []rule.Column{pid, {Name: "a"}}},
		}
		p := new(rewriter.Plan)
		if err := p.Read(s); err != nil {
			t.Errorf("%s: %v", tt.before, err)
			continue
		}
		got := p.Append(nil, s.Text, ids)
		assert.True(t, string(got) == tt.fine, "%s\n gives %s\n want  %s", tt.before, got, tt.fine)
		for i, after := range append([]string{tt.fine}, tt.wrong...) {
			err := compareTexts(s, p, after, ids)
			assert.True(t, (err == nil) == (i == 0), "%s\n gives %s\n %v", tt.before, after, err)
		}
	}
}
