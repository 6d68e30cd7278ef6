package relay

import (
	"idproxy/rule"
)

// RuleBook finds the rules of a table.
type RuleBook struct {
	*rule.List
	// Fold: names compare without regard to case, as lower_case_table_names
	// says, or as is safe before the server was asked.
	Fold bool
}
