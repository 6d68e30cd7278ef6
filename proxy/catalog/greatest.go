package catalog

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"idproxy/rewriter"
	"idproxy/rule"
)

// GreatestQuery returns the question for the greatest id in a column: a number,
// or NULL. Ids above last do not count, and above 2^64-1 where that is 0: no source gives them. Neither
// does text that is no number: text compares as text, where '9' is above '10'.
//
// The names are in UTF-8, and so is the connection's character set.
func GreatestQuery(schema, table string, column rule.Column, last uint64) string {
	quoted := func(name string) string { return string(rewriter.AppendQuoted(nil, name, rewriter.Mode{})) }
	return greatestQuery(quoted(column.Name), quoted(schema)+"."+quoted(table), column, last)
}

// HeldQuery returns the question for the greatest of some ids that a column holds: a number, or NULL.
// All have the same number of digits, or the column is one of numbers. The names are as for [GreatestQuery].
func HeldQuery(schema, table string, column rule.Column, ids []uint64) string {
	quoted := func(name string) string { return string(rewriter.AppendQuoted(nil, name, rewriter.Mode{})) }
	return heldQuery(quoted(column.Name), quoted(schema)+"."+quoted(table), column, ids)
}

// heldQuery is HeldQuery with the names as SQL.
func heldQuery(id, from string, column rule.Column, ids []uint64) string {
	list := make([]string, len(ids))
	for i, n := range ids {
		list[i] = strconv.FormatUint(n, 10)
		if column.Text { // compared as text, by an index
			list[i] = "'" + list[i] + "'"
		}
	}
	return "SELECT MAX(" + id + ") FROM " + from + " WHERE " + id + " IN (" + strings.Join(list, ",") + ")"
}

// greatestQuery is GreatestQuery with the names as SQL.
func greatestQuery(id, from string, column rule.Column, last uint64) string {
	if last == 0 {
		last = math.MaxUint64
	}
	upTo := "<=" + strconv.FormatUint(last, 10)
	if !column.Text { // an index answers this at once
		return "SELECT CAST(MAX(" + id + ") AS DECIMAL(65)) FROM " + from + " WHERE " + id + upTo
	}
	number := "CAST(" + id + " AS DECIMAL(65))"
	return "SELECT MAX(" + number + ") FROM " + from + " WHERE CONVERT(" + id + " USING utf8mb4) REGEXP _utf8mb4'^ *[0-9]+[^0-9A-Za-z]*$' AND " +
		number + upTo
}

// Greatest returns the greatest id in a column, up to last, that the session sees, 0 when there is none
// above 0. See [GreatestQuery].
func (a *Asker) Greatest(t rewriter.Name, column rule.Column, last uint64) (uint64, error) {
	if a.Plain {
		return a.plainGreatest(t, column, last)
	}
	return a.number(t, column, func(id, table string) string { return greatestQuery(id, table, column, last) })
}

// Held returns the greatest of some ids that the session sees in a column, 0 when it sees none.
func (a *Asker) Held(t rewriter.Name, column rule.Column, ids []uint64) (uint64, error) {
	return a.number(t, column, func(id, table string) string { return heldQuery(id, table, column, ids) })
}

// ReadOnlyQuery asks whether a server takes no writes. One that is super_read_only is read_only, too;
// innodb_read_only is how clouds have readers.
const ReadOnlyQuery = "SELECT @@GLOBAL.read_only, @@GLOBAL.innodb_read_only"

// IsReadOnly reads the answer to ReadOnlyQuery. MariaDB 12 has words for ways of being read-only.
func IsReadOnly(server, engine string) bool {
	off := func(v string) bool { return v == "0" || v == "OFF" }
	return !off(server) || !off(engine)
}

// ReadOnly asks whether the server takes no writes.
func (a *Asker) ReadOnly() (bool, error) {
	row, err := a.Row(ReadOnlyQuery, 2)
	if err != nil {
		return false, err
	}
	return IsReadOnly(string(row[0]), string(row[1])), nil
}

// number asks a question of a column whose answer is a number.
func (a *Asker) number(t rewriter.Name, column rule.Column, question func(id, table string) string) (uint64, error) {
	table, err := a.AppendTable(nil, t)
	if err != nil {
		return 0, err
	}
	id, err := a.AppendName(nil, column.Name)
	if err != nil {
		return 0, err
	}
	sql := question(string(id), string(table))
	if a.Plain {
		return a.plainNumber(sql)
	}
	row, err := a.Row(sql, 1)
	if err != nil {
		return 0, err
	}
	return parseGreatest(string(row[0]))
}

func parseGreatest(v string) (uint64, error) {
	if v == "" || strings.HasPrefix(v, "-") {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number below 2^64", v)
	}
	return n, nil
}
