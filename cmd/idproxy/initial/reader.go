package initial

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/rule"
)

// reader reads one server.
type reader struct {
	*upstream.Server
	tables map[name]*table
}

// notSystem narrows a question about tables to those of users.
const notSystem = " TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys') "

// list lists the tables of some schemas, nil: of all, that the account may see, with the columns that can be their id. The questions are apart:
// servers answer them in less time than a join of them.
func (r *reader) list(ctx context.Context, schemas []string) error {
	of, args := notSystem, []any{}
	if len(schemas) > 0 {
		of += "AND TABLE_SCHEMA IN (?" + strings.Repeat(",?", len(schemas)-1) + ") "
		for _, s := range schemas {
			args = append(args, s)
		}
	}
	for _, q := range []struct {
		query string
		row   func(t *table, row []string)
	}{
		{"SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, AUTO_INCREMENT FROM information_schema.TABLES WHERE" + of, (*table).setKind},
		{
			"SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), UPPER(EXTRA), COLUMN_DEFAULT, COLUMN_KEY FROM information_schema.COLUMNS WHERE" +
				of + "AND (COLUMN_KEY = 'PRI' OR EXTRA LIKE '%auto_increment%')", (*table).addColumn,
		},
		{"SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE" + of + "AND SEQ_IN_INDEX = 1", (*table).setLeads},
		{"SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE" + of + "AND REFERENCED_TABLE_NAME IS NOT NULL", (*table).setRefers},
	} {
		err := r.Each(ctx, q.query, func(row []string) {
			of := name{row[0], row[1]}
			if r.tables[of] == nil {
				r.tables[of] = &table{}
			}
			q.row(r.tables[of], row[2:])
		}, args...)
		if err != nil {
			return fmt.Errorf("list of tables: %w", err)
		}
	}
	return nil
}

// greatest asks for the greatest id of each table that has an id column.
func (r *reader) greatest(ctx context.Context) {
	var wg sync.WaitGroup
	free := make(chan struct{}, upstream.ConnectionsAtOnce)
	for of, t := range r.tables {
		id, why := t.id()
		if why != "" {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			ctx, cancel := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("no answer within %v", readTime))
			defer cancel()
			n, err := r.Greatest(ctx, of.schema, of.table, rule.Column{Name: id.name, Max: id.most()}, 0)
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			t.top, t.unread = max(n, t.counter), err
		})
	}
	wg.Wait()
}

// grantee is the account as a server knows it.
type grantee struct {
	account string // 'user'@'host'
	mariaDB bool
	all     bool // it may select from every table, so that it sees all
}

func (r *reader) grantee(ctx context.Context) (g grantee, err error) {
	var as, version string
	if err := r.DB.QueryRowContext(ctx, "SELECT CURRENT_USER(), VERSION()").Scan(&as, &version); err != nil {
		return g, err
	}
	user, host := as, "%"
	if at := strings.LastIndexByte(as, '@'); at >= 0 {
		user, host = as[:at], as[at+1:]
	}
	g.account = quoteText(user) + "@" + quoteText(host)
	g.mariaDB = strings.Contains(version, "MariaDB")
	err = r.Each(ctx, "SHOW GRANTS", func(row []string) {
		rights, on, _ := strings.Cut(row[0], " ON ")
		rights = strings.TrimPrefix(strings.ToUpper(rights), "GRANT ")
		for right := range strings.SplitSeq(rights, ",") {
			right = strings.TrimSpace(right)
			g.all = g.all || strings.HasPrefix(on, "*.*") && (right == "SELECT" || right == "ALL PRIVILEGES")
		}
	})
	return g, err
}

// quoteText writes a text as SQL does.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}

// number reads a number of information_schema, 0 for NULL.
func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
