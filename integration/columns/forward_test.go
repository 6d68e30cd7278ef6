package columns

import (
	"os"
	"path/filepath"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
)

// forwardScripts send statements that are not filled to tables whose rule says unsupported:
// forward. DIR/f is a file with one column.
var forwardScripts = []pair.Script{
	{Name: "strict", Steps: []pair.Step{ // the server refuses what has no id itself
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"}, {Text: "INSERT INTO bare SELECT 5, 7"}, {Text: "SELECT id, a FROM bare", Want: "5,7"},
	}},
	{Name: "not strict", Steps: []pair.Step{
		{Text: "SET sql_mode=''"},
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "sql_mode is not strict"},
		{Text: "SELECT id, a FROM bare"},
		{Text: "INSERT INTO bare (a) VALUES (7)"},
		{Text: "SELECT id, a FROM bare", Want: "id,7"},
	}},
	{Name: "not strict, by a variable", Steps: []pair.Step{
		{Text: "SET @m=''"}, {Text: "SET @@session.sql_mode=@m"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "not strict, in the same text", Steps: []pair.Step{
		{Text: "SET sql_mode='NO_ENGINE_SUBSTITUTION'; INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "not strict in ORACLE mode", Only: "MariaDB", Steps: []pair.Step{
		{Text: "SET sql_mode='ORACLE'"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "strict again", Steps: []pair.Step{
		{Text: "SET sql_mode=''"},
		{Text: "SET sql_mode='TRADITIONAL'"},
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"},
		{Text: "SET sql_mode=''"},
		{Text: "RESET"},
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"},
		{Text: "SELECT id, a FROM bare"},
	}},
	{Name: "strict in a function alone", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "SELECT strictly()", Want: "1"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "not strict in a procedure alone", Steps: []pair.Step{
		{Text: "CALL loosely()"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "IGNORE", Steps: []pair.Step{
		{Text: "INSERT IGNORE INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "IGNORE"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "a mode of its own", Only: "MariaDB", Steps: []pair.Step{
		{Text: "SET STATEMENT sql_mode='' FOR INSERT INTO bare (a) VALUES (7)", Want: "!1235", Says: "sql_mode of its own"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "a mode in a hint", Only: "MySQL", Steps: []pair.Step{
		{Text: "INSERT /*+ SET_VAR(sql_mode='') */ INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "sql_mode of its own"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "a SQL PREPARE", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "PREPARE s FROM 'INSERT INTO bare (id,a) VALUES (IF(1,NULL,2),7)'", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "LOAD DATA", Steps: []pair.Step{
		{Text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare (a)", Want: "!1235", Says: "the list of columns"},
		{Text: "LOAD DATA LOCAL INFILE 'DIR/f' INTO TABLE bare CHARACTER SET utf16", Want: "!1235", Says: "LOCAL"},
		{Text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare", Want: "!1261"},
		{Text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare (id)"},
		{Text: "SELECT id, a FROM bare", Want: "7,NULL"},
	}},
	{Name: "a default", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "INSERT IGNORE INTO byitself (a) SELECT 7+SLEEP(0)"}, {Text: "SELECT id, a FROM byitself", Want: "NULL,7"},
	}},
	{Name: "AUTO_INCREMENT", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "INSERT IGNORE INTO counted (a) SELECT 7+SLEEP(0)"}, {Text: "SELECT id, a FROM counted", Want: "1,7"},
	}},
}

// TestForwardStoresNoZero checks that no statement that a rule forwards stores 0 for an id.
func TestForwardStoresNoZero(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		const rule = ", column: id, source: ids, unsupported: forward}"
		w := pair.New(t, server, "[{table: DB.bare"+rule+", {table: DB.byitself"+rule+", {table: DB.counted"+rule+"]",
			"CREATE FUNCTION strictly() RETURNS INT DETERMINISTIC BEGIN SET sql_mode='STRICT_ALL_TABLES'; RETURN 1; END",
			"CREATE PROCEDURE loosely() BEGIN SET sql_mode=''; DO 1; END")
		assert.Must(t, os.WriteFile(filepath.Join(server.Dir, "f"), []byte("7\n"), 0o644))
		w.Run(t, forwardScripts, "DROP TABLE IF EXISTS bare, byitself, counted", "CREATE TABLE bare (id BIGINT NOT NULL, a INT)",
			"CREATE TABLE byitself (id BIGINT, a INT)", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
	})
}
