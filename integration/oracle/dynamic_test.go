package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// dynamicModes are those in which a text reaches the parser through PREPARE as it was written:
// MySQL converts a literal to UTF-8 and takes the result for text in the client's character set.
func dynamicModes(kind servers.Kind) []formMode {
	return slices.DeleteFunc(modesOf(kind), func(m formMode) bool { return kind == servers.MySQL && m.charset != "" && m.charset != "latin1" })
}

// TestOracleDynamic is every form of INSERT, prepared and executed in SQL.
func TestOracleDynamic(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		kind, every := o.native.server.Kind, width.Of(61, 47)
		o.inTurn = !width.Matrix()
		for i, fam := range familiesOf(kind) {
			for j, m := range dynamicModes(kind) {
				if !width.Long && (o.trigger != noTrigger && (i+j)%every != int(o.trigger) || j > 0 && (i+j)%every != 0) {
					continue
				}
				for _, sc := range dynamicScripts(fam, m, setting{kind, o.trigger, 0}) {
					o.run(t, sc)
				}
			}
		}
		least := width.Of(800, 1000)
		assert.True(t, o.statements >= least || o.trigger != noTrigger, "%d executions compared, want %d", o.statements, least)
		t.Logf("compared: %d executions", o.statements)
		for _, c := range wanted(kind) {
			c.charset = "utf8mb4"
			assert.True(t, o.covered[c] != 0 || o.trigger != noTrigger && !width.Long, "nothing ran for %v", c)
		}
		if o.trigger == noTrigger || width.Long {
			o.mustShow(t, sparseIDs, "counts of a question", "update that reads the last insert id")
		}
	})
}

// TestOracleDynamicSeesDifferences is TestOracleSeesDifferences with statements prepared in SQL.
func TestOracleDynamicSeesDifferences(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		o := &oracle{native: newWorld(t, server, native, noTrigger), covered: map[coverage]int{}, deviations: map[string]int{}}
		o.worlds = []*world{newWorld(t, server, bare, noTrigger)}
		found, tried := 0, 0
		o.report = func(string, ...any) { found++ }
		for _, fam := range familiesOf(server.Kind) {
			for i, sc := range dynamicScripts(fam, formModes[0], setting{kind: server.Kind}) {
				if i%width.Of(3, 1) != 0 {
					continue
				}
				var front []step
				for _, st := range sc.steps {
					if st.with == "prepared" || st.with == "set" {
						front = append(front, st)
					}
					mayBeExplicit := st.form != nil && st.form.ids == mixedIDs && len(st.form.rows) == 1
					if st.form == nil || !st.form.generates() || mayBeExplicit {
						continue
					}
					before := found
					tried++
					st.deviation, st.gaps = nil, false
					o.run(t, script{name: fmt.Sprint(tried), options: sc.options, steps: slices.Concat(front, []step{st})})
					assert.True(t, found != before, "no difference seen for %s %s", st.sql, st.with)
					if strings.HasPrefix(st.sql, "EXECUTE p") {
						front = nil
						break // what follows executes the same statement
					}
				}
			}
		}
		t.Logf("compared: %d executions", tried)
		t.Logf("%d differ, as they must", found)
	})
}

// TestOracleDynamicSessions is what else SQL's own prepared statements can do.
func TestOracleDynamicSessions(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		for _, w := range append([]*world{o.native}, o.worlds...) {
			w.observer.Must(t, "CREATE PROCEDURE prepares(q TEXT) BEGIN SET @q = q; PREPARE s FROM @q; END", "CREATE PROCEDURE deallocates() DEALLOCATE PREPARE s")
		}
		for _, sc := range o.share(dynamicSessions()) {
			o.run(t, sc)
		}
		o.mustShow(t, "a procedure takes a name")
	})
}
