package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
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
		o.inTurn = width.Of(true, o.trigger != noTrigger && !width.Long)
		for i, fam := range familiesOf(kind) {
			for j, m := range dynamicModes(kind) {
				if !width.Long && (o.trigger != noTrigger && (i+j)%every != int(o.trigger) || j > 0 && (i+j)%every != 0) {
					continue
				}
				o.run(t, dynamicScripts(fam, m, setting{kind, o.trigger, 0})...)
			}
		}
		least := width.Of(800, 1000)
		o.executed(t, least)
		if o.trigger == noTrigger || width.Long {
			o.mustShow(t, sparseIDs, "counts of a question", "update that reads the last insert id")
		}
	})
}

// TestOracleDynamicSeesDifferences is TestOracleSeesDifferences with statements prepared in SQL.
func TestOracleDynamicSeesDifferences(t *testing.T) {
	seeDifferences(t, "executions", func(kind servers.Kind, differ differs) {
		for _, sc := range familyWriter(dynamicScripts).some(kind) {
			var front []step
			for _, st := range sc.steps {
				if st.with == "prepared" || st.with == "set" {
					front = append(front, st)
				}
				mayBeExplicit := st.form != nil && st.form.ids == mixedIDs && len(st.form.rows) == 1
				if st.form == nil || !st.form.generates() || mayBeExplicit {
					continue
				}
				differ(script{options: sc.options}, slices.Concat(front, []step{st})...)
				if strings.HasPrefix(st.sql, "EXECUTE p") {
					break // what follows executes the same statement
				}
			}
		}
	})
}

// TestOracleDynamicSessions is what else SQL's own prepared statements can do.
func TestOracleDynamicSessions(t *testing.T) {
	everywhere(t, func(t *testing.T, o *oracle) {
		for _, w := range o.all() {
			w.observer.Must(t, "CREATE PROCEDURE prepares(q TEXT) BEGIN SET @q = q; PREPARE s FROM @q; END", "CREATE PROCEDURE deallocates() DEALLOCATE PREPARE s")
		}
		o.run(t, o.share(dynamicSessions())...)
		o.mustShow(t, "a procedure takes a name")
	})
}

// dynamicScripts are preparedScripts in SQL: PREPARE, EXECUTE and EXECUTE IMMEDIATE take the place
// of the binary protocol's commands, and literals and user variables that of its parameters.
func dynamicScripts(fam family, m formMode, at setting) []script {
	b := &binder{writer: newWriter("dynamic ", fam, m, at)}
	return b.sessions("dynamic ", func(sc *script, kindOfIDs ids) {
		b.beginPrepared()
		for _, name := range namedReaders {
			sc.steps = append(sc.steps, step{sql: "PREPARE " + name[0] + " FROM '" + name[1] + "'"})
		}
		for _, outcomes := range ofOneLength(or(fam.rows, plainRows)) {
			sc.steps = append(sc.steps, b.dynamicExamples(kindOfIDs, outcomes)...)
		}
	})
}

// namedReaders are statements that are prepared once in each session.
var namedReaders = [][2]string{
	{"child", "INSERT INTO t (a,parent) VALUES (?, LAST_INSERT_ID())"}, {"last", "SELECT LAST_INSERT_ID()"}, {"variable", "SELECT @@last_insert_id"},
}

// mode is what the literals of a statement are written for.
func (b *binder) mode() rewriter.Mode {
	return rewriter.Mode{NoBackslashEscapes: b.noBackslash, Charset: rewriter.CharsetOf(b.charset)}
}

// literal spells a text.
func (b *binder) literal(text string) string {
	if b.ansi || b.charset != "" || strings.ContainsAny(text, `\`) || b.IntN(2) == 0 {
		return string(rewriter.AppendLiteral(nil, []byte(text), b.mode()))
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

// source spells where the text of a statement comes from; set is what must stand in front, or
// empty.
func (b *binder) source(sql string) (set, source string) {
	choice := b.IntN(4)
	switch maria := b.kind == servers.MariaDB; {
	case choice > 1 || strings.Contains(b.set, "SET CHARACTER SET"): // which makes another set of connections, see TestDynamicRefusals
		return "", b.literal(sql)
	case choice == 1 && maria:
		cut := b.IntN(len(sql))
		for cut > 0 && sql[cut] != ' ' {
			cut--
		}
		return "SET @head = " + b.literal(sql[:cut]), "CONCAT(@head, " + b.literal(sql[cut:]) + ")"
	}
	return "SET @text = " + b.literal(sql), "@text"
}

// value spells an argument.
func (b *binder) value(a wireclient.Argument) string {
	switch {
	case a.Null:
		return "NULL"
	case wireclient.IntegerSizes[a.Kind] > 0:
		return a.Shown
	case a.Kind == mysql.MYSQL_TYPE_DOUBLE || a.Kind == mysql.MYSQL_TYPE_FLOAT:
		return a.Shown + "e0"
	}
	inner, _, _, err := mysql.LengthEncodedString(a.Value)
	if err != nil {
		return "NULL"
	}
	if a.Kind == mysql.MYSQL_TYPE_NEWDECIMAL {
		return string(inner)
	}
	return b.literal(string(inner))
}

// using spells the arguments of an execution; set is what must stand in front, or empty.
func (b *binder) using(args []wireclient.Argument) (set, using string) {
	var sets, all []string
	for i, a := range args {
		if b.kind == servers.MariaDB && b.IntN(3) == 0 {
			all = append(all, b.value(a))
			continue
		}
		name := b.pick([]string{fmt.Sprintf("@v%d", i), fmt.Sprintf("@`v %d`", i), fmt.Sprintf("@V%d", i)})
		sets, all = append(sets, name+" = "+b.value(a)), append(all, name)
	}
	if sets != nil {
		set = "SET " + strings.Join(sets, ", ")
	}
	if all != nil {
		using = " USING " + strings.Join(all, b.pick([]string{",", ", ", " , /* ; */ "}))
	}
	return set, using + b.pick([]string{"", "", ";", " -- end"})
}

// dynamicExamples is examples in SQL.
func (b *binder) dynamicExamples(kindOfIDs ids, outcomes []string) []step {
	o := b.outline(kindOfIDs, outcomes)
	b.names++
	name := fmt.Sprintf("p%d", b.names%3) // which drops another
	immediate := b.kind == servers.MariaDB && b.IntN(4) == 0
	var steps []step
	prepare := func(verb string) string {
		set, source := b.source(o.sql)
		if set != "" {
			steps = append(steps, step{sql: set, with: "set"})
		}
		return verb + source
	}
	if !immediate {
		text := prepare("PREPARE " + b.pick([]string{name, "`" + name + "`", strings.ToUpper(name)}) + " FROM ")
		steps = append(steps, step{sql: text, with: "prepared"})
	}
	if len(outcomes) == 1 {
		outcomes = []string{outcomes[0], outcomes[0]}
	}
	for _, rows := range outcomes {
		b.whole = true
		e := b.execution(o, kindOfIDs, rows)
		set, using := b.using(e.Args)
		if set != "" {
			steps = append(steps, step{sql: set, with: "set"})
		}
		text := "EXECUTE " + name
		if immediate {
			text = prepare("EXECUTE IMMEDIATE ")
		}
		st := b.step(o.sql, kindOfIDs, rows)
		st.sql, st.with = text+using, "of "+o.sql
		steps = append(append(steps, st), b.namedReaders(kindOfIDs, rows)...)
	}
	if !immediate && b.IntN(3) == 0 {
		steps = append(steps, step{sql: b.pick([]string{"DEALLOCATE PREPARE ", "DROP PREPARE "}) + name}, step{sql: "EXECUTE " + name})
	}
	return steps
}

// namedReaders is readers in SQL.
func (b *binder) namedReaders(kindOfIDs ids, rows string) []step {
	steps := b.afterExecution(kindOfIDs, rows)
	for i := range steps {
		st := &steps[i]
		switch {
		case b.IntN(3) == 0:
		case st.sql == "SELECT LAST_INSERT_ID()":
			st.sql, st.binary = "EXECUTE last", false
		case st.sql == "SELECT @@last_insert_id":
			st.sql, st.binary = "EXECUTE variable", false
		case strings.HasPrefix(st.sql, "INSERT INTO t (a,parent) VALUES ('child"):
			st.sql = fmt.Sprintf("SET @child = 'child%d'; EXECUTE child USING @child", b.serial)
		}
	}
	return steps
}

// dynamicSessions are sessions with statements prepared in SQL, for the oracle: what they show is
// native.
func dynamicSessions() []script {
	return []script{
		{name: "names", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a) VALUES (''one'')'", "EXECUTE S", "EXECUTE `s`;", "PREPARE `S` FROM 'INSERT INTO mid (a) VALUES (''two'')'", "EXECUTE s",
			"PREPARE s FROM 'SELEKT'", "EXECUTE s", "SELECT LAST_INSERT_ID()", "PREPARE s FROM 'INSERT INTO t (a,u) VALUES (''dup'', 1)'", "EXECUTE s", "SHOW WARNINGS",
			"SELECT LAST_INSERT_ID()", "DEALLOCATE PREPARE s", "EXECUTE s", "DEALLOCATE PREPARE s", "PREPARE s FROM 'SELECT LAST_INSERT_ID()'", "EXECUTE s", "DROP PREPARE S",
			"EXECUTE s", "PREPARE `a b` FROM 'INSERT INTO t (a) VALUES (''blank'')'", "EXECUTE `A B`", "PREPARE 1st FROM 'INSERT INTO t (a) VALUES (''digit'')'", "EXECUTE 1st",
		)},
		{name: "a PREPARE that fails on the outside keeps the statement", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a) VALUES (''kept'')'", "PREPARE s FROM", "EXECUTE s", "PREPARE s 'SELECT 1'", "EXECUTE s", "SELECT LAST_INSERT_ID()",
		)},
		{name: "arguments", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a,parent) VALUES (?,?)'", "SET @a = 'x', @b = 7", "EXECUTE s", "EXECUTE s USING @a", "SHOW WARNINGS", "EXECUTE s USING @a, @b",
			"EXECUTE s USING @a, @b, @c", "EXECUTE s USING @b, @nothing", "SELECT ROW_COUNT()", "EXECUTE s USING @a, @a", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"EXECUTE s USING @a, LAST_INSERT_ID()", "EXECUTE s USING 'y', 8", "EXECUTE s USING", "EXECUTE nothing USING @a",
		)},
		{name: "a bound id", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (id,a) VALUES (?,?),(?,''second'')'", "SET @n = NULL, @z = 0, @i = 700, @s = '701', @d = 0.3, @a = 'x'", "EXECUTE s USING @n, @a, @n",
			"SELECT LAST_INSERT_ID()", "EXECUTE s USING @z, @a, @i", "EXECUTE s USING @s, @a, @d", "SELECT LAST_INSERT_ID()", "SET @i = 710, @s = 711", "EXECUTE s USING @i, @a, @s",
			"SELECT LAST_INSERT_ID()", "SET @i = -5", "EXECUTE s USING @i, @a, @z", "EXECUTE s USING @i, @a, @z", "SELECT LAST_INSERT_ID()", "EXECUTE s USING @nowhere, @a, @nowhere",
			"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'", "EXECUTE s USING @n, @a, @z", "SELECT LAST_INSERT_ID()",
		)},
		{name: "DEFAULT and literals as arguments", lacks: "MySQL", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (id,a) VALUES (?,?)'", "EXECUTE s USING DEFAULT, 'x'", "EXECUTE s USING IGNORE, 'y'", "EXECUTE s USING NULL, CONCAT('z', 1)",
			"EXECUTE s USING 720, 'explicit'", "SELECT LAST_INSERT_ID()", "EXECUTE s USING 720+1, 'sum'", "EXECUTE s USING '0', 'text'",
			"EXECUTE IMMEDIATE 'INSERT INTO t (id,a) VALUES (?,?)' USING DEFAULT, 'imm'", "SELECT LAST_INSERT_ID()", "EXECUTE IMMEDIATE 'INSERT INTO t (id,a) VALUES (?,?)' USING 730, 'imm 2'",
			"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES'", "EXECUTE s USING DEFAULT, 'zero'", "SELECT LAST_INSERT_ID()",
		)},
		{name: "from variables", steps: plainSteps(
			"SET @q = 'INSERT INTO t (a) VALUES (''from a variable'')'", "PREPARE s FROM @q", "SET @q = 'SELEKT'", "EXECUTE s", "PREPARE s FROM @q", "EXECUTE s", "PREPARE s FROM @nothing",
			"SET @q = 5", "PREPARE s FROM @q", "SET @q = 'SELECT COUNT(*) FROM t'", "PREPARE s FROM @q", "EXECUTE s", "SET @q = CONCAT('INSERT ', 'INTO t (a,u) VALUES (?, 1)'), @a = 'dup'",
			"PREPARE s FROM @`q`", "EXECUTE s USING @a", "SELECT LAST_INSERT_ID()", "SET @q = CAST('INSERT INTO t (a) VALUES (''binary'')' AS BINARY)", "PREPARE s FROM @q", "EXECUTE s",
			"SET @q = CONVERT('INSERT INTO t (a) VALUES (''utf16 é'')' USING utf16)", "PREPARE s FROM @q", "EXECUTE s", "SELECT LAST_INSERT_ID()",
		)},
		{name: "EXECUTE IMMEDIATE", lacks: "MySQL", steps: plainSteps(
			"EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (''imm'')'", "SELECT LAST_INSERT_ID()", "SET @t = 't', @a = 'x'", "EXECUTE IMMEDIATE CONCAT('INSERT INTO ', @t, ' (a) VALUES (?),(?)') USING @a, 'y'",
			"SELECT ROW_COUNT()", "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (?)'", "EXECUTE IMMEDIATE 'INSERT INTO t (a,u) VALUES (''dup'', 1)'", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()",
			"EXECUTE IMMEDIATE @nothing", "EXECUTE IMMEDIATE 'SELECT LAST_INSERT_ID()'", "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (''r'') RETURNING id, a'", "SELECT LAST_INSERT_ID()",
			"EXECUTE IMMEDIATE 'SET @x = LAST_INSERT_ID()'", "INSERT INTO mid (a,parent) VALUES ('child', @x)", "EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''SELECT 1'''",
			"EXECUTE IMMEDIATE 'INSERT INTO t ' '(a) VALUES ' '(''joined'')'", "EXECUTE IMMEDIATE 'SELEKT'", "SELECT LAST_INSERT_ID()",
		)},
		{name: "one text", steps: plainSteps(
			"PREPARE s FROM 'INSERT INTO t (a) VALUES (?)'; SET @a = 'one'; EXECUTE s USING @a; SELECT LAST_INSERT_ID(); EXECUTE s USING @a; DEALLOCATE PREPARE s",
			"INSERT INTO t (a) VALUES ('in front'); PREPARE s FROM 'INSERT INTO mid (a,parent) VALUES (''child'', LAST_INSERT_ID())'; EXECUTE s; SELECT LAST_INSERT_ID()",
			"EXECUTE s; PREPARE s FROM 'SELEKT'; EXECUTE s", "EXECUTE s; SELECT 1", "SELECT LAST_INSERT_ID()",
			"SET sql_mode = 'ANSI_QUOTES'; PREPARE s FROM 'INSERT INTO t (\"a\") VALUES (''ansi'')'; EXECUTE s", "SELECT LAST_INSERT_ID()",
		)},
		{name: "what is not an INSERT", steps: plainSteps(
			"PREPARE m FROM 'SET sql_mode = ?'", "SET @m = 'NO_AUTO_VALUE_ON_ZERO'", "EXECUTE m USING @m", "INSERT INTO t (id,a) VALUES (0,'zero')", "SELECT LAST_INSERT_ID()",
			"PREPARE d FROM 'CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20))'", "EXECUTE d", "INSERT INTO t (a) VALUES ('own')", "SELECT COUNT(*) FROM t",
			"DROP TEMPORARY TABLE t", "PREPARE c FROM 'CALL reading(?)'", "SET @tag = 'called'", "INSERT INTO t (a) VALUES ('seed')", "EXECUTE c USING @tag",
			"INSERT INTO t (a,u) VALUES ('dup',1)", "EXECUTE c USING @tag", "PREPARE r FROM 'SELECT LAST_INSERT_ID(), @@identity'", "EXECUTE r",
			"PREPARE l FROM 'INSERT INTO readings VALUES (''plain'', LAST_INSERT_ID())'", "INSERT INTO t (a,u) VALUES ('dup',1)", "EXECUTE l", "PREPARE lg FROM 'INSERT INTO lg (note) VALUES (''own counter'')'",
			"EXECUTE lg", "SELECT LAST_INSERT_ID() > 0", "INSERT INTO t (a,u) VALUES ('dup',1)", "EXECUTE r",
		)},
		{name: "sessions end statements", steps: append(append(
			plainSteps("PREPARE s FROM 'INSERT INTO t (a) VALUES (''gone'')'", "EXECUTE s"), resetsConnection()),
			plainSteps("EXECUTE s", "PREPARE s FROM 'INSERT INTO t (a) VALUES (''again'')'", "EXECUTE s", "SELECT LAST_INSERT_ID()")...)},
		{name: "both protocols", steps: []step{
			prepareStep("b", "INSERT INTO t (a,parent) VALUES (?, LAST_INSERT_ID())"),
			{sql: "PREPARE b FROM 'INSERT INTO mid (a,parent) VALUES (?, LAST_INSERT_ID())'"},
			executeStep("b", wireclient.Varchar("binary")),
			{sql: "SET @a = 'sql'"},
			{sql: "EXECUTE b USING @a"},
			executeStep("b", wireclient.Varchar("binary 2")),
			{sql: "EXECUTE b USING @a"},
			{sql: "SELECT LAST_INSERT_ID()"},
			{sql: "PREPARE x FROM 'PREPARE y FROM ''SELECT 1'''"},
			{sql: "EXECUTE b USING @a", binary: true},
			{sql: "SELECT LAST_INSERT_ID()"},
		}},
		{name: "a procedure with the same name", steps: append([]step{
			{sql: "PREPARE s FROM 'INSERT INTO t (a) VALUES (''outer'')'"},
			{sql: "CALL prepares('SELECT 5')"},
			{sql: "EXECUTE s", deviation: unseenName},
			{sql: "CALL prepares('INSERT INTO t (id,a) VALUES (745,''inner'')')"},
			{sql: "EXECUTE s", deviation: unseenName},
		}, plainSteps("CALL deallocates()", "EXECUTE s", "PREPARE r FROM 'SELECT 1'", "CALL prepares('SELECT 7')", "EXECUTE r", "PREPARE s FROM 'SELECT 8'", "CALL prepares('SELECT 9')",
			"EXECUTE s", "PREPARE s FROM 'INSERT INTO t (a) VALUES (''outer 2'')'", "EXECUTE s", "SELECT LAST_INSERT_ID()",
		)...)},
	}
}

// unseenName is what becomes of a name that a procedure has taken.
var unseenName = &deviation{
	name:   "a procedure takes a name",
	reason: "what a procedure prepares is not seen, so an EXECUTE of its name is written for the INSERT that the client prepared, and the server refuses the number of arguments",
	fails:  "1210 (HY000)",
}
