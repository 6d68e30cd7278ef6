package rewriter

import (
	"errors"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// wideTable has columns for all that a rule may name.
var wideTable = &rule.Table{Columns: []rule.Column{
	{Name: "pid", Text: true, Length: 36, Padded: true},
	{Name: "a"},
	{Name: "bid", Text: true, Bytes: true, Length: 12, Padded: true},
	{Name: "id", Max: 1<<63 - 1},
}}

var (
	pidRule = &rule.Rule{Schema: "*", Table: "*", Column: "pid", IDs: rule.UUID}
	bidRule = &rule.Rule{Schema: "*", Table: "*", Column: "bid", IDs: rule.ObjectID}
	idRule  = &rule.Rule{Schema: "*", Table: "*", Column: "id"}
)

const (
	u1, u2 = "'00000000-0000-004d-0000-00000000004e'", "'00000000-0000-004f-0000-000000000050'" // planIDs of the first column
	o1     = "X'000000000000043500000000'"
)

func TestWidePlans(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		prepared string // as it is prepared; empty: not looked at
	}{
		{"INSERT INTO t (a) VALUES (1),(2)", "INSERT INTO t (a,`pid`) VALUES (1," + u1 + "),(2," + u2 + ")", "INSERT INTO t (a,`pid`) VALUES (1,?),(2,?)"},
		{"INSERT INTO t VALUES (NULL,1,2,3),(DEFAULT,1,2,3)", "INSERT INTO t VALUES (" + u1 + ",1,2,3),(" + u2 + ",1,2,3)", "INSERT INTO t VALUES (?,1,2,3),(?,1,2,3)"},
		{"INSERT INTO t (pid) VALUES (DEFAULT(pid)),(null)", "INSERT INTO t (pid) VALUES (" + u1 + "),(" + u2 + ")", ""},
		// Values of its own, of whatever kind, also what generates for a number.
		{"INSERT INTO t (pid) VALUES ('x'),(0),('0'),(''),(X'30'),(0x30),(N'x'),(_utf8mb4'x'),('a' 'b'),(1.5),(TRUE),(b'1')", "", ""},
		{"INSERT INTO t (pid,a) VALUES (?,?)", "", "INSERT INTO t (pid,a) VALUES (?,?)"},
		// What may be NULL.
		{"INSERT INTO t (pid,a) VALUES (UUID(),1), ( @x ,2)", "INSERT INTO t (pid,a) VALUES (IFNULL(UUID()," + u1 + "),1), ( IFNULL(@x," + u2 + ") ,2)", "INSERT INTO t (pid,a) VALUES (IFNULL(UUID(),?),1), ( IFNULL(@x,?) ,2)"},
		{"INSERT INTO t SET a=1,pid=f((SELECT 1),',')/* c */,b=2", "INSERT INTO t SET a=1,pid=IFNULL(f((SELECT 1),',')," + u1 + ")/* c */,b=2", "INSERT INTO t SET a=1,pid=IFNULL(f((SELECT 1),','),?)/* c */,b=2"},
		{"INSERT INTO t (pid) VALUES ((NULL)),(NULL+1)", "INSERT INTO t (pid) VALUES (IFNULL((NULL)," + u1 + ")),(IFNULL(NULL+1," + u2 + "))", ""},
		{"INSERT INTO t (pid) VALUES (UNHEX(?))", "INSERT INTO t (pid) VALUES (IFNULL(UNHEX(?)," + u1 + "))", "INSERT INTO t (pid) VALUES (IFNULL(UNHEX(?),?))"},
		{"INSERT INTO t (pid) VALUES (LAST_INSERT_ID()),(-5)", "INSERT INTO t (pid) VALUES (IFNULL(LAST_INSERT_ID()," + u1 + ")),(IFNULL(-5," + u2 + "))", ""},
		{"INSERT INTO t (pid) VALUES ('a' COLLATE utf8mb4_bin)", "INSERT INTO t (pid) VALUES (IFNULL('a' COLLATE utf8mb4_bin," + u1 + "))", ""},
		// Forms.
		{"REPLACE t SET a=1", "REPLACE t SET a=1,`pid`=" + u1, "REPLACE t SET a=1,`pid`=?"},
		{"INSERT INTO t SET pid=NULL ON DUPLICATE KEY UPDATE a=2", "INSERT INTO t SET pid=" + u1 + " ON DUPLICATE KEY UPDATE a=2", ""},
		{"INSERT IGNORE INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE pid=LAST_INSERT_ID(pid)", "INSERT IGNORE INTO t (a,`pid`) VALUES (1," + u1 + ") ON DUPLICATE KEY UPDATE pid=LAST_INSERT_ID(pid)", ""},
		{"INSERT INTO t () VALUES (),()", "INSERT INTO t (`pid`) VALUES (" + u1 + "),(" + u2 + ")", "INSERT INTO t (`pid`) VALUES (?),(?)"},
		{"INSERT INTO t (a) VALUES (LAST_INSERT_ID()) RETURNING pid", "INSERT INTO t (a,`pid`) VALUES (LAST_INSERT_ID()," + u1 + ") RETURNING pid", ""},
		{"INSERT INTO t (pid,a) VALUES (NULL,pid)", "INSERT INTO t (a,`pid`) VALUES (pid," + u1 + ")", ""},
	} {
		for _, prepared := range []bool{false, true} {
			if prepared && tt.prepared == "" || !prepared && strings.Contains(tt.in, "?") {
				continue
			}
			s := &Statement{Text: []byte(tt.in), Rules: []*rule.Rule{pidRule}, Table: wideTable, Mode: Mode{Version: 90704}, Prepared: prepared}
			p := new(Plan)
			assert.Must(t, p.Read(s), tt.in)
			want := tt.want
			if want == "" {
				want = tt.in
			}
			assert.Equal(t, tt.in, string(p.Append(nil, s.Text, planIDs(p))), want)
			assert.True(t, p.Plain && p.NoLastID && !p.ZeroDoubt && !p.Assigned && !p.OwnLastID, "%s: plan %+v", tt.in, p)
			made, err := p.Prepare(s)
			assert.True(t, !prepared || err == nil && string(made.Text) == tt.prepared && made.NoLastID, "%s\n is prepared as %s, %v\n want %s", tt.in, made.Text, err, tt.prepared)
		}
	}
}

// TestWideBesideNumbers: the number feeds the last insert id, whatever the order of the columns.
func TestWideBesideNumbers(t *testing.T) {
	rules := rule.NewList([]rule.Rule{*bidRule, *pidRule, *idRule}).Match([]byte("s"), []byte("t"), false)
	assert.MustTrue(t, len(rules) == 3 && rules[0].Column == "id", "rules %v", rules)
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t (a) VALUES (1),(2)", "INSERT INTO t (a,`pid`,`id`) VALUES (1,PID,77),(2,PID,LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO t (id,a,pid) VALUES (0,LAST_INSERT_ID(),f(1)),(NULL,1,'x')", "INSERT INTO t (a,pid,`id`) VALUES (LAST_INSERT_ID(),IFNULL(f(1),PID),77),(1,'x',LAST_INSERT_ID(77*(`id`<=>`id`))+1)"},
	} {
		s := &Statement{Text: []byte(tt.in), Rules: []*rule.Rule{rules[0], pidRule}, Table: wideTable, Mode: Mode{Version: 90704}}
		p := new(Plan)
		assert.Must(t, p.Read(s), tt.in)
		want := tt.want
		for _, id := range []string{"'00000000-0000-0435-0000-000000000436'", "'00000000-0000-0437-0000-000000000438'"} {
			want = strings.Replace(want, "PID", id, 1)
		}
		got := string(p.Append(nil, s.Text, planIDs(p)))
		assert.True(t, got == want && !p.NoLastID, "%s\n gives %s\n want  %s", tt.in, got, want)
	}
	s := &Statement{Text: []byte("INSERT INTO t (a) VALUES (1)"), Rules: []*rule.Rule{pidRule, bidRule}, Table: wideTable}
	p := new(Plan)
	assert.Must(t, p.Read(s))
	assert.Equal(t, "string(p.Append(nil, s.Text, planIDs(p)))", string(p.Append(nil, s.Text, planIDs(p))), "INSERT INTO t (a,`bid`,`pid`) VALUES (1,"+o1+","+u1+")")
}

func TestWideRefused(t *testing.T) {
	for in, want := range map[string]string{
		"INSERT INTO t (a) SELECT 1":                                  "INSERT ... SELECT into column pid",
		"REPLACE t (a) TABLE s":                                       "REPLACE ... TABLE into column pid",
		"INSERT INTO t (pid,a) VALUES (f(1),pid)":                     "value that reads a generated column",
		"INSERT INTO t (pid) VALUES (/*!50000 f( */ 1 /*!50000 ) */)": faultVersion,
		"INSERT INTO t (pid) VALUES (f":                               "end of the statement",
		"INSERT INTO t (pid) VALUES (f;)":                             "';'",
		"INSERT INTO t (pid) VALUES (f(1":                             "end of the statement",
	} {
		s := &Statement{Text: []byte(in), Rules: []*rule.Rule{pidRule}, Table: wideTable, Mode: Mode{Version: 90704}}
		err := new(Plan).Read(s)
		form, ok := errors.AsType[*Unsupported](err)
		assert.True(t, ok && strings.Contains(form.Form, want), "%s: %v, want %q", in, err, want)
	}
	s := &Statement{Text: []byte("INSERT INTO t (a) VALUES (1)"), Rules: []*rule.Rule{bidRule}, Table: &rule.Table{Columns: []rule.Column{{Name: "bid", Text: true, Length: 12}}}}
	assert.Fails(t, "ids are written into CHAR(12)", new(Plan).Read(s), "")
	load := &Statement{Text: []byte("LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a)"), Rules: []*rule.Rule{idRule, pidRule}, Table: wideTable}
	assert.Fails(t, "LOAD DATA", new(LoadPlan).Read(load), "LOAD DATA into column pid")
}

func TestWideAllocatesNothing(t *testing.T) {
	s := &Statement{Text: []byte("INSERT INTO t (a,pid) VALUES (1,NULL),(2,f(1)),(3,'x')"), Rules: []*rule.Rule{pidRule}, Table: wideTable}
	p, out := new(Plan), make([]byte, 0, 1024)
	assert.Must(t, p.Read(s))
	ids := planIDs(p)
	f := func() {
		assert.Must(t, p.Read(s))
		out = p.Append(out[:0], s.Text, ids)
	}
	assert.Equal(t, "allocations", testing.AllocsPerRun(100, f), 0)
}

// An assignment that goes to the end must not begin in a version comment and end outside, or the
// other way round: half of the comment would go with it.
func TestWideAcrossVersionComments(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t SET pid=DEFAULT,a=pid", "INSERT INTO t SET a=pid,`pid`=" + u1},
		{"INSERT INTO t SET /*!50000 pid=DEFAULT,*/a=pid", "INSERT INTO t SET /*!50000 */a=pid,`pid`=" + u1},
		{"INSERT INTO t SET pid/*!50000 =DEFAULT*/,a=pid", ""},
		{"INSERT INTO t SET pid=/*!50000 DEFAULT*/,a=pid", ""},
	} {
		s := &Statement{Text: []byte(tt.in), Mode: Mode{Version: 90704}, Rules: []*rule.Rule{pidRule}, Table: wideTable}
		p := new(Plan)
		err := p.Read(s)
		if tt.want == "" {
			form, ok := errors.AsType[*Unsupported](err)
			assert.True(t, ok && form.Form == faultVersion, "%s: %v", tt.in, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		assert.Equal(t, tt.in, string(p.Append(nil, s.Text, planIDs(p))), tt.want)
	}
}
