package check

import (
	"fmt"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/config"
	"idproxy/rewriter"
	"idproxy/rule"
)

// tableCheck looks for what makes statements go wrong on a table that a rule
// concerns: its columns and ids, grants, views, triggers, defaults and modes.
type tableCheck struct {
	notes
	*asked
	rule          *config.Rule
	rules         *rule.List // of a listener
	schema, table string

	// What was found.
	shown    *inventory.Column // the column; nil: there is none, or the account may not see it
	seen     bool              // all was looked at
	left     string            // why a wildcard rule leaves the table alone
	unlike   rule.Misfit       // to a column with AUTO_INCREMENT
	ids      bool              // the column takes ids that are numbers: what follows was asked
	null     bool              // MariaDB reads it as NULL in the values of an INSERT, where the table has a BEFORE trigger
	max      uint64            // what it holds
	greatest uint64            // what is in it
	base     rewriter.Name     // where a source has a series for each table: the one behind a view; none: the view fills none
}

func (t *tableCheck) add(level, format string, args ...any) {
	which := t.where
	if t.rule.Wild() {
		which = "table " + t.schema + "." + t.table + ": " + which
	}
	t.notes.add(t.rule.Pos, level, "rule %s: %s%s", t.rule, which, fmt.Sprintf(format, args...))
}

func (t *tableCheck) warn(format string, args ...any) { t.add(LevelWarning, format, args...) }
