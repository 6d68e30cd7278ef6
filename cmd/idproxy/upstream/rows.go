package upstream

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
)

// OwnSchemas are those of the server itself, which no wildcard means.
var OwnSchemas = []string{"information_schema", "performance_schema", "mysql", "sys"}

// NotOwn is a condition on a column with the name of a schema, which it follows: that is none of OwnSchemas.
const NotOwn = " NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys') "

// AtOnce does something with each of some, at most n at a time, and returns when all is done.
func AtOnce[T any](all []T, n int, do func(T)) {
	next := make(chan T)
	var wg sync.WaitGroup
	for range min(n, len(all)) {
		wg.Go(func() {
			for one := range next {
				do(one)
			}
		})
	}
	for _, one := range all {
		next <- one
	}
	close(next)
	wg.Wait()
}

// fresh has MySQL say how tables are now: it remembers for a day what it said of them before. MariaDB
// does not run what is in the comment, nor does MySQL before 8.0, and neither remembers.
const fresh = "/*!80000 SET SESSION information_schema_stats_expiry = 0 */"

// EachNow is Each for what MySQL remembers: counters of tables, and how many rows they have.
func (u *Server) EachNow(ctx context.Context, query string, do func(row []string)) error {
	conn, err := u.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = conn.ExecContext(ctx, fresh) // who does not take it remembers nothing
	rows, err := conn.QueryContext(ctx, query)
	return each(rows, err, do)
}

// Each runs a query of text columns and calls do with every row.
func (u *Server) Each(ctx context.Context, query string, do func(row []string)) error {
	rows, err := u.DB.QueryContext(ctx, query)
	return each(rows, err, do)
}

// Literals writes texts, for a list in parentheses, so that they mean the same in every sql_mode and character set.
func Literals(texts []string) string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = fmt.Sprintf("_utf8mb4 X'%x'", text)
	}
	return strings.Join(list, ",")
}

// each calls do with every row of an answer.
func each(rows *sql.Rows, err error, do func(row []string)) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	cells := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := make([]string, len(cells))
		for i := range cells {
			row[i] = cells[i].String
		}
		do(row)
	}
	return rows.Err()
}
