package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
)

// dynamicScripts are preparedScripts in SQL: PREPARE, EXECUTE and EXECUTE IMMEDIATE take the place
// of the binary protocol's commands, and literals and user variables that of its parameters.
func dynamicScripts(fam family, m formMode, at setting) []script {
	w := &writer{former: newFormer(m, fmt.Sprint("dynamic ", fam.name, at.round)), family: &fam, setting: at}
	b := &binder{writer: w}
	b.serial = b.IntN(len(afterwards))
	var all []script
	for _, kindOfIDs := range or(fam.ids, allIDs) {
		if m.nullGenerates && (kindOfIDs == zeroID || kindOfIDs == defaultID) {
			continue
		}
		sc := script{name: fmt.Sprintf("dynamic %s, id %s, %s", fam.name, kindOfIDs, m.name), options: m.options(), steps: m.setup()}
		if fam.found {
			sc.options = append(sc.options, foundRows)
		}
		b.beginPrepared()
		for _, name := range namedReaders {
			sc.steps = append(sc.steps, step{sql: "PREPARE " + name[0] + " FROM '" + name[1] + "'"})
		}
		for _, outcomes := range ofOneLength(or(fam.rows, plainRows)) {
			sc.steps = append(sc.steps, b.dynamicExamples(kindOfIDs, outcomes)...)
		}
		all = append(all, sc)
	}
	return all
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
		steps = append(steps, step{
			sql: text + using, with: "of " + o.sql, deviation: b.deviation(o.sql, rows),
			gaps: strings.ContainsAny(rows, "SUN") && strings.Count(rows, "I") > 1,
			form: &form{b.family, kindOfIDs, rows, b.charsetName(), b.trigger},
		})
		steps = append(steps, b.namedReaders(kindOfIDs, rows)...)
	}
	if !immediate && b.IntN(3) == 0 {
		steps = append(steps, step{sql: b.pick([]string{"DEALLOCATE PREPARE ", "DROP PREPARE "}) + name}, step{sql: "EXECUTE " + name})
	}
	return steps
}

// namedReaders is readers in SQL.
func (b *binder) namedReaders(kindOfIDs ids, rows string) []step {
	if !slices.ContainsFunc(b.kinds, func(k ids) bool { return k != explicitID }) {
		kindOfIDs = explicitID
	}
	steps := b.after(kindOfIDs, rows)
	for i := range steps {
		st := &steps[i]
		if st.deviation != nil {
			counts := *st.deviation
			counts.maybe = true
			st.deviation = &counts
		}
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
