package integration

import (
	"os"
	"path/filepath"
	"testing"

	"idproxy/integration/harness"
)

// forwardScripts send statements that are not filled to tables whose rule says unsupported: forward. DIR/f is a file
// with one column.
var forwardScripts = []nameScript{
	{"strict", "", []nameStep{ // the server refuses what has no id itself
		{text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1364"}, {text: "INSERT INTO bare SELECT 5, 7"}, {text: "SELECT id, a FROM bare", want: "5,7"},
	}},
	{"not strict", "", []nameStep{
		{text: "SET sql_mode=''"},
		{text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1235", says: "sql_mode is not strict"},
		{text: "SELECT id, a FROM bare"},
		{text: "INSERT INTO bare (a) VALUES (7)"},
		{text: "SELECT id, a FROM bare", want: "id,7"},
	}},
	{"not strict, by a variable", "", []nameStep{
		{text: "SET @m=''"}, {text: "SET @@session.sql_mode=@m"}, {text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1235", says: "store 0"}, {text: "SELECT id, a FROM bare"},
	}},
	{"not strict, in the same text", "", []nameStep{
		{text: "SET sql_mode='NO_ENGINE_SUBSTITUTION'; INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1235", says: "store 0"}, {text: "SELECT id, a FROM bare"},
	}},
	{"not strict in ORACLE mode", "MariaDB", []nameStep{
		{text: "SET sql_mode='ORACLE'"}, {text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1235", says: "store 0"}, {text: "SELECT id, a FROM bare"},
	}},
	{"strict again", "", []nameStep{
		{text: "SET sql_mode=''"},
		{text: "SET sql_mode='TRADITIONAL'"},
		{text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1364"},
		{text: "SET sql_mode=''"},
		{text: "RESET"},
		{text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1364"},
		{text: "SELECT id, a FROM bare"},
	}},
	{"strict in a function alone", "", []nameStep{
		{text: "SET sql_mode=''"}, {text: "SELECT strictly()", want: "1"}, {text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1235", says: "store 0"}, {text: "SELECT id, a FROM bare"},
	}},
	{"not strict in a procedure alone", "", []nameStep{
		{text: "CALL loosely()"}, {text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", want: "!1364"}, {text: "SELECT id, a FROM bare"},
	}},
	{"IGNORE", "", []nameStep{
		{text: "INSERT IGNORE INTO bare (a) SELECT 7+SLEEP(0)", want: "!1235", says: "IGNORE"}, {text: "SELECT id, a FROM bare"},
	}},
	{"a mode of its own", "MariaDB", []nameStep{
		{text: "SET STATEMENT sql_mode='' FOR INSERT INTO bare (a) VALUES (7)", want: "!1235", says: "sql_mode of its own"}, {text: "SELECT id, a FROM bare"},
	}},
	{"a mode in a hint", "MySQL", []nameStep{
		{text: "INSERT /*+ SET_VAR(sql_mode='') */ INTO bare (a) SELECT 7+SLEEP(0)", want: "!1235", says: "sql_mode of its own"}, {text: "SELECT id, a FROM bare"},
	}},
	{"a SQL PREPARE", "", []nameStep{
		{text: "SET sql_mode=''"}, {text: "PREPARE s FROM 'INSERT INTO bare (id,a) VALUES (IF(1,NULL,2),7)'", want: "!1235", says: "store 0"}, {text: "SELECT id, a FROM bare"},
	}},
	{"LOAD DATA", "", []nameStep{
		{text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare (a)", want: "!1235", says: "the list of columns"},
		{text: "LOAD DATA LOCAL INFILE 'DIR/f' INTO TABLE bare CHARACTER SET utf16", want: "!1235", says: "LOCAL"},
		{text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare", want: "!1261"},
		{text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare (id)"},
		{text: "SELECT id, a FROM bare", want: "7,NULL"},
	}},
	{"a default", "", []nameStep{
		{text: "SET sql_mode=''"}, {text: "INSERT IGNORE INTO byitself (a) SELECT 7+SLEEP(0)"}, {text: "SELECT id, a FROM byitself", want: "NULL,7"},
	}},
	{"AUTO_INCREMENT", "", []nameStep{
		{text: "SET sql_mode=''"}, {text: "INSERT IGNORE INTO counted (a) SELECT 7+SLEEP(0)"}, {text: "SELECT id, a FROM counted", want: "1,7"},
	}},
}

// TestForwardStoresNoZero checks that no statement that a rule forwards stores 0 for an id.
func TestForwardStoresNoZero(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			const rule = ", column: id, source: ids, unsupported: forward}"
			w := newNameWorld(t, server, "[{table: DB.bare"+rule+", {table: DB.byitself"+rule+", {table: DB.counted"+rule+"]",
				"CREATE FUNCTION strictly() RETURNS INT DETERMINISTIC BEGIN SET sql_mode='STRICT_ALL_TABLES'; RETURN 1; END",
				"CREATE PROCEDURE loosely() BEGIN SET sql_mode=''; DO 1; END")
			if err := os.WriteFile(filepath.Join(server.Dir, "f"), []byte("7\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			w.run(t, forwardScripts, "DROP TABLE IF EXISTS bare, byitself, counted", "CREATE TABLE bare (id BIGINT NOT NULL, a INT)",
				"CREATE TABLE byitself (id BIGINT, a INT)", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		})
	}
}
