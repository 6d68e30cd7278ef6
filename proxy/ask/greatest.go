package ask

import (
	"fmt"
	"strconv"
	"strings"

	"idproxy/rewriter"
	"idproxy/rule"
)

// GreatestQuery returns the question for the greatest id in a column: a number,
// or NULL. Ids above 2^64-1, which no source gives, do not count, and neither
// does text that is no number: text compares as text, where '9' is above '10'.
//
// The names are in UTF-8, and so is the connection's character set.
func GreatestQuery(schema, table string, column rule.Column) string {
	quoted := func(name string) string { return string(rewriter.AppendQuoted(nil, name, rewriter.Mode{})) }
	return greatestQuery(quoted(column.Name), quoted(schema)+"."+quoted(table), column)
}

// greatestQuery is GreatestQuery with the names as SQL.
func greatestQuery(id, from string, column rule.Column) string {
	if !column.Text { // an index answers this at once
		return "SELECT CAST(MAX(" + id + ") AS DECIMAL(65)) FROM " + from + " WHERE " + id + "<=18446744073709551615"
	}
	number := "CAST(" + id + " AS DECIMAL(65))"
	return "SELECT MAX(" + number + ") FROM " + from + " WHERE CONVERT(" + id + " USING utf8mb4) REGEXP _utf8mb4'^ *[0-9]+[^0-9A-Za-z]*$' AND " +
		number + "<=18446744073709551615"
}

// Greatest returns the greatest id in a column that the session sees, 0 when there is none
// above 0.
func (a *Asker) Greatest(t rewriter.Name, column rule.Column) (uint64, error) {
	table, err := a.AppendTable(nil, t)
	if err != nil {
		return 0, err
	}
	id, err := a.AppendName(nil, column.Name)
	if err != nil {
		return 0, err
	}
	row, err := a.Row(greatestQuery(string(id), string(table), column), 1)
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
