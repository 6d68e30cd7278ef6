package oracle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/wireclient"
)

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
		for _, sc := range o.share(preparedFailures()) {
			o.run(t, sc)
		}
		o.mustShow(t, "failed batch")
	})
}
