package upstream

import (
	"context"
	"database/sql"
)

// Each runs a query of text columns and calls do with every row.
func (u *Server) Each(ctx context.Context, query string, do func(row []string), args ...any) error {
	rows, err := u.DB.QueryContext(ctx, query, args...)
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
