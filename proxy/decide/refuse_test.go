package decide

import (
	"testing"

	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Whether a statement that goes in without its id may store 0. That both
// servers do so is shown in integration.
func TestStoresZero(t *testing.T) {
	bare := rule.Column{Name: "id"}
	strict, loose, unknown := protocol.Vars{Known: protocol.KnowAll, Strict: true}, protocol.Vars{Known: protocol.KnowAll}, protocol.Vars{Known: protocol.KnowAll &^ protocol.KnowStrict, Strict: true}
	tests := []struct {
		name   string
		column rule.Column
		state  protocol.Vars
		sql    string
		why    bool
		ask    bool
	}{
		{name: "strict", column: bare, state: strict, sql: "INSERT INTO t SELECT 1"},
		{name: "not strict", column: bare, state: loose, sql: "INSERT INTO t SELECT 1", why: true},
		{name: "not known", column: bare, state: unknown, sql: "INSERT INTO t SELECT 1", ask: true},
		{name: "a default", column: rule.Column{Name: "id", Default: true}, state: loose, sql: "INSERT IGNORE INTO t SELECT 1"},
		{name: "AUTO_INCREMENT", column: rule.Column{Name: "id", AutoIncrement: true}, state: unknown, sql: "INSERT IGNORE INTO t SELECT 1"},
		{name: "no such column, a view", state: loose, sql: "INSERT INTO v VALUES (1)", why: true},
		{name: "IGNORE", column: bare, state: strict, sql: "INSERT ignore INTO t SELECT 1", why: true},
		{name: "IGNORE, mode not known", column: bare, state: unknown, sql: "INSERT IGNORE INTO t SELECT 1", why: true},
		{name: "SET_VAR", column: bare, state: strict, sql: "INSERT /*+ SET_VAR(SQL_MODE=0) */ INTO t SELECT 1", why: true},
		{name: "SET STATEMENT", column: bare, state: strict, sql: "SET STATEMENT sql_mode='' FOR INSERT INTO t SELECT 1", why: true},
		{name: "LOAD DATA", column: bare, state: strict, sql: "LOAD DATA INFILE 'f' INTO TABLE t IGNORE 1 LINES"},
		{name: "LOAD DATA, the column in its list", column: bare, state: strict, sql: "LOAD DATA INFILE 'f' INTO TABLE t IGNORE 1 LINES (a,`ID`)"},
		{name: "LOAD DATA, not in its list", column: bare, state: strict, sql: "LOAD DATA INFILE 'id' INTO TABLE t (a, ident, parent_id, id2)", why: true},
		{name: "LOAD DATA LOCAL", column: bare, state: strict, sql: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t", why: true},
		{name: "LOAD DATA LOCAL in small letters", column: bare, state: strict, sql: "load data local infile 'f' into table t", why: true},
		{name: "LOAD DATA, a column named as the table", column: bare, state: strict, sql: "load data infile 'f' into\ttable t (a, t)", why: true},
		{name: "LOAD DATA with a comment", column: bare, state: strict, sql: "load data infile 'f' ignore into /* */ table t", why: true},
		{name: "LOAD DATA IGNORE", column: bare, state: strict, sql: "LOAD DATA INFILE 'f' IGNORE INTO TABLE t (id)", why: true},
		{name: "LOAD DATA, not strict", column: bare, state: loose, sql: "LOAD DATA INFILE 'f' INTO TABLE t (id)", why: true},
	}
	for _, tt := range tests {
		head, _ := rewriter.ReadHead([]byte(tt.sql), rewriter.Mode{MariaDB: true})
		why, ask := storesZero(&tt.state, tt.column, head, []byte(tt.sql))
		if (why != "") != tt.why || ask != tt.ask {
			t.Errorf("%s: %q, ask %v; want a reason %v, ask %v", tt.name, why, ask, tt.why, tt.ask)
		}
	}
}
