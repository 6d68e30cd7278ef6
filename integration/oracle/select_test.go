package oracle

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// selectOracles runs a test with an oracle for each server and kind of trigger, whose worlds have
// the source.
func selectOracles(t *testing.T, triggers []trigger, test func(*testing.T, *oracle)) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, tr := range triggers {
			t.Run(fmt.Sprintf("%s, %s", server.Kind, tr), func(t *testing.T) {
				t.Parallel()
				o := newOracle(t, server, tr)
				for _, w := range append(slices.Clone(o.worlds), o.native) {
					w.addSource(t)
				}
				test(t, o)
				o.tell(t)
			})
		}
	}
}

// TestOracleSelects is INSERT ... SELECT: every way to say which rows, every outcome of them, every
// way to give the id, in both protocols.
func TestOracleSelects(t *testing.T) {
	triggers := width.Of([]trigger{noTrigger}, []trigger{noTrigger, afterTrigger})
	if width.Long {
		triggers = append(triggers, beforeTrigger)
	}
	selectOracles(t, triggers, func(t *testing.T, o *oracle) {
		used := map[string]bool{}
		o.inTurn = !width.Matrix()
		for i, fam := range selectings {
			if fam.lacks == o.native.server.Kind.String() {
				continue
			}
			for _, binary := range []bool{false, true} {
				for _, sc := range o.selectScripts(&selectings[i], binary, used) {
					o.run(t, sc)
				}
			}
			for _, rows := range []bool{false, true} {
				c := (coverage{fam.name, absentID, rows, ""})
				assert.True(t, o.covered[c] != 0 || fam.name == "SELECT, failing", "nothing ran for %v", c)
			}
		}
		for _, sh := range shapesOf(o.native.server.Kind) {
			assert.True(t, used[sh.name], "no statement ran with %s", sh.name)
		}
	})
}

func shapesOf(kind servers.Kind) []shape {
	return slices.DeleteFunc(slices.Clone(shapes), func(sh shape) bool { return sh.lacks == kind.String() })
}

// selectScripts returns the sessions of a family, one or more for each kind of id, and notes the
// shapes of statements that must not fail.
func (o *oracle) selectScripts(fam *selecting, binary bool, used map[string]bool) []script {
	h := fnv.New64()
	fmt.Fprint(h, fam.name, binary, o.trigger, o.native.server.Kind)
	w := &selectWriter{Rand: rand.New(rand.NewPCG(1, h.Sum64())), family: fam, binary: binary, trigger: o.trigger}
	all := shapesOf(o.native.server.Kind)
	kinds := allIDs
	if fam.tables != nil || fam.name == "SELECT, failing" {
		kinds = []ids{absentID}
	}
	var scripts []script
	serial := 0
	for _, kind := range kinds {
		if kind == defaultID {
			continue // no SELECT gives DEFAULT
		}
		outcomes := fam.rows
		if fam.name == "SELECT" && kind == absentID {
			for range len(all) / len(outcomes) {
				outcomes = append(outcomes, fam.rows...)
			}
		}
		for part := range slices.Chunk(outcomes, 12) {
			sc := script{name: fmt.Sprintf("%s, id %s, binary %t", fam.name, kind, binary), options: fam.options}
			for _, rows := range part {
				if kind == mixedIDs && strings.Contains(rows, "R") {
					continue // MariaDB natively fails to replace a row with an explicit id behind one that generated its own
				}
				serial++
				sh := all[serial%len(all)]
				if fam.update != "" && (rows == "" && strings.HasPrefix(sh.name, "UNION") || sh.name == "DISTINCT") {
					sh = all[0] // the one ends MySQL 9.7, the other does nothing there when it is prepared
				}
				used[sh.name] = used[sh.name] || fam.name != "SELECT, failing" && kind == absentID
				sc.steps = append(sc.steps, w.example(sh, kind, rows)...)
			}
			scripts = append(scripts, sc)
		}
	}
	return scripts
}

// selectReaders are what may stand behind a statement. § makes contents differ.
var selectReaders = [][]string{
	{"SELECT LAST_INSERT_ID(), @@identity"},
	{"SHOW WARNINGS", "INSERT INTO t (a,parent) VALUES ('child§', LAST_INSERT_ID())"},
	{"INSERT INTO mid (a,parent) SELECT 'child§', LAST_INSERT_ID()", "SELECT LAST_INSERT_ID()"},
	{},
	{"SELECT ROW_COUNT()", "CALL reading('call§')"},
	{"INSERT INTO t (a,u,parent) SELECT 'dup§', 1, LAST_INSERT_ID()", "SELECT LAST_INSERT_ID()"},
	{"SHOW COUNT(*) WARNINGS", "SELECT LAST_INSERT_ID()"},
}

// example is a statement between one that leaves an id and one that reads what it left.
func (w *selectWriter) example(sh shape, kind ids, rows string) []step {
	w.serial++
	seed := fmt.Sprintf("seed%d", w.serial)
	steps := []step{{sql: "INSERT INTO t (a) VALUES ('" + seed + "')"}}
	mayFail := w.family.name == "SELECT, failing" || kind == explicitID || kind == mixedIDs
	for i, st := range w.steps(w.statement(sh, kind, rows)) {
		st.gaps = strings.ContainsAny(rows, "SUN") || kind == mixedIDs || i > 0
		st.form = &form{family: &family{name: w.family.name, mayFail: mayFail || i > 0}, ids: kind, rows: rows}
		st.send = withoutIndexFlags(st.send)
		switch {
		case kind == explicitID && len(rows) > 1:
			st.deviation = explicitSelected
		case kind == explicitID && len(rows) == 1 && w.trigger != noTrigger:
			st.deviation = explicitTriggered(7010 + digitOf[rune(rows[0])])
		}
		if i > 0 {
			seed += " again"
			steps = append(steps, step{sql: "INSERT INTO t (a) VALUES ('" + seed + "')"})
		}
		steps = append(steps, st)
		mayFail = mayFail || i > 0
	}
	for _, sql := range selectReaders[w.serial%len(selectReaders)] {
		st := step{sql: strings.ReplaceAll(sql, "§", fmt.Sprint(w.serial))}
		if counts := countsOfQuestion[sql]; counts != nil && strings.ContainsAny(rows, "SUN") && w.family.name != "SELECT, failing" {
			maybe := *counts
			maybe.maybe = true
			st.deviation = &maybe
		} else if strings.HasPrefix(sql, "SHOW") && w.family.name == "SELECT, failing" {
			st.deviation = noDefaultReached
		} else if mayFail {
			st.deviation = failedBatch("t{" + seed + "}")
		}
		steps = append(steps, st)
	}
	return steps
}

// noDefaultReached is what MySQL says besides of a row whose id it did not get to.
var noDefaultReached = &deviation{
	name: "id not reached",
	reason: "where a value that a SELECT gives fits no column, MySQL has a second error among its diagnostics if the id stands behind that " +
		"value and its column has neither a default nor AUTO_INCREMENT; the error that the client gets is the same",
	expectFacet: func(f wireclient.Facet) wireclient.Facet {
		switch {
		case f.Name != "result 0: rows":
		case f.Value == "1":
			f.Value = "2"
		default:
			f.Value += "\nError | 1364 | Field 'id' doesn't have a default value"
		}
		return f
	},
	plainOnly: true,
	maybe:     true,
}

// explicitSelected is what the proxy tells of rows whose explicit ids a SELECT gives.
var explicitSelected = &deviation{
	name: "insert id of explicit ids from a SELECT",
	reason: "INSERT ... SELECT of explicit ids natively shows the id of the last row; the proxy does not see the rows, and shows 0, which is " +
		"what a column without AUTO_INCREMENT gives",
	insertID: "0",
	when: func(native []wireclient.Facet) bool {
		return !slices.ContainsFunc(native, func(f wireclient.Facet) bool {
			return f.Name == "result 0: error" || f == wireclient.Facet{Name: "result 0: insert id", Value: "0"}
		})
	},
}

// explicitTriggered is what the proxy tells of one row with an explicit id that a SELECT gives.
func explicitTriggered(id int) *deviation {
	return &deviation{
		name:     "insert id of an explicit id under a trigger",
		reason:   "a trigger natively takes away the insert id of INSERT ... SELECT with an explicit id; the proxy does not know of it",
		insertID: fmt.Sprint(id),
		when: func(native []wireclient.Facet) bool {
			return slices.Contains(native, wireclient.Facet{Name: "result 0: insert id", Value: "0"}) && !slices.Contains(native, wireclient.Facet{Name: "result 0: affected rows", Value: "0"})
		},
		maybe: true,
	}
}

// withoutIndexFlags takes the flags out of replies that say whether an index was used. The proxy's
// statement reads the rows once more, and so may have other flags than the one that the application
// sent: they are for the server's log of slow queries only.
func withoutIndexFlags(send sender) sender {
	return func(s *wireclient.Session, sql string) ([]wireclient.Reply, error) {
		if send == nil {
			send = func(s *wireclient.Session, sql string) ([]wireclient.Reply, error) { return s.Query(sql) }
		}
		replies, err := send(s, sql)
		for i := range replies {
			replies[i].Status &^= mysql.SERVER_STATUS_NO_GOOD_INDEX_USED | mysql.SERVER_STATUS_NO_INDEX_USED
		}
		return replies, err
	}
}
