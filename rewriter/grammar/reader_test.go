package grammar

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/rewriter"
	"idproxy/rule"
)

var anyTable = &rule.Rule{Schema: "*", Table: "*", Column: "id"}

func read(t *testing.T, text string) (*rewriter.Statement, *rewriter.Plan) {
	t.Helper()
	s := &rewriter.Statement{Text: []byte(text), Rules: []*rule.Rule{anyTable}}
	p := new(rewriter.Plan)
	assert.Must(t, p.Read(s), text)
	return s, p
}

// What a wrong rewriter could do must be seen.
func TestComparisonHasTeeth(t *testing.T) {
	table := &rule.Table{Columns: []rule.Column{{Name: "a"}, {Name: "id"}, {Name: "b"}}}
	for _, tt := range []struct {
		before string
		fine   string
		wrong  []string
	}{
		{
			"INSERT INTO t (a) VALUES ('x'),(2)", "INSERT INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)", []string{
				"INSERT INTO u (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO d.t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"REPLACE INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT IGNORE INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT LOW_PRIORITY INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t PARTITION (p) (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t (b,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t (a,`uid`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t (`id`,a) VALUES (77,'x'),(LAST_INSERT_ID(77)+1,2)",
				"INSERT INTO t (a) VALUES ('x'),(2)",
				"INSERT INTO t (a,`id`) VALUES ('x,77',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t (`id`,a) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t (a,`id`) VALUES ('x',77)",
				"INSERT INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1),(3,79)",
				"INSERT INTO t (a,`id`) VALUES ('x',77),(2,78)",
				"INSERT INTO t (a,`id`) VALUES ('x',77),(2,77)",
				"INSERT INTO t (a,`id`) VALUES ('x',78),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t (a,`id`) VALUES ('x',LAST_INSERT_ID(77)),(2,LAST_INSERT_ID(77)+1)",
				"INSERT INTO t (a,`id`) VALUES ('x',LAST_INSERT_ID(77)),(2,78)",
				"INSERT INTO t (a,`id`) VALUES ('x',77),(2,LAST_INSERT_ID(77)+1) ON DUPLICATE KEY UPDATE a=1",
			},
		}, {
			"INSERT INTO t (a,id,b) VALUES (1,NULL,2),(3,900,4)", "INSERT INTO t (a,id,b) VALUES (1,LAST_INSERT_ID(77),2),(3,900,4)", []string{
				"INSERT INTO t (a,id,b) VALUES (1,NULL,2),(3,900,4)",
				"INSERT INTO t (a,id,b) VALUES (1,LAST_INSERT_ID(77),2),(3,LAST_INSERT_ID(77)+1,4)",
				"INSERT INTO t (a,id,b) VALUES (1,LAST_INSERT_ID(77),2),(3,901,4)",
				"INSERT INTO t (a,b,id) VALUES (1,LAST_INSERT_ID(77),2),(3,900,4)",
				"INSERT INTO t (b,a,id) VALUES (2,1,LAST_INSERT_ID(77)),(4,3,900)",
				"INSERT INTO t VALUES (1,LAST_INSERT_ID(77),2),(3,900,4)",
				"INSERT INTO t (a,id,b) VALUES (LAST_INSERT_ID(77),NULL,2),(3,900,4)",
			},
		}, {
			"INSERT INTO t (id,a) VALUES (NULL,LAST_INSERT_ID())", "INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),LAST_INSERT_ID(77))", []string{
				"INSERT INTO t (id,a) VALUES (LAST_INSERT_ID(77),LAST_INSERT_ID())",
				"INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(77),LAST_INSERT_ID())",
			},
		}, {
			"INSERT INTO t (id,a) VALUES (NULL,LAST_INSERT_ID()),(900,1)", "INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),77),(1,900+0*LAST_INSERT_ID(77))", []string{
				"INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),LAST_INSERT_ID(77)),(1,900)",
				"INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),77),(1,901+0*LAST_INSERT_ID(77))",
			},
		}, {
			"INSERT INTO t VALUES (1,0,LAST_INSERT_ID())", "INSERT INTO t (`a`,`b`,`id`) VALUES (1,LAST_INSERT_ID(),LAST_INSERT_ID(77))", []string{
				"INSERT INTO t (`b`,`a`,`id`) VALUES (1,LAST_INSERT_ID(),LAST_INSERT_ID(77))",
				"INSERT INTO t VALUES (1,LAST_INSERT_ID(77),LAST_INSERT_ID())",
			},
		}, {
			"INSERT INTO t SET a=1, id=0, b='x'", "INSERT INTO t SET a=1, id=LAST_INSERT_ID(77), b='x'", []string{
				"INSERT INTO t SET a=1, id=LAST_INSERT_ID(77), b='y'",
				"INSERT INTO t SET a=LAST_INSERT_ID(77), id=0, b='x'",
				"INSERT INTO t (a,id,b) VALUES (1,LAST_INSERT_ID(77),'x')",
			},
		}, {
			"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=2",
			"INSERT INTO t (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=2,`t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`)",
			[]string{
				"INSERT INTO t (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=2",
				"INSERT INTO t (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE `t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`),a=2",
				"INSERT INTO t (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=3,`t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`)",
				"INSERT INTO t (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=2,`t`.`id`=IF(LAST_INSERT_ID(`t`.`a`),`t`.`id`,`t`.`id`)",
				"INSERT INTO t (a,`id`) VALUES (1,77) ON DUPLICATE KEY UPDATE a=2,`t`.`a`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`)",
				"INSERT INTO t (a,`id`) VALUES (1,LAST_INSERT_ID(77)) ON DUPLICATE KEY UPDATE a=2,`t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`)",
				"INSERT INTO t (a,`id`) VALUES (1,77)",
			},
		}, {
			"INSERT INTO t () VALUES (),()", "INSERT INTO t (`id`) VALUES (77),(LAST_INSERT_ID(77)+1)", []string{
				"INSERT INTO t (`a`) VALUES (77),(LAST_INSERT_ID(77)+1)",
				"INSERT INTO t () VALUES (),()",
			},
		},
	} {
		s := &rewriter.Statement{Text: []byte(tt.before), Rules: []*rule.Rule{anyTable}, Table: table, Mode: rewriter.Mode{MariaDB: true}}
		p := new(rewriter.Plan)
		assert.Must(t, p.Read(s), tt.before)
		ids := make([]uint64, p.Columns[0].Generated)
		for i := range ids {
			ids[i] = 77 + uint64(i)
		}
		assert.Equal(t, tt.before, string(p.Append(nil, s.Text, [][]uint64{ids})), tt.fine)
		for i, after := range append([]string{tt.fine}, tt.wrong...) {
			err := compareTexts(s, p, after, [][]uint64{ids})
			assert.True(t, (err == nil) == (i == 0), "%s\n gives %s\n %v", tt.before, after, err)
		}
	}
}

func compareTexts(s *rewriter.Statement, p *rewriter.Plan, after string, ids [][]uint64) error {
	a, err := parse(string(s.Text), s.Mode)
	if err != nil {
		return err
	}
	b, err := parse(after, s.Mode)
	if err != nil {
		return err
	}
	c := comparison{s: s, p: p, ids: ids, before: a, after: b}
	return c.differ()
}

// A plan that says of itself what is not so must be seen.
func TestWrongPlans(t *testing.T) {
	for name, spoil := range map[string]func(*rewriter.Plan){
		"rows":        func(p *rewriter.Plan) { p.Rows++ },
		"generated":   func(p *rewriter.Plan) { p.Columns[0].Generated, p.Columns[0].Explicit = 1, 1 },
		"plain":       func(p *rewriter.Plan) { p.Plain = !p.Plain },
		"ignore":      func(p *rewriter.Plan) { p.Ignore = !p.Ignore },
		"update":      func(p *rewriter.Plan) { p.Update = !p.Update },
		"reads":       func(p *rewriter.Plan) { p.ReadsLastID = false },
		"assignments": func(p *rewriter.Plan) { p.Assigned = true },
	} {
		s := &rewriter.Statement{Text: []byte("INSERT INTO t (a) VALUES (LAST_INSERT_ID()),(2)"), Rules: []*rule.Rule{anyTable}, Mode: rewriter.Mode{MariaDB: true}}
		p := new(rewriter.Plan)
		assert.Must(t, p.Read(s))
		c := comparison{s: s, p: p, ids: [][]uint64{{77, 78}}}
		c.before, _ = parse(string(s.Text), s.Mode)
		c.after, _ = parse(string(p.Append(nil, s.Text, c.ids)), s.Mode)
		assert.Must(t, c.differ())
		spoil(p)
		c = comparison{s: s, p: p, ids: c.ids, before: c.before, after: c.after}
		assert.Fails(t, name+": not seen", c.differ(), "")
	}
}

func TestReaderTrustsShapes(t *testing.T) {
	r := New(100)
	check := func(text string, agreed, unread, differs uint64) {
		t.Helper()
		s, p := read(t, text)
		err := r.Check(s, p)
		if (err != nil) != (differs > r.Differs.Load()) && differs > 0 || r.Agreed.Load() != agreed || r.Unread.Load() != unread {
			t.Errorf("%.80s: %v; agreed %d, unread %d, want %d, %d", text, err, r.Agreed.Load(), r.Unread.Load(), agreed, unread)
		}
	}
	check("INSERT INTO t (a,b) VALUES (1,'x')", 1, 0, 0)
	check("INSERT INTO t (a,b) VALUES (NULL,-2.5),('it''s',DEFAULT)", 1, 0, 0)
	check("insert into T (A,b) values (1 , 0x1F) ", 1, 0, 0)
	check("/* 17 */ INSERT INTO t (a,b) VALUES (1,2) -- x", 1, 0, 0)
	check("INSERT INTO t (a,b) VALUES (1,'x'),(2,NOW())", 2, 0, 0)
	check("INSERT INTO t (a,b) VALUES (2,NOW()),(2,NOW())", 2, 0, 0)
	check("INSERT INTO t (a,b) VALUES (2,f(1))", 3, 0, 0)
	check("INSERT INTO t (a,b) VALUES (2,f(1,2))", 4, 0, 0)
	check("INSERT INTO u (a,b) VALUES (1,'x')", 5, 0, 0)
	check("REPLACE INTO u (a,b) VALUES (1,'x')", 6, 0, 0)
	check("INSERT INTO u (a,id) VALUES (1,NULL)", 7, 0, 0)
	check("INSERT INTO u (a,id) VALUES (1,0)", 7, 0, 0)
	check("INSERT INTO u (a,id) VALUES (1,7)", 8, 0, 0)
	check("INSERT INTO u (a) VALUES (1) RETURNING a", 9, 0, 0)
	check("INSERT INTO u (a) VALUES (2) RETURNING a", 9, 0, 0)
	check("INSERT INTO u (a) VALUES (2) AS n(x) ON DUPLICATE KEY UPDATE a=x", 10, 0, 0)
	check("INSERT INTO u (a) VALUES (1 MEMBER OF)", 10, 1, 0)
	check("INSERT INTO u (a) VALUES (2 MEMBER OF)", 10, 1, 0)
	check("INSERT INTO u (a) VALUES ('"+strings.Repeat("long ", 10000)+"')", 11, 1, 0)
}

func TestReaderRefusesWhatDiffers(t *testing.T) {
	r := New(100)
	s, p := read(t, "INSERT INTO t (a) VALUES (1)")
	p.Rows = 2
	for range 2 {
		err := r.Check(s, p)
		assert.True(t, err != nil && !errors.Is(err, errUnread), "%v for a plan that is wrong", err)
	}
	assert.True(t, r.Differs.Load() == 2 && r.Agreed.Load() == 0, "%d differ, %d agreed", r.Differs.Load(), r.Agreed.Load())
}

func TestReduce(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"INSERT /* x */ INTO t (a) VALUES (1),(2),(3)", "INSERT INTO t (a) VALUES (1),(3)"},
		{"INSERT INTO t (a) VALUES (1), (f(2)), (3), (f(4));", "INSERT INTO t (a) VALUES (1),(f(2)),(f(4));"},
		{"INSERT INTO t (a) VALUES ('" + strings.Repeat("x", 100) + "')", "INSERT INTO t (a) VALUES ('s1')"},
		{"INSERT INTO t (a) VALUES (x'" + strings.Repeat("41", 100) + "')", "INSERT INTO t (a) VALUES (x'1010')"},
		{"INSERT INTO t (a) VALUES ('é\\'')", "INSERT INTO t (a) VALUES ('s1')"},
		{"INSERT INTO t (a) VALUES (1) AS n(x) ON DUPLICATE KEY UPDATE a=n.x", "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=n.x"},
		{"INSERT INTO t (a) VALUES (1) /* x */ RETURNING id AS x;", "INSERT INTO t (a) VALUES (1) ;"},
		{"INSERT INTO t SET a=/**/1 -- x", "INSERT INTO t SET a= 1"},
	} {
		s, p := read(t, tt.in)
		assert.Equal(t, fmt.Sprintf("%.60s", tt.in), strings.TrimSpace(string(p.Reduce(s).Text)), tt.want)
	}
	s := &rewriter.Statement{Text: []byte("INSERT INTO t (a\x95\x5C) VALUES ('\x95\x5C')"), Mode: rewriter.Mode{Charset: rewriter.SJIS}, Rules: []*rule.Rule{anyTable}}
	p := new(rewriter.Plan)
	assert.Must(t, p.Read(s))
	assert.Equal(t, "SJIS", string(p.Reduce(s).Text), "INSERT INTO t (`x61955c`) VALUES ('s1')")
	assert.NoError(t, New(10).Check(s, p))
}

// 64 MiB cost the second reader no more than a small statement.
func TestReaderOfMuch(t *testing.T) {
	text := bytes.Repeat([]byte("(1,'some text that is repeated'),"), 200_000)
	s, p := read(t, "INSERT INTO t (a,b) VALUES "+string(text[:len(text)-1]))
	r := New(100)
	err := r.Check(s, p)
	assert.MustTrue(t, err == nil && r.Agreed.Load() == 1, "%v, agreed %d", err, r.Agreed.Load())
	assert.LessOrEqual(t, "bytes that are left", len(p.Reduce(s).Text), 100)
}

// Nesting and width that servers may refuse must not hold the proxy up, nor end it.
func TestReaderOfDeepAndWide(t *testing.T) {
	const n = 10_000
	for _, values := range []string{
		strings.Repeat("(", n) + "1" + strings.Repeat(")", n), strings.Repeat("NOT ", n) + "1", "1" + strings.Repeat("+1", n),
		strings.Repeat("f(", n) + "1" + strings.Repeat(")", n), strings.Repeat("CASE 1 WHEN ", n) + "1" + strings.Repeat(" THEN 1 END", n),
	} {
		s, p := read(t, "INSERT INTO t (a) VALUES ("+values+")")
		start := time.Now()
		assert.NoError(t, New(1).Check(s, p))
		assert.LessOrEqual(t, fmt.Sprintf("%.40s... took", values), time.Since(start), time.Minute)
	}
	s, p := read(t, "INSERT INTO t (a"+strings.Repeat(",a", n)+") VALUES (1"+strings.Repeat(",1", n)+")")
	start := time.Now()
	err := New(1).Check(s, p)
	assert.True(t, err == nil && time.Since(start) <= time.Minute, "%d columns: %v, took %s", n, err, time.Since(start))
}

func TestReaderIsBoundedAndConcurrent(t *testing.T) {
	r := New(16)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			p := new(rewriter.Plan)
			for i := range 200 {
				s := &rewriter.Statement{Text: fmt.Appendf(nil, "INSERT INTO t%d (a) VALUES (1)", (i+g)%50), Rules: []*rule.Rule{anyTable}}
				assert.NoError(t, p.Read(s))
				assert.NoError(t, r.Check(s, p))
			}
		})
	}
	wg.Wait()
	assert.Equal(t, "places", len(r.shapes), 16)
	assert.True(t, r.Differs.Load() == 0 && r.Unread.Load() == 0 && r.Agreed.Load() >= 50, "agreed %d, unread %d, differs %d", r.Agreed.Load(), r.Unread.Load(), r.Differs.Load())
}

func TestKnownShapesAllocateNothing(t *testing.T) {
	s, p := read(t, "INSERT INTO t (a,b) VALUES (1,'x'),(NOW(),2)")
	r := New(100)
	if n := testing.AllocsPerRun(100, func() {
		assert.Must(t, r.Check(s, p))
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	s := &rewriter.Statement{Text: []byte("INSERT INTO orders (customer, amount, note, created) VALUES (1, 2.5, 'x', NOW())"), Rules: []*rule.Rule{anyTable}}
	p := new(rewriter.Plan)
	assert.Must(b, p.Read(s))
	b.Run("known", func(b *testing.B) {
		r := New(100)
		b.ReportAllocs()
		for b.Loop() {
			assert.Must(b, r.Check(s, p))
		}
	})
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			assert.Must(b, New(1).Check(s, p))
		}
	})
}

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
		assert.Must(t, p.Read(s), tt.before)
		assert.Equal(t, tt.before, string(p.Append(nil, s.Text, ids)), tt.fine)
		for i, after := range append([]string{tt.fine}, tt.wrong...) {
			err := compareTexts(s, p, after, ids)
			assert.True(t, (err == nil) == (i == 0), "%s\n gives %s\n %v", tt.before, after, err)
		}
	}
}
