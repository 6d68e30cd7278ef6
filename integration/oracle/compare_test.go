package oracle

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"idproxy/integration/assert"
	"idproxy/integration/wireclient"
)

// step is one command of a script. {db} in it stands for the world's database.
type step struct {
	sql       string
	binary    bool       // prepared and executed, instead of sent as text
	send      sender     // what is done instead of sending it as text
	known     bool       // the proxy is known to get it wrong
	with      string     // ... as reports show it behind the text
	deviation *deviation // how the proxy's answer is known to differ; nil: it does not
	gaps      bool       // rows that are skipped or updated may leave gaps between the ids of the others
	form      *form      // what it is an example of, for the coverage; nil: of nothing
	pieces    []string   // the kinds of statements in its text
}

// sender does something in a session, for which it is given the step's text.
type sender func(s *wireclient.Session, sql string) ([]wireclient.Reply, error)

// script is what one session does.
type script struct {
	name    string
	lacks   string // the kind of server that does not have it
	options []client.Option
	caps    uint64 // capabilities beyond the usual ones, as far as they are offered
	steps   []step
}

// deviation is a difference to a native column that was decided, not overlooked. A step that names
// one must show exactly that difference: without any the test fails as with another.
type deviation struct {
	name, reason string
	// refused: the proxy answers ERR 1235 with this in its message, and nothing happens.
	refused string
	// sameError: the proxy's error has the same number and state, and another text.
	sameError bool
	// rows: the proxy's result has these rows.
	rows *string
	// insertID is what the proxy's OK packet shows instead of an id.
	insertID string
	// plainOnly: there is none on a column that kept its AUTO_INCREMENT.
	plainOnly bool
	// maybe: it need not show.
	maybe bool
	// fails: the proxy's answer is this error, and nothing happens.
	fails string
	// expect turns what the native column showed into what the proxy must show.
	expect func(nativeFacet string) string
	// expectFacet is expect for one that needs the facet's name.
	expectFacet func(native wireclient.Facet) wireclient.Facet
	// when says by what the native column showed whether there is a deviation; nil: always.
	when func(native []wireclient.Facet) bool
}

// possible is the deviation where it need not show.
func (d deviation) possible() *deviation {
	d.maybe = true
	return &d
}

// sparseIDs is the deviation of steps that say so. It needs no other description: rows are then
// told apart by their order.
const sparseIDs = "gaps between ids"

var longNumber = regexp.MustCompile(`\d{7,20}`)

// text makes messages of two worlds comparable.
func (w *world) text(s string) string {
	return longNumber.ReplaceAllStringFunc(strings.ReplaceAll(s, w.db, "{db}"), func(number string) string { return "{" + w.name(number) + "}" })
}

// facets returns what an application sees of the replies to one step, and then of the tables.
func (w *world) facets(replies []wireclient.Reply, contents string) []wireclient.Facet {
	var all []wireclient.Facet
	for i, r := range replies {
		add := func(name string, value any) {
			all = append(all, wireclient.Facet{Name: fmt.Sprintf("result %d: %s", i, name), Value: fmt.Sprint(value)})
		}
		if r.Err != nil {
			add("error", fmt.Sprintf("%d (%s) %s", r.Err.Code, r.Err.State, w.text(r.Err.Message)))
			continue
		}
		add("affected rows", r.Affected)
		add("insert id", w.name(fmt.Sprint(r.InsertID)))
		add("status", fmt.Sprintf("%#04x", r.Status))
		add("warnings", r.Warnings)
		add("info", r.Info)
		if r.HasRows {
			add("rows", w.rows(r.Rows))
		}
		for _, f := range r.Prepared {
			add(f.Name, w.text(f.Value))
		}
	}
	return append(all, wireclient.Facet{Name: "results", Value: fmt.Sprint(len(replies))}, wireclient.Facet{Name: "contents", Value: contents})
}

func (w *world) rows(rows [][]string) string {
	var lines []string
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, v := range row {
			if cells[i] = w.name(v); cells[i] == v {
				cells[i] = w.text(v)
			}
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	return strings.Join(lines, "\n")
}

// play runs a script in a session of its own and returns the facets of each step, up to one that
// loses the connection.
func (w *world) play(t *testing.T, sc script) [][]wireclient.Facet {
	t.Helper()
	w.reset(t)
	s, err := wireclient.DialWith(sc.caps, w.addr, w.db, sc.options...)
	assert.Must(t, err, fmt.Sprintf("%s, %s", sc.name, w.column))
	defer s.Close()
	var all [][]wireclient.Facet
	for _, st := range sc.steps {
		sql := strings.ReplaceAll(st.sql, "{db}", w.db)
		replies, err := st.run(s, sql)
		if err != nil {
			w.contents = nil // the server may still be at it
			return append(all, []wireclient.Facet{{Name: wireclient.LostConnection, Value: err.Error()}})
		}
		if strings.Contains(sql+st.with, "DELAYED") {
			w.observer.Must(t, "FLUSH TABLES slow") // ends only when the delayed rows are there
		}
		several := len(st.pieces) > 0 // a source gives ids to all tables, a counter to one
		facets := w.facets(replies, w.observe(t, st.gaps || several))
		if st.gaps && !several {
			facets = append(facets, wireclient.Facet{Name: sparseIDs, Value: w.distances})
		}
		all = append(all, facets)
	}
	return all
}

// run does what a step says.
func (st *step) run(s *wireclient.Session, sql string) ([]wireclient.Reply, error) {
	switch {
	case st.send != nil:
		return st.send(s, sql)
	case st.binary:
		return s.Prepared(sql)
	}
	return s.Query(sql)
}

// oracle compares worlds that went through the proxy with the native one.
type oracle struct {
	trigger     trigger
	native      *world
	worlds      []*world
	inTurn      bool // a script is played in one world, the next script in the next one
	scripts     int  // that were played so
	comparisons int  // facets compared
	statements  int  // statements compared that are examples of a form
	known       int  // known failures that were seen
	covered     map[coverage]int
	bytes       int            // compared with those of another program
	steps       int            // steps run in the native world
	errors      int            // steps that failed in the native world
	deviations  map[string]int // by name: steps that showed them
	report      func(format string, args ...any)
}

// run plays scripts one after the other.
func (o *oracle) run(t *testing.T, scripts ...script) {
	t.Helper()
	for _, sc := range scripts {
		o.runOne(t, sc)
	}
}

// runOne plays a script in all worlds and reports every difference that is not a named deviation,
// and every named deviation that did not show.
func (o *oracle) runOne(t *testing.T, sc script) {
	t.Helper()
	if sc.lacks == o.native.server.Kind.String() || len(sc.steps) == 0 {
		return
	}
	want := o.native.play(t, sc)
	last := want[len(want)-1][0]
	assert.MustTrue(t, last.Name != wireclient.LostConnection, "%s, step %d natively: %s: %s", sc.name, len(want), sc.steps[len(want)-1].sql, last.Value)
	o.steps += len(sc.steps)
	for i, facets := range want {
		if strings.HasSuffix(facets[0].Name, "error") {
			o.errors++
			if f := sc.steps[i].form; f != nil && !f.mayFail {
				o.report("%s, step %d: %s %s natively: %s", sc.name, i+1, sc.steps[i].sql, sc.steps[i].with, facets[0].Value)
			}
		}
	}
	worlds := o.columns()
	o.cover(sc, want, len(worlds))
	for _, w := range worlds {
		got := w.play(t, sc)
		if w.other != nil {
			if err := o.referee(t, w, sc); err != nil {
				o.report("%s (%s column), through two programs: %v", sc.name, w.column, err)
			}
		}
		for i, st := range sc.steps {
			d := st.deviation
			if d != nil && d.plainOnly && w.column == kept {
				d = nil
			}
			if i == len(got)-1 && got[i][0].Name == wireclient.LostConnection {
				d = nil
			}
			if diff := o.compare(d, want[i], got[i]); diff != "" && st.knownFailure() {
				o.known++
				break
			} else if diff != "" {
				o.report("%s, step %d (%s column)%s: %s %s\n%s", sc.name, i+1, w.column, sc.before(i), st.sql, st.with, diff)
				break // what follows would differ for no reason of its own
			}
		}
	}
}

// columns are the worlds that a script is played in: all, or another one with each script.
func (o *oracle) columns() []*world {
	if !o.inTurn {
		return o.worlds
	}
	o.scripts++
	at := o.scripts % len(o.worlds)
	return o.worlds[at : at+1]
}

// before tells what led to a step that differs: the form that it is, or that it stands behind.
func (sc script) before(i int) string {
	for j := i; j >= 0; j-- {
		if f := sc.steps[j].form; f != nil {
			return fmt.Sprintf(", rows %s, behind %q", f.rows, sc.steps[j].sql)
		}
	}
	return ""
}

// compare returns what of got is not as want and the deviation say.
func (o *oracle) compare(d *deviation, want, got []wireclient.Facet) string {
	o.comparisons += max(len(want), len(got))
	want, got = o.withoutGaps(want, got)
	if d == nil || d.when != nil && !d.when(want) {
		return wireclient.FacetDiff(want, got)
	}
	if slices.Equal(want, got) {
		if d.maybe {
			return ""
		}
		return fmt.Sprintf("the deviation %q does not show any more: take it out", d.name)
	}
	o.deviations[d.name]++
	if d.refused != "" || d.fails != "" {
		return d.refusal(got)
	}
	if d.sameError {
		return wireclient.FacetDiff(withoutMessage(want), withoutMessage(got))
	}
	expected := make([]wireclient.Facet, len(want))
	for i, f := range want {
		expected[i] = f
		if d.expect != nil {
			expected[i].Value = d.expect(f.Value)
		}
		if d.expectFacet != nil {
			expected[i] = d.expectFacet(f)
		}
		if d.rows != nil && f.Name == "result 0: rows" {
			expected[i].Value = *d.rows
		}
		if d.insertID != "" && f.Name == "result 0: insert id" {
			expected[i].Value = d.insertID
		}
	}
	return wireclient.FacetDiff(expected, got)
}

// withoutGaps takes out the facet in which ids may have gaps between them.
func (o *oracle) withoutGaps(want, got []wireclient.Facet) (w, g []wireclient.Facet) {
	i, j := len(want)-1, len(got)-1
	if want[i].Name != sparseIDs || got[j].Name != sparseIDs {
		return want, got
	}
	if want[i] != got[j] {
		o.deviations[sparseIDs]++
	}
	return want[:i], got[:j]
}

// refusal returns what is wrong with a refusal.
func (d *deviation) refusal(got []wireclient.Facet) string {
	number := cmp.Or(d.fails, "1235 (42000)")
	if e := got[0]; e.Name == "result 0: error" && strings.HasPrefix(e.Value, number) && strings.Contains(e.Value, d.refused) &&
		slices.Contains(got, wireclient.Facet{Name: "contents", Value: ""}) {
		return ""
	}
	return fmt.Sprintf("want ERR %s with %q and unchanged contents, got %q", number, d.refused, got)
}

// withoutMessage cuts errors down to number and state.
func withoutMessage(all []wireclient.Facet) []wireclient.Facet {
	all = slices.Clone(all)
	for i, f := range all {
		if end := strings.Index(f.Value, ")"); strings.HasSuffix(f.Name, "error") && end > 0 {
			all[i].Value = f.Value[:end]
		}
	}
	return all
}

// asks says whether the proxy has to ask which rows of a statement went in, and so what stands
// behind the statement is no longer what the server knows of it.
func (fam *family) asks(kindOfIDs ids, rows string) bool {
	all, none := !strings.ContainsAny(rows, "SUN"), !strings.ContainsAny(rows, "IU")
	switch {
	case !fam.ignore && !fam.update:
		return false
	case fam.update && fam.returns != nil:
		return kindOfIDs != explicitID
	case fam.update && len(rows) > 1:
		return fam.found || fam.ignore && !none || !all && strings.Contains(rows, "I")
	}
	return len(rows) > 1 && !all && !none && kindOfIDs != explicitID
}

// countsOfQuestion are the statements that see that a question was asked, each with the deviation
// that they show then. SHOW WARNINGS does not.
var countsOfQuestion = map[string]*deviation{
	"SELECT ROW_COUNT()":     countOfQuestion("-1"),
	"SHOW COUNT(*) WARNINGS": countOfQuestion("0"),
	"SHOW WARNINGS LIMIT 1":  countOfQuestion(""),
}

func countOfQuestion(value string) *deviation {
	return &deviation{
		name: "counts of a question",
		reason: "which of several rows an INSERT IGNORE or ON DUPLICATE KEY UPDATE put in is asked behind it: ROW_COUNT() and the number of " +
			"warnings are then those of the question",
		rows: &value,
		when: func(native []wireclient.Facet) bool {
			return !slices.Contains(native, wireclient.Facet{Name: "result 0: rows", Value: value})
		},
	}
}

// foundByQuestion is what FOUND_ROWS() tells behind an INSERT in front of which something was
// asked.
var foundByQuestion = &deviation{
	name:   "found rows of a question",
	reason: "what is not known of a session or a table is asked in front of an INSERT: FOUND_ROWS() behind one that fails is of the question",
	expectFacet: func(f wireclient.Facet) wireclient.Facet {
		if f.Name == "result 0: rows" {
			f.Value = "1"
		}
		return f
	},
}

// skippedID is what INSERT IGNORE natively tells of a row that was looked at last and skipped, when
// none got a generated id.
var skippedID = &deviation{
	name: "insert id of a skipped row",
	reason: "where every row that was to get an id was skipped, but another went in, the OK packet natively shows the id that the last one " +
		"would have had; the proxy shows 0",
	expect: func(v string) string {
		if v == unnamed {
			return "0"
		}
		return v
	},
	when: func(native []wireclient.Facet) bool {
		return slices.Contains(native, wireclient.Facet{Name: "result 0: insert id", Value: unnamed})
	},
}

// deviation is the one that an example may show.
func (w *writer) deviation(sql, rows string) *deviation {
	named := false // natively by a row that went in
	for i, outcome := range rows {
		named = named || outcome == 'I' && (w.kinds[i] != explicitID || i == len(rows)-1)
	}
	switch fam := w.family; {
	case !w.several:
		return nil
	case fam.ignore && !fam.update:
		return skippedID
	case fam.update && fam.returns == nil && !named && w.trigger == updateTrigger:
		return hiddenUpdate
	case fam.update && fam.own == nil && fam.returns == nil && !named && readsLastID.MatchString(sql):
		return unnamedUpdate
	}
	return nil
}

// readsLastID finds what would read the id of an updated row.
var readsLastID = regexp.MustCompile(`(?i)last_insert_id|identity`)

// showsID says that a native OK packet has an id.
func showsID(native []wireclient.Facet) bool {
	return !slices.Contains(native, wireclient.Facet{Name: "result 0: insert id", Value: "0"})
}

// unnamedUpdate is what the proxy tells of rows that were updated by a statement whose rows read
// the last insert id.
var unnamedUpdate = &deviation{
	name: "update that reads the last insert id",
	reason: "the rows of such an INSERT ... ON DUPLICATE KEY UPDATE would read the id of the row updated before them if the proxy had the " +
		"server tell it; so the OK packet names no updated row",
	insertID:  "0",
	plainOnly: true,
	when:      showsID,
}

// hiddenUpdate is what the proxy tells of rows that were updated under a trigger.
var hiddenUpdate = &deviation{
	name: "update that a trigger hides",
	reason: "a trigger takes away what the server would tell of a row that was updated; behind several rows the proxy does not ask for it, and " +
		"the OK packet names no updated row",
	insertID:  "0",
	plainOnly: true,
	when:      showsID,
}

// noDefault is what a column without AUTO_INCREMENT makes of DEFAULT where 0 is a value.
var noDefault = &deviation{
	name:      "zero by default",
	reason:    "under NO_AUTO_VALUE_ON_ZERO a native column stores 0 for DEFAULT; one without AUTO_INCREMENT has no default, and the server says so",
	fails:     "1364 (HY000)",
	plainOnly: true,
}

// warningOfID is that of an id that is no number and generates: the proxy puts the generated one in
// its place.
func warningOfID() *deviation {
	return &deviation{
		name:   "warning of an id that is no number",
		reason: "where '' or 'abc' as an id generates with a warning, the proxy puts the id in its place, and the server has nothing to warn of",
		expectFacet: func(f wireclient.Facet) wireclient.Facet {
			switch {
			case f.Name == "result 0: warnings":
				f.Value = "0"
			case f.Name == "result 0: rows":
				f.Value = ""
			case f.Name == "result 0: info":
				f.Value = strings.Replace(f.Value, "Warnings: 1", "Warnings: 0", 1)
			}
			return f
		},
	}
}

// notAnAssignment is := in the SET form, beside an expression for the id.
var notAnAssignment = &deviation{
	name:    "not an assignment",
	reason:  "in the SET form := is another =, and is taken for an assignment to a variable that the expression may read",
	refused: "expression for a generated column in a statement that sets what it reads",
}

// cutID is what INSERT IGNORE makes of an id with a number at its beginning.
var cutID = &deviation{
	name:      "id that IGNORE cuts short",
	reason:    "INSERT IGNORE takes 12 for '12x' as an id; the proxy does not read that number and tells none",
	insertID:  "0",
	plainOnly: true,
}

// delayedTrigger is what becomes of DELAYED where the server does not heed it.
var delayedTrigger = &deviation{
	name:   "DELAYED behind a trigger",
	reason: "MariaDB runs INSERT DELAYED into a table with a trigger as a plain INSERT; the proxy takes it for delayed, and tells no id",
	expectFacet: func(f wireclient.Facet) wireclient.Facet {
		switch {
		case f.Name == "result 0: insert id":
			f.Value = "0"
		case f.Name == "result 0: rows":
			f.Value = "slow{seed}"
		}
		return f
	},
	when: func(native []wireclient.Facet) bool {
		return slices.ContainsFunc(native, func(f wireclient.Facet) bool { return f.Value == "slow{in|3}" })
	},
}

// knownFailures is what the proxy is known to get wrong, by name. To be emptied.
var knownFailures = map[string]func(f *form, sql string) bool{
	// An AFTER UPDATE trigger, and CLIENT_FOUND_ROWS: a row that stays as it is is taken for one that
	// went in.
	"found row that a trigger hides": func(f *form, _ string) bool { return f.trigger == updateTrigger && f.found && f.rows == "N" },
}

// knownFailure says whether a step is one of them.
func (st *step) knownFailure() bool {
	for _, match := range knownFailures {
		if st.form != nil && match(st.form, st.sql) {
			return true
		}
	}
	return st.known
}
