package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// preparedScripts are familyScripts with prepared statements: rows of one number share a statement,
// which is executed with one outcome after the other.
func preparedScripts(fam family, m formMode, at setting) []script {
	w := &writer{former: newFormer(m, fmt.Sprint("prepared ", fam.name, at.round)), family: &fam, setting: at}
	b := &binder{writer: w}
	b.serial = b.IntN(len(afterwards))
	var all []script
	for _, kindOfIDs := range or(fam.ids, allIDs) {
		if m.nullGenerates && (kindOfIDs == zeroID || kindOfIDs == defaultID) {
			continue
		}
		sc := script{name: fmt.Sprintf("prepared %s, id %s, %s", fam.name, kindOfIDs, m.name), options: m.options(), steps: m.setup(), caps: b.capabilities()}
		if fam.found {
			sc.options = append(sc.options, foundRows)
		}
		b.caps = sc.caps
		b.beginPrepared()
		sc.steps = append(sc.steps, prepareReaders()...)
		for _, outcomes := range ofOneLength(or(fam.rows, plainRows)) {
			sc.steps = append(sc.steps, b.examples(kindOfIDs, outcomes)...)
		}
		all = append(all, sc)
	}
	return all
}

// ofOneLength groups outcomes by the number of rows.
func ofOneLength(outcomes []string) [][]string {
	groups := make([][]string, 4)
	for _, rows := range outcomes {
		groups[len(rows)] = append(groups[len(rows)], rows)
	}
	return slices.DeleteFunc(groups, func(group []string) bool { return group == nil })
}

// capabilities chooses what a session agrees on.
func (b *binder) capabilities() (caps uint64) {
	for _, flag := range []uint32{mysql.CLIENT_DEPRECATE_EOF, mysql.CLIENT_QUERY_ATTRIBUTES, mysql.CLIENT_OPTIONAL_RESULTSET_METADATA} {
		if b.IntN(2) == 0 && (flag == mysql.CLIENT_DEPRECATE_EOF || b.kind == servers.MySQL) {
			caps |= uint64(flag)
		}
	}
	return caps
}

// beginPrepared forgets the rows and statements of an earlier script.
func (b *binder) beginPrepared() {
	b.begin()
	b.names, b.open = 0, nil
	for _, table := range tableNames {
		for i := range b.rows[table] {
			b.rows[table][i].a = "fixed"
		}
	}
}

// TestOraclePrepared is every form of INSERT as a prepared statement that is executed again and
// again.
func TestOraclePrepared(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		kind, every := o.native.server.Kind, width.Of(64, 15)
		o.inTurn = !width.Matrix()
		if o.trigger != noTrigger {
			every = width.Of(72, 15)
		}
		for i, fam := range familiesOf(kind) {
			for j, m := range modesOf(kind) {
				all := j == 0 && (o.trigger == noTrigger || !o.narrow() && (fam.update || fam.ignore)) // of the default mode
				if !width.Long && !all && (i+j)%every != int(o.trigger) {
					continue
				}
				for _, sc := range preparedScripts(fam, m, setting{kind, o.trigger, 0}) {
					o.run(t, sc)
				}
			}
		}
		least := width.Of(800, 1500)
		assert.True(t, o.statements >= least || o.trigger != noTrigger, "%d executions compared, want %d", o.statements, least)
		t.Logf("compared: %d executions", o.statements)
		for _, c := range wanted(kind) {
			c.charset = "utf8mb4"
			assert.True(t, o.covered[c] != 0 || o.trigger != noTrigger && !width.Long, "nothing ran for %v", c)
		}
		o.mustShow(t, sparseIDs, "counts of a question", "update that reads the last insert id")
	})
}

// TestOracleBoundIDs is an id of every type.
func TestOracleBoundIDs(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		o := newOracle(t, server, noTrigger)
		for i, sc := range boundIDScripts() {
			if i%width.Of(3, 1) == 0 {
				o.run(t, sc)
			}
		}
		o.tell(t)
	})
}

// TestOraclePreparedSeesDifferences is TestOracleSeesDifferences with prepared statements.
func TestOraclePreparedSeesDifferences(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		o := &oracle{native: newWorld(t, server, native, noTrigger), covered: map[coverage]int{}, deviations: map[string]int{}}
		o.worlds = []*world{newWorld(t, server, bare, noTrigger)}
		found, tried := 0, 0
		o.report = func(string, ...any) { found++ }
		for _, fam := range familiesOf(server.Kind) {
			for i, sc := range preparedScripts(fam, formModes[0], setting{kind: server.Kind}) {
				if i%width.Of(3, 1) != 0 {
					continue
				}
				var prepare []step
				for _, st := range sc.steps {
					if st.with == "prepared" {
						prepare = []step{st}
					}
					if st.form == nil || !st.form.generates() || strings.Contains(st.with, "untyped") {
						continue
					}
					if strings.HasPrefix(st.with, "directly") {
						prepare = nil
					}
					before := found
					tried++
					st.deviation, st.gaps = nil, false
					o.run(t, script{name: fmt.Sprint(tried), caps: sc.caps, options: sc.options, steps: slices.Concat(prepare, []step{st})})
					assert.True(t, found != before, "no difference seen for %s %s", st.sql, st.with)
					if prepare == nil {
						break // what follows executes the same statement
					}
				}
			}
		}
		t.Logf("compared: %d executions", tried)
		t.Logf("%d differ, as they must", found)
	})
}
