package oracle

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// newOracle makes a native world and, behind one proxy, a world for each of the other columns.
func newOracle(t *testing.T, server *servers.Server, tr trigger) *oracle {
	t.Helper()
	o := &oracle{trigger: tr, native: newWorld(t, server, native, tr), covered: map[coverage]int{}, deviations: map[string]int{}, report: t.Errorf}
	if program := os.Getenv(refereeVariable); program != "" {
		o.compareWith(t, program, wireclient.SourceStart)
		return o
	}
	worlds, config := worldsWith(t, server, server.Addr, wireclient.SourceStart, tr)
	proxy := harness.StartProxy(t, config)
	for _, w := range worlds {
		w.addr = proxy.Addr("a")
	}
	o.worlds = worlds
	return o
}

// worldsWith makes a world for each of the columns behind a proxy, and returns them with the configuration of that. upstream is
// the server, or what stands in front of it; ids begin at start.
func worldsWith(t *testing.T, server *servers.Server, upstream string, start int, tr trigger) (all []*world, config string) {
	t.Helper()
	rules := ""
	for _, c := range []column{plain, kept} {
		w := newWorld(t, server, c, tr)
		all = append(all, w)
		rules += fmt.Sprintf(`{table: "%s.*", column: id, source: ids}, {table: %[1]s.two, column: id2, source: second}, `, w.db)
	}
	sources := fmt.Sprintf("ids: {segment: {start: %d}}, second: {segment: {start: %d}}", start, wireclient.SecondSourceStart)
	return all, harness.OneListenerWith(upstream, sources, rules)
}

// all are the worlds of the oracle.
func (o *oracle) all() []*world {
	all := append([]*world{o.native}, o.worlds...)
	for _, w := range o.worlds {
		if w.other != nil {
			all = append(all, w.other)
		}
	}
	return all
}

// narrow reports whether the oracle runs a part of the scripts: those with triggers do, unless the
// run is a wide one.
func (o *oracle) narrow() bool { return o.trigger != noTrigger && !width.Matrix() }

// share returns the scripts to run: in a narrow run each kind of trigger has another sixth of them.
func (o *oracle) share(scripts []script) []script {
	if !o.narrow() {
		return scripts
	}
	var all []script
	for i := int(o.trigger) % 6; i < len(scripts); i += 6 {
		all = append(all, scripts[i])
	}
	return all
}

// mustShow fails the test when a deviation it is known for never appeared.
func (o *oracle) mustShow(t *testing.T, names ...string) {
	t.Helper()
	if o.narrow() {
		return // the part may be one that does not show it
	}
	for _, name := range names {
		assert.True(t, o.deviations[name] != 0, "the deviation %q did not show", name)
	}
}

// tell logs what was compared.
func (o *oracle) tell(t *testing.T) {
	t.Helper()
	t.Logf("compared: %d steps, %d facets", o.steps, o.comparisons)
	if o.worlds[0].other != nil {
		t.Logf("compared: %d bytes", o.bytes)
		o.compareCounts(t)
	}
	t.Logf("deviations shown: %v, known failures: %d, failed natively: %d", o.deviations, o.known, o.errors)
}

// everywhere runs a test with an oracle for each server and kind of trigger. In a narrow run one
// server has triggers, of one kind: by their names, half of the tests have them on MariaDB.
func everywhere(t *testing.T, test func(*testing.T, *oracle)) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, tr := range []trigger{noTrigger, beforeTrigger, afterTrigger} {
			onMariaDB := len(t.Name())%2 == 0
			if tr != noTrigger && !width.Matrix() && ((tr == beforeTrigger) != onMariaDB || (server.Kind == servers.MariaDB) != onMariaDB) {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s", server.Kind, tr), func(t *testing.T) {
				t.Parallel()
				o := newOracle(t, server, tr)
				test(t, o)
				if o.steps > 0 {
					o.tell(t)
				}
			})
		}
	}
}

// TestOracleForms is every form of INSERT that gets ids, each behind another, so that every last
// insert id is read by what follows.
func TestOracleForms(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		for j, m := range modesOf(o.native.server.Kind) {
			if !width.Matrix() && j > 0 && j%3 != int(o.trigger)%3 {
				continue
			}
			m.rounds = width.Of(1, m.rounds)
			for i, forms := range slices.Collect(slices.Chunk(generateForms(m), 12)) {
				sc := script{name: fmt.Sprintf("%s %d", m.name, i), options: m.options(), steps: m.setup()}
				for _, form := range forms {
					sc.steps = append(sc.steps, step{sql: form})
					sc.steps = append(sc.steps, probes(i)...)
				}
				o.run(t, sc)
			}
		}
		assert.True(t, o.errors <= 0, "%d forms failed natively: they show nothing", o.errors)
	})
}

// TestOracleFamilies is every form of text INSERT, with every way to give the id and every outcome
// of its rows, in every mode; with triggers in some.
func TestOracleFamilies(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		kind, rounds := o.native.server.Kind, 1
		o.inTurn = !width.Matrix()
		if width.Long {
			rounds = 3
		}
		for round := range rounds {
			o.families(t, round)
		}
		for _, c := range wanted(kind) {
			if !width.Matrix() {
				c.charset = "utf8mb4"
			}
			assert.True(t, o.covered[c] != 0 || o.trigger != noTrigger && !width.Long, "nothing ran for %v", c)
		}
		least := width.Of(300, 1500)
		assert.True(t, o.statements >= least, "%d statements compared, want %d", o.statements, least)
		o.mustShow(t, sparseIDs, "counts of a question", "update that reads the last insert id")
		if o.trigger == noTrigger {
			o.mustShow(t, "insert id of a skipped row")
		}
	})
}

// families runs the forms of a server.
func (o *oracle) families(t *testing.T, round int) {
	t.Helper()
	kind := o.native.server.Kind
	for i, fam := range familiesOf(kind) {
		for j, m := range modesOf(kind) {
			switch at := i + j; {
			case width.Long || width.Matrix() && (o.trigger == noTrigger || j == 0 || at%8 == int(o.trigger)):
			case width.Matrix() || at%20 != int(o.trigger) && (j > 0 || o.trigger != noTrigger):
				continue
			}
			o.run(t, familyScripts(fam, m, setting{kind, o.trigger, round})...)
		}
	}
}

// TestOracleUpdateTriggers is ON DUPLICATE KEY UPDATE where a trigger loses the id that it tells.
func TestOracleUpdateTriggers(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		o := newOracle(t, server, updateTrigger)
		for _, fam := range familiesOf(server.Kind) {
			if fam.update {
				o.run(t, familyScripts(fam, formModes[0], setting{kind: server.Kind, trigger: updateTrigger})...)
			}
		}
		o.mustShow(t, "update that a trigger hides")
		o.tell(t)
	})
}

// TestOracleTexts is texts of several statements, of which some change what the next ones mean.
func TestOracleTexts(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		o.run(t, o.share(textScripts())...)
		for _, p := range pieces {
			for _, later := range []bool{false, true} {
				assert.True(t, o.covered[coverage{family: p.kind, several: later}] != 0 || p.kind == "fail" || o.narrow(), "no text ran with %q in it, behind another: %t", p.kind, later)
			}
		}
	})
}

// TestOracleSessions is sessions of the other forms.
func TestOracleSessions(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		o.run(t, o.share(formScripts())...)
		o.mustShow(t, "warning of an id that is no number", "id that IGNORE cuts short", "zero by default", "not an assignment")
		if o.native.server.Kind == servers.MariaDB {
			o.mustShow(t, "DELAYED behind a trigger")
		}
	})
}

// probes are read-only steps behind a form; every third script has none.
func probes(i int) []step {
	switch i % 3 {
	case 0:
		return nil
	case 1:
		return []step{{sql: "SHOW WARNINGS"}, {sql: "SELECT LAST_INSERT_ID(), @@identity, @@SESSION.last_insert_id"}}
	}
	return []step{{sql: "SELECT ROW_COUNT(), LAST_INSERT_ID()"}, {sql: "SELECT @@identity", binary: true}}
}

// TestOracleScripts is what needs more than one statement to be said.
func TestOracleScripts(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		o.run(t, o.share(append(plainScripts(), deviatingScripts()...))...)
		o.mustShow(t, "not filled yet", "diagnostics first", "quoted syntax", "found rows of a question")
	})
}

// TestOracleFailures is every way to fail, each followed by every way to read the last insert id
// and the diagnostics.
func TestOracleFailures(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		o.run(t, o.share(failureScripts(o.trigger))...)
		o.mustShow(t, "failed batch")
	})
}

// differs plays steps in a session like the script's. A difference must show at the last of them.
type differs func(like script, steps ...step)

// seeDifferences feeds an oracle pairs that must differ: the same scripts, against a plain column
// that no proxy stands in front of.
func seeDifferences(t *testing.T, what string, test func(servers.Kind, differs)) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		o := &oracle{native: newWorld(t, server, native, noTrigger), covered: map[coverage]int{}, deviations: map[string]int{}}
		o.worlds = []*world{newWorld(t, server, bare, noTrigger)}
		found, tried := 0, 0
		o.report = func(string, ...any) { found++ }
		test(server.Kind, func(like script, steps ...step) {
			before, last := found, &steps[len(steps)-1]
			tried++
			last.deviation, last.gaps = nil, false
			like.name, like.steps = fmt.Sprint(tried), steps
			o.run(t, like)
			assert.True(t, found != before, "no difference seen for %s %s", last.sql, last.with)
		})
		t.Logf("compared: %d %s", tried, what)
		t.Logf("%d differ, as they must", found)
	})
}

// familyWriter writes the scripts of a family in a mode.
type familyWriter func(family, formMode, setting) []script

// some are scripts of all families in the default mode: in a narrow run a third of them.
func (write familyWriter) some(kind servers.Kind) (all []script) {
	for _, fam := range familiesOf(kind) {
		for i, sc := range write(fam, formModes[0], setting{kind: kind}) {
			if i%width.Of(3, 1) == 0 {
				all = append(all, sc)
			}
		}
	}
	return all
}

// TestOracleSeesDifferences is the control of the tests of forms and families.
func TestOracleSeesDifferences(t *testing.T) {
	seeDifferences(t, "forms", func(kind servers.Kind, differ differs) {
		m := formModes[0]
		m.rounds = width.Of(1, m.rounds)
		for _, form := range generateForms(m) {
			differ(script{}, step{sql: form})
		}
		for _, sc := range familyWriter(familyScripts).some(kind) {
			for _, st := range sc.steps {
				if st.form != nil && st.form.generates() {
					differ(script{}, step{sql: st.sql})
				}
			}
		}
	})
}

// named is a session on one world of an oracle, for tests that know what each number must be.
type named struct {
	*wireclient.Session
	tb testing.TB
}

// inserted runs an INSERT and returns the insert id of its OK packet.
func (n named) inserted(sql string) uint64 {
	n.tb.Helper()
	return n.Must(n.tb, sql).InsertID
}

// numbers returns the first column of a result.
func (n named) numbers(sql string) []uint64 {
	n.tb.Helper()
	var all []uint64
	for _, row := range n.Must(n.tb, sql).Rows {
		id, ok := wireclient.ParseID(row[0])
		assert.MustTrue(n.tb, ok, "%s: %q is no number", sql, row[0])
		all = append(all, id)
	}
	return all
}

func (n named) want(what string, got, want any) {
	n.tb.Helper()
	assert.True(n.tb, fmt.Sprint(got) == fmt.Sprint(want), "%s: %v, want %v", what, got, want)
}

func (n named) lastID() uint64 {
	n.tb.Helper()
	return n.numbers("SELECT LAST_INSERT_ID()")[0]
}

// TestLastInsertID runs the cases whose numbers are known beforehand natively and through the proxy
// on both kinds of column, with every kind of trigger.
func TestLastInsertID(t *testing.T) {
	tests := []struct {
		name string
		test func(named, *world, trigger)
	}{
		{"batch", insertIDOfBatch},
		{"explicit ids", insertIDOfExplicitIDs},
		{"behind a failure", lastIDBehindFailure},
		{"triggers see ids", triggersSeeIDs},
		{"explicit id between", explicitIDBetween}, // last: it moves native counters far up
	}
	everywhere(t, func(t *testing.T, o *oracle) {
		for _, w := range append([]*world{o.native}, o.worlds...) {
			for _, tt := range tests {
				t.Run(w.column.String()+", "+tt.name, func(t *testing.T) {
					w.reset(t)
					tt.test(named{wireclient.Open(t, w.addr, w.db), t}, w, o.trigger)
				})
			}
		}
	})
}

// insertIDOfBatch is the plain case: n rows get consecutive ids, the OK packet and LAST_INSERT_ID()
// name the first, and what the statement itself reads is the value from before, in each of its rows
// (A). Any trigger makes the server report 0 or the last id instead (B1).
func insertIDOfBatch(n named, _ *world, _ trigger) {
	seed := n.inserted("INSERT INTO t (a) VALUES ('seed')")
	first := n.inserted("INSERT INTO t (a,parent) VALUES ('x', LAST_INSERT_ID()), ('y', @@identity), ('z', (SELECT LAST_INSERT_ID()))")
	n.want("last insert id", n.lastID(), first)
	n.want("ids", n.numbers("SELECT id FROM t WHERE a IN ('x','y','z') ORDER BY a"), []uint64{first, first + 1, first + 2})
	n.want("parents", n.numbers("SELECT parent FROM t WHERE a IN ('x','y','z')"), []uint64{seed, seed, seed})
	one := n.inserted("REPLACE INTO mid VALUES ('x', DEFAULT, LAST_INSERT_ID(), NULL, NULL, NULL, NULL)")
	n.want("id", n.numbers("SELECT id FROM mid WHERE a = 'x'"), []uint64{one})
	n.want("parent", n.numbers("SELECT parent FROM mid WHERE a = 'x'"), []uint64{first})
	assert.True(n.tb, !slices.Contains([]uint64{0, first, first + 2}, one) && seed != 0 && first != seed, "insert ids %d, %d, %d", seed, first, one)
}

// insertIDOfExplicitIDs: the OK packet shows the id of the last row, LAST_INSERT_ID() stays (B3).
func insertIDOfExplicitIDs(n named, _ *world, _ trigger) {
	seed := n.inserted("INSERT INTO t (a) VALUES ('seed')")
	n.want("one", n.inserted("INSERT INTO t (id,a) VALUES (500,'x')"), 500)
	n.want("two", n.inserted("INSERT INTO t (id,a) VALUES (501,'x'), ('503','y')"), 503)
	n.want("below zero", n.inserted("INSERT INTO t (id,a) VALUES (-5,'x')"), strconv.FormatUint(1<<64-5, 10))
	n.want("replaced", n.inserted("REPLACE INTO t (id,a) VALUES (500,'y')"), 500)
	n.want("last insert id", n.lastID(), seed)
	mixed := n.inserted("INSERT INTO t (id,a) VALUES (600,'m1'), (NULL,'m2'), (700,'m3')")
	n.want("mixed", n.numbers("SELECT id FROM t WHERE a = 'm2'"), []uint64{mixed})
	n.want("last insert id behind mixed rows", n.lastID(), mixed)
}

// lastIDBehindFailure is the idiom that a wrong value breaks without a word: a child that fails is
// tried again, and still has to find its parent (B5).
func lastIDBehindFailure(n named, w *world, _ trigger) {
	parent := n.inserted("INSERT INTO t (a) VALUES ('parent')")
	n.want("error", n.Fails(n.tb, "INSERT INTO t (a,u,parent) VALUES ('child', 1, LAST_INSERT_ID())").Code, 1062)
	n.inserted("INSERT INTO t (a,u,parent) VALUES ('child', 7, LAST_INSERT_ID())")
	n.want("parent of the child", n.numbers("SELECT parent FROM t WHERE a = 'child'"), []uint64{parent})
}

// explicitIDBetween is a deviation: an explicit id above the counter moves the native counter
// within the statement, where a source keeps the generated ids consecutive (B4). Its uniqueness
// matters more than its order.
func explicitIDBetween(n named, w *world, _ trigger) {
	const high = 900_000_000_000
	first := n.inserted(fmt.Sprintf("INSERT INTO t (id,a) VALUES (NULL,'one'), (%d,'two'), (NULL,'three')", int64(high)))
	third := uint64(high + 1)
	if w.column != native {
		third = first + 1
	}
	n.want("ids", n.numbers("SELECT id FROM t WHERE a <> 'fixed' ORDER BY FIELD(a,'one','two','three')"), []uint64{first, high, third})
	n.want("last insert id", n.lastID(), first)
}

// triggersSeeIDs is a deviation: natively a BEFORE trigger sees 0 in NEW.id and every trigger sees
// the LAST_INSERT_ID() from before; behind the proxy they see the row's id, and from the last
// generated row on the statement's first (B2).
func triggersSeeIDs(n named, w *world, tr trigger) {
	when := map[trigger]string{noTrigger: "BEFORE", beforeTrigger: "BEFORE", afterTrigger: "AFTER"}[tr]
	w.observer.Must(n.tb, "DROP TRIGGER IF EXISTS t_before", "DROP TRIGGER IF EXISTS t_after",
		"CREATE TABLE seen (k INT AUTO_INCREMENT PRIMARY KEY, id BIGINT, last BIGINT)",
		"CREATE TRIGGER sees "+when+" INSERT ON t FOR EACH ROW INSERT INTO seen (id, last) VALUES (NEW.id, LAST_INSERT_ID())")
	seed := n.inserted("INSERT INTO tail (a) VALUES ('seed')")
	first := n.inserted("INSERT INTO t (a) VALUES ('x'), ('y')")
	ids, last := []uint64{first, first + 1}, []uint64{seed, seed}
	switch {
	case w.column != native:
		last[1] = first
	case when == "BEFORE":
		ids = []uint64{0, 0}
	}
	n.want("NEW.id in "+when, n.numbers("SELECT id FROM seen ORDER BY k"), ids)
	n.want("LAST_INSERT_ID() in "+when, n.numbers("SELECT last FROM seen ORDER BY k"), last)
	n.want("last insert id", n.lastID(), first)
}

// The servers do without what takes their time and no INSERT shows.
func TestMain(m *testing.M) {
	harness.Main(m, "--innodb-stats-persistent=OFF", "--innodb-stats-auto-recalc=OFF", "--innodb-flush-log-at-trx-commit=0")
}
