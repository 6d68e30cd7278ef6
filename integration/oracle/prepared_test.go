package oracle

import (
	"fmt"
	"math"
	"regexp"
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

// preparedScripts are familyScripts with prepared statements: rows of one number share a statement,
// which is executed with one outcome after the other.
func preparedScripts(fam family, m formMode, at setting) []script {
	b := &binder{writer: newWriter("prepared ", fam, m, at)}
	return b.sessions("prepared ", func(sc *script, kindOfIDs ids) {
		sc.caps = b.capabilities()
		b.caps = sc.caps
		b.beginPrepared()
		sc.steps = append(sc.steps, prepareReaders()...)
		for _, outcomes := range ofOneLength(or(fam.rows, plainRows)) {
			sc.steps = append(sc.steps, b.examples(kindOfIDs, outcomes)...)
		}
	})
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
		o.inTurn = width.Of(true, o.trigger != noTrigger && !width.Long)
		if o.trigger != noTrigger {
			every = width.Of(72, 15)
		}
		for i, fam := range familiesOf(kind) {
			for j, m := range modesOf(kind) {
				all := j == 0 && (o.trigger == noTrigger || !o.narrow() && (fam.update || fam.ignore)) // of the default mode
				if !width.Long && !all && (i+j)%every != int(o.trigger) {
					continue
				}
				o.run(t, preparedScripts(fam, m, setting{kind, o.trigger, 0})...)
			}
		}
		least := width.Of(800, 1500)
		o.executed(t, least)
		o.mustShow(t, sparseIDs, "counts of a question", "update that reads the last insert id")
	})
}

// executed reports that fewer statements were executed than at least, or none of some form.
func (o *oracle) executed(t *testing.T, least int) {
	t.Helper()
	assert.True(t, o.statements >= least || o.trigger != noTrigger, "%d executions compared, want %d", o.statements, least)
	t.Logf("compared: %d executions", o.statements)
	for _, c := range wanted(o.native.server.Kind) {
		c.charset = "utf8mb4"
		assert.True(t, o.covered[c] != 0 || o.trigger != noTrigger && !width.Long, "nothing ran for %v", c)
	}
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
	seeDifferences(t, "executions", func(kind servers.Kind, differ differs) {
		for _, sc := range familyWriter(preparedScripts).some(kind) {
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
				differ(script{caps: sc.caps, options: sc.options}, slices.Concat(prepare, []step{st})...)
				if prepare == nil {
					break // what follows executes the same statement
				}
			}
		}
	})
}

// boundIDs are ids of every type that a client may send: those that generate, and those that do
// not.
func boundIDs() []wireclient.Argument {
	ids := []wireclient.Argument{
		wireclient.Null(mysql.MYSQL_TYPE_LONGLONG), wireclient.Null(mysql.MYSQL_TYPE_VAR_STRING), wireclient.Null(mysql.MYSQL_TYPE_NULL),
		wireclient.Null(mysql.MYSQL_TYPE_DATE), wireclient.Null(mysql.MYSQL_TYPE_DOUBLE), wireclient.Null(mysql.MYSQL_TYPE_BLOB),
	}
	for _, kind := range wireclient.IntegerTypes {
		ids = append(ids, wireclient.Integer(kind, 0), wireclient.Unsigned(kind, 0))
	}
	for i, kind := range wireclient.IntegerTypes {
		n := int64(10 + 2*i)
		ids = append(ids, wireclient.Integer(kind, n), wireclient.Unsigned(kind, uint64(n+1)), wireclient.Integer(kind, -n))
	}
	ids = append(ids, wireclient.Unsigned(mysql.MYSQL_TYPE_TINY, 200), wireclient.Unsigned(mysql.MYSQL_TYPE_SHORT, 50_000), wireclient.Unsigned(mysql.MYSQL_TYPE_LONGLONG, 1<<63+5),
		wireclient.Unsigned(mysql.MYSQL_TYPE_LONGLONG, math.MaxUint64))
	for _, kind := range append(wireclient.TextTypes, mysql.MYSQL_TYPE_NEWDECIMAL, mysql.MYSQL_TYPE_LONG_BLOB) {
		ids = append(ids, wireclient.TextOf(kind, "0"), wireclient.TextOf(kind, "0.3"), wireclient.TextOf(kind, ""), wireclient.TextOf(kind, ownDigits(kind)))
	}
	for _, s := range []string{
		"00", "-0", "+0", " 0", "0 ", "0.0", "0.4", "0.5", "-0.4", "-0.5", "0e0", "1e-1", "41", "-42", "+43", " 44", "45 ", "046", "47.4", "47.5", "4.9e1",
		"0x10", "abc", "50x", "NULL", "DEFAULT", "51.6e0", "99999999999999999999", "\x00", "5\x00", "\t52", "53\n", ".4", ".6", "5.4e1",
	} {
		ids = append(ids, wireclient.Varchar(s), wireclient.InPieces(mysql.MYSQL_TYPE_VAR_STRING, s))
	}
	for _, s := range []string{"0.4", "0.5", "-0.4", "-0.5", "61", "62.4", "62.5", "-63", "abc", " 0"} {
		ids = append(ids, wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, s))
	}
	for _, f := range []float64{0, math.Copysign(0, -1), 0.4, -0.4, 0.5, -0.5, 0.6, 1.5, 2.5, 71, 72.4, -73, 1e19, math.NaN(), math.Inf(1)} {
		ids = append(ids, wireclient.Double(f))
	}
	for _, f := range []float32{0, 0.4, 0.5, 1.5, 75, 76.4, -77} {
		ids = append(ids, wireclient.Float(f))
	}
	return append(ids,
		wireclient.Moment(mysql.MYSQL_TYPE_DATE, "0002-02-03", 2, 0, 2, 3), wireclient.Moment(mysql.MYSQL_TYPE_DATE, "zero"),
		wireclient.Moment(mysql.MYSQL_TYPE_DATETIME, "0002-02-03 04:05:06", 2, 0, 2, 3, 4, 5, 6), wireclient.Moment(mysql.MYSQL_TYPE_DATETIME, "zero"),
		wireclient.Moment(mysql.MYSQL_TYPE_TIMESTAMP, "zero"), wireclient.Moment(mysql.MYSQL_TYPE_TIME, "zero"),
		wireclient.Moment(mysql.MYSQL_TYPE_TIME, "01:02:03", 0, 0, 0, 0, 0, 1, 2, 3))
}

// ownDigits is an id of its own for a type.
func ownDigits(kind byte) string {
	return string([]byte{'3', '0' + kind/100, '0' + kind/10%10, '0' + kind%10})
}

// boundIDScripts are sessions in which one of them comes twice, the second time without its type.
func boundIDScripts() []script {
	var all []script
	for _, mode := range []string{"SET sql_mode = DEFAULT", "SET sql_mode = ''", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'"} {
		for _, id := range boundIDs() {
			shown := id.String()
			if mode == "SET sql_mode = ''" && beyond.MatchString(shown) {
				continue // the greatest id would be stored, and natively there would be no more
			}
			first := executeStep("in", wireclient.Varchar("x"), id)
			again := executionStep("in", wireclient.Execution{Args: []wireclient.Argument{wireclient.Varchar("y"), id}, Untyped: true})
			if first.known = knownBound.MatchString(shown); !first.known {
				first.deviation, again.deviation = noteOfID, noteOfID
			}
			sc := script{name: fmt.Sprintf("bound id %s, %s", shown, mode), steps: []step{
				{sql: mode},
				prepareStep("in", "INSERT INTO t (a,id) VALUES (?,?)"), prepareStep("last", "SELECT LAST_INSERT_ID()"),
				first, executeStep("last"),
				{sql: "DELETE FROM t WHERE a = 'x'"},
				again, executeStep("last"),
			}}
			if timeTypes.MatchString(shown) {
				sc.steps = append(sc.steps[:3], first.deviating(notYet("id of a date or time type")))
			}
			all = append(all, sc)
		}
	}
	return all
}

// timeTypes are ids that are refused.
var timeTypes = regexp.MustCompile(`^(DATE|DATETIME|TIME|type 7) [^(]`)

// beyond are ids that no column holds.
var beyond = regexp.MustCompile(`\d{19}|1e\+19|Inf|NaN`)

// knownBound are ids that the proxy is known to get wrong: no insert id is told of what is no
// number, or begins like one.
var knownBound = regexp.MustCompile(`NaN|50x|0x10|5\\x00`)

// noteOfID is warningOfID where it applies: the id generates.
var noteOfID = func() *deviation {
	d := warningOfID()
	d.when = func(native []wireclient.Facet) bool {
		generated := slices.ContainsFunc(native, func(f wireclient.Facet) bool {
			return f.Name == "result 0: insert id" && strings.HasPrefix(f.Value, "t{")
		})
		return generated && !slices.Contains(native, wireclient.Facet{Name: "result 0: warnings", Value: "0"})
	}
	return d
}()

// does is a step of the binary protocol by what it is called.
func does(with string, send func(s *wireclient.Session) ([]wireclient.Reply, error)) step {
	return step{with: with, send: func(s *wireclient.Session, _ string) ([]wireclient.Reply, error) { return send(s) }}
}

func resetsConnection() step {
	return does("COM_RESET_CONNECTION", (*wireclient.Session).ResetConnection)
}

// changesUser names the database, for a step that needs it.
func changesUser() step {
	return step{sql: "{db}", with: "COM_CHANGE_USER", send: func(s *wireclient.Session, db string) ([]wireclient.Reply, error) { return s.ChangeLogin(db) }}
}

func directStep(name, sql string, args ...wireclient.Argument) step {
	e := wireclient.Execution{Args: args}
	return step{sql: sql, with: "directly executed with " + shown(e), send: func(s *wireclient.Session, sql string) ([]wireclient.Reply, error) { return s.Direct(name, sql, e) }}
}

// deviating is the step with a deviation.
func (st step) deviating(d *deviation) step {
	st.deviation = d
	return st
}

// brokenExecution is what a packet gets that ends too early.
var brokenExecution = &deviation{
	name:   "broken execution",
	reason: "the proxy has to read a packet before it can change it, and says in one way what is wrong where MariaDB has two",
	fails:  "1835 (HY000)",
	when:   func(native []wireclient.Facet) bool { return strings.HasPrefix(native[0].Value, "1210") },
}

// lifecycleScripts are sessions in which statements come and go.
func lifecycleScripts() []script {
	last := step{sql: "SELECT LAST_INSERT_ID()"}
	one := func(name string) step { return prepareStep(name, "INSERT INTO t (a) VALUES (?)") }
	return []script{
		{name: "many statements", steps: manyStatements()},
		{name: "forgotten by a reset of the connection", steps: []step{
			one("p"), executeStep("p", wireclient.Varchar("1")), resetsConnection(), last, executeStep("p", wireclient.Varchar("2")),
			{sql: "INSERT INTO t (a,parent) VALUES ('3', LAST_INSERT_ID())"},
			one("p"), executeStep("p", wireclient.Varchar("4")), last, resetStep("q"), executeStep("q"),
		}},
		{name: "forgotten by a change of the user", steps: []step{
			one("p"), executeStep("p", wireclient.Varchar("1")), changesUser(), last, executeStep("p", wireclient.Varchar("2")),
			{sql: "INSERT INTO t (a,parent) VALUES ('3', LAST_INSERT_ID())"},
			one("p"), executeStep("p", wireclient.Varchar("4")), last,
		}},
		{name: "pieces that are thrown away", steps: []step{
			prepareStep("p", "INSERT INTO t (a,id) VALUES (?,?)"),
			does("piece", func(s *wireclient.Session) ([]wireclient.Reply, error) { return nil, s.LongData(s.ID("p"), 0, "lost") }), resetStep("p"),
			executeStep("p", wireclient.Varchar("1"), wireclient.Null(mysql.MYSQL_TYPE_LONG)), last,
			does("piece of an id", func(s *wireclient.Session) ([]wireclient.Reply, error) { return nil, s.LongData(s.ID("p"), 1, "77") }), resetStep("p"),
			executeStep("p", wireclient.Varchar("2"), wireclient.Long(0)), last,
			executeStep("p", wireclient.Varchar("9"), wireclient.Varchar("554")), executeStep("p", wireclient.Varchar("3"), wireclient.InPieces(mysql.MYSQL_TYPE_VAR_STRING, "5", "55")), executeStep("p", wireclient.InPieces(mysql.MYSQL_TYPE_BLOB, "4", "4"), wireclient.InPieces(mysql.MYSQL_TYPE_VAR_STRING, "0")), last,
			does("piece of no statement", func(s *wireclient.Session) ([]wireclient.Reply, error) { return nil, s.LongData(4711, 0, "lost") }), last,
			executeStep("p", wireclient.Varchar("5"), wireclient.Varchar("556")), last,
		}},
		{name: "broken executions", steps: brokenExecutions()},
		{name: "statement -1", lacks: "MySQL", steps: []step{
			directStep("p", "INSERT INTO t (a) VALUES (?)", wireclient.Varchar("1")), last, executeStep("p", wireclient.Varchar("2")), last,
			directStep("q", "INSERT INTO t (a,id) VALUES (?,?)", wireclient.Varchar("3"), wireclient.Long(0)), last, directStep("q", "INSERT INTO t (a,id) VALUES ('4',?)", wireclient.Long(888)),
			directStep("r", "INSERT INTO nowhere (a) VALUES (?)", wireclient.Varchar("5")), last, directStep("r", "INSERT INTO t (a) VALUES ('6')"), last,
			executeStep("p", wireclient.Varchar("7")), closeStep("p"), executeStep("p", wireclient.Varchar("8")), last,
		}},
		{name: "cursors", steps: []step{
			prepareStep("s", "SELECT a FROM t ORDER BY id"), executionStep("s", wireclient.Execution{Flags: wireclient.CursorFlag}),
			does("fetch", func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Fetch("s", 2) }),
			one("p"), executionStep("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.Varchar("1")}, Flags: wireclient.CursorFlag}), last,
			does("fetch", func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Fetch("s", 2) }), last,
			does("fetch of an INSERT", func(s *wireclient.Session) ([]wireclient.Reply, error) {
				return s.OnStatement(mysql.COM_STMT_FETCH, "p", 1, 0, 0, 0)
			}), last,
		}},
		{name: "the table changes", steps: []step{
			prepareStep("p", "INSERT INTO easy VALUES (?,?,3,NULL,1,4,NULL)"), executeStep("p", wireclient.Varchar("1"), wireclient.Long(0)), last,
			{sql: "ALTER TABLE easy ADD more INT"},
			executeStep("p", wireclient.Varchar("2"), wireclient.Long(0)), last,
			{sql: "ALTER TABLE easy DROP more"},
			executeStep("p", wireclient.Varchar("3"), wireclient.Long(0)), last,
			{sql: "ALTER TABLE easy MODIFY a VARCHAR(20) AFTER parent"},
			executeStep("p", wireclient.Long(5), wireclient.Long(0)),
			{sql: "ALTER TABLE easy MODIFY a VARCHAR(20) NOT NULL DEFAULT 'easy' FIRST"},
			executeStep("p", wireclient.Varchar("4"), wireclient.Long(0)), last,
		}},
		{name: "settings change", steps: []step{
			prepareStep("p", "INSERT INTO t (a,id) VALUES (?,0), (?,?)"),
			{sql: "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'"},
			executeStep("p", wireclient.Varchar("1"), wireclient.Varchar("2"), wireclient.Null(mysql.MYSQL_TYPE_LONG)),
			{sql: "SET sql_mode = DEFAULT, auto_increment_increment = 10"},
			executeStep("p", wireclient.Varchar("3"), wireclient.Varchar("4"), wireclient.Long(0)), last,
			{sql: "SET auto_increment_increment = 1"},
			executeStep("p", wireclient.Varchar("5"), wireclient.Varchar("6"), wireclient.Varchar("0")), last,
			{sql: "USE information_schema"},
			executeStep("p", wireclient.Varchar("7"), wireclient.Varchar("8"), wireclient.Long(0)), last,
			{sql: "USE {db}"},
			{sql: "CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20))"},
			executeStep("p", wireclient.Varchar("9"), wireclient.Varchar("10"), wireclient.Long(0)),
			{sql: "DROP TEMPORARY TABLE t"},
			executeStep("p", wireclient.Varchar("11"), wireclient.Varchar("12"), wireclient.Long(0)), last,
		}},
	}
}

// manyStatements opens statements, closes some of them and uses the others.
func manyStatements() []step {
	var steps []step
	for i := range 12 {
		table := tableNames[i%3]
		steps = append(steps, prepareStep(fmt.Sprint("p", i), fmt.Sprintf("INSERT INTO %s (a,id,parent) VALUES (?,?,LAST_INSERT_ID())", table)))
	}
	for i := range 12 {
		if i%3 == 0 {
			steps = append(steps, closeStep(fmt.Sprint("p", i)))
		}
		id := []wireclient.Argument{wireclient.Long(0), wireclient.Null(mysql.MYSQL_TYPE_LONG), wireclient.Long(int64(3000 + i))}[i%3]
		steps = append(steps, executeStep(fmt.Sprint("p", 11-i), wireclient.Varchar(fmt.Sprint("x", i)), id), step{sql: "SELECT LAST_INSERT_ID()"})
	}
	return steps
}

// brokenExecutions are packets that end too early or too late, on a statement that goes on to work.
func brokenExecutions() []step {
	whole := wireclient.Execution{Args: []wireclient.Argument{wireclient.Varchar("whole"), wireclient.Long(0)}}
	steps := []step{prepareStep("p", "INSERT INTO t (a,id) VALUES (?,?)")}
	for cut := range 16 {
		broken := whole
		broken.Cut = cut + 1
		st := executionStep("p", broken)
		st.with += fmt.Sprintf(" but for %d bytes", broken.Cut)
		steps = append(steps, st.deviating(brokenExecution), step{sql: "SELECT LAST_INSERT_ID()"}, executionStep("p", whole), step{sql: "SELECT LAST_INSERT_ID()"})
	}
	more := whole
	more.More = "more"
	return append(steps, executionStep("p", more), step{sql: "SELECT LAST_INSERT_ID()"}, executeStep("nowhere", wireclient.Varchar("x")), step{sql: "SELECT LAST_INSERT_ID()"})
}

// preparedFailures is every failure in the first row and in the third, prepared and executed twice,
// and what follows it.
func preparedFailures() []script {
	var all []script
	for _, f := range failingInserts {
		for _, bad := range []int{1, 3} {
			moved := bad > 1 && !f.early // see failedBatch
			sc := script{name: fmt.Sprintf("prepared %s in row %d", f.name, bad), steps: prepareReaders()}
			sc.steps = append(sc.steps, prepareStep("p", f.statement(bad, bad)), prepareStep("good", "INSERT INTO t (a,u) VALUES (?,?)"))
			for i := range 2 {
				seed := fmt.Sprint("seed", i)
				sc.steps = append(sc.steps, executeStep("good", wireclient.Varchar(seed), wireclient.Null(mysql.MYSQL_TYPE_LONG)), executeStep("p"))
				readers := []step{executeStep("last"), executeStep("child", wireclient.Varchar(fmt.Sprint("child", i)))}
				if i == 1 {
					readers = []step{{sql: "SHOW WARNINGS"}, executeStep("good", wireclient.Varchar("dup"), wireclient.Long(1)), {sql: "INSERT INTO mid (a,parent) VALUES ('child', LAST_INSERT_ID())"}}
				}
				for _, st := range readers {
					if moved {
						st.deviation = failedBatch("t{" + seed + "}")
					}
					sc.steps = append(sc.steps, st)
				}
			}
			all = append(all, sc)
		}
	}
	return all
}

// TestOraclePreparedSessions is what statements and connections go through.
func TestOraclePreparedSessions(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		for _, sc := range o.share(lifecycleScripts()) {
			for _, caps := range []uint64{0, uint64(mysql.CLIENT_DEPRECATE_EOF | mysql.CLIENT_QUERY_ATTRIBUTES)} {
				sc.caps = caps
				o.run(t, sc)
			}
		}
		o.run(t, o.share(preparedFailures())...)
		o.mustShow(t, "failed batch")
	})
}
