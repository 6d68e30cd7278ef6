package check

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// asked is a server that answers, as the checks of its tables see it.
type asked struct {
	*upstream.Server
	cfg     *config.Config
	where   string // names the server in findings, when there are others; else empty
	facts   upstream.Facts
	listing *inventory.Listing
	inside  *inside
	rights  *upstream.Rights // of the account; nil: they are not known
}

// inside is what a server has around its tables, asked for when the first table wants
// it. Each question is put once, however many tables there are.
type inside struct {
	grants   func() ([][]string, error) // of columns: user, host, schema, table, column, privileges
	views    func() ([][]string, error) // that take rows: schema, name, definition
	triggers func() ([][]string, error) // before an INSERT or UPDATE: schema, table, name, body, INSERT or UPDATE
	programs func() ([][]string, error) // that insert: schema, kind, name, body
}

func (a *asked) lookInside(ctx context.Context) *inside {
	ask := func(query string) func() ([][]string, error) {
		return sync.OnceValues(func() (rows [][]string, err error) {
			err = a.Each(ctx, query, func(row []string) { rows = append(rows, row) })
			return rows, err
		})
	}
	programs := ask("SELECT TRIGGER_SCHEMA, 'trigger', TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS " +
		"UNION ALL SELECT ROUTINE_SCHEMA, LOWER(ROUTINE_TYPE), ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES " +
		"UNION ALL SELECT EVENT_SCHEMA, 'event', EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS")
	writes := regexp.MustCompile(`(?i)\b(insert|replace)\b`)
	return &inside{
		grants: ask("SELECT User, Host, Db, Table_name, Column_name, Column_priv FROM mysql.columns_priv"),
		views:  ask("SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE IS_UPDATABLE = 'YES'"),
		triggers: ask("SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_STATEMENT, EVENT_MANIPULATION FROM information_schema.TRIGGERS " +
			"WHERE EVENT_MANIPULATION <> 'DELETE' AND ACTION_TIMING = 'BEFORE'"),
		programs: sync.OnceValues(func() ([][]string, error) {
			rows, err := programs()
			return slices.DeleteFunc(rows, func(row []string) bool { return !writes.MatchString(row[3]) }), err
		}),
	}
}

// grant ends a finding about a right that the account lacks, with the statement that gives it.
func (a *asked) grant(rights string, schemas ...string) string {
	if a.rights == nil {
		return ""
	}
	text := ""
	for _, schema := range schemas {
		if one := a.rights.Grant(rights, schema); !strings.Contains(text, one) {
			text += " " + one
		}
	}
	return ": run" + text
}
