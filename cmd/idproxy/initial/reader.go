package initial

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/rule"
)

// reader reads one server.
type reader struct {
	*upstream.Server
	tables  map[name]*table
	plain   func(schema, table, column string) bool // a key that is no AUTO_INCREMENT gets ids, too
	periods bool                                    // the server has them
}

// aDate is whether a column could be that of a period (MariaDB).
const aDate = "(IS_NULLABLE = 'NO' AND DATA_TYPE IN ('date', 'datetime', 'timestamp'))"

// list lists the tables of some schemas, nil: of all, that the account may see, with the columns that can be their id. The questions are apart:
// servers answer them in less time than a join of them.
func (r *reader) list(ctx context.Context, schemas []string) error {
	of := " TABLE_SCHEMA" + upstream.NotOwn
	if len(schemas) > 0 {
		of += "AND TABLE_SCHEMA IN (" + upstream.Literals(schemas) + ") "
	}
	for _, q := range []struct {
		each        func(ctx context.Context, query string, do func(row []string)) error
		what, where string
		row         func(t *table, row []string)
	}{
		{r.EachNow, "TABLE_TYPE, AUTO_INCREMENT FROM information_schema.TABLES", "", (*table).setKind},
		{
			r.Each, "COLUMN_NAME, LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), UPPER(EXTRA), COLUMN_DEFAULT, " + aDate + " FROM information_schema.COLUMNS",
			"AND (COLUMN_KEY = 'PRI' OR EXTRA LIKE '%auto_increment%' OR " + aDate + ")", (*table).addColumn,
		},
		{r.Each, "COLUMN_NAME, INDEX_NAME, SEQ_IN_INDEX FROM information_schema.STATISTICS", "AND (SEQ_IN_INDEX = 1 OR INDEX_NAME = 'PRIMARY')", (*table).setKey},
		{r.Each, "COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE", "AND REFERENCED_TABLE_NAME IS NOT NULL", (*table).setRefers},
	} {
		err := q.each(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME, "+q.what+" WHERE"+of+q.where, func(row []string) {
			of := name{row[0], row[1]}
			if r.tables[of] == nil {
				r.tables[of] = &table{plain: func(column string) bool { return r.plain(of.schema, of.table, column) }}
			}
			q.row(r.tables[of], row[2:])
		})
		if err != nil {
			return fmt.Errorf("list of tables: %w", err)
		}
	}
	return nil
}

// aPeriod is how SHOW CREATE TABLE writes one of the application's. That of versions has no name in quotes.
var aPeriod = regexp.MustCompile("(?m)^ *PERIOD FOR `")

// greatest asks for the greatest id of each table that has an id column, and whether it has a period.
func (r *reader) greatest(ctx context.Context) {
	upstream.AtOnce(slices.Collect(maps.Keys(r.tables)), upstream.ConnectionsAtOnce, func(of name) {
		t := r.tables[of]
		id, why := t.id()
		if why != "" {
			return
		}
		ctx, cancel := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("no answer within %v", readTime))
		defer cancel()
		n, err := r.Greatest(ctx, of.schema, of.table, rule.Column{Name: id.name, Max: id.most()}, 0)
		if err == nil && r.periods && t.dates > 1 {
			var name, definition string
			err = r.DB.QueryRowContext(ctx, "SHOW CREATE TABLE "+upstream.Quote(of.schema)+"."+upstream.Quote(of.table)).Scan(&name, &definition)
			t.period = aPeriod.MatchString(definition)
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		t.top, t.unread = max(n, t.counter), err
	})
}

// number reads a number of information_schema, 0 for NULL.
func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
