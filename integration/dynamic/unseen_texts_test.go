package dynamic

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/wireclient"
)

// unseenTexts run statements whose texts are not known before the server runs them, or that the
// reader does not read. No rule concerns them, and "inserts" stands for an INSERT into a table
// without a rule.
var unseenTexts = []string{
	"EXECUTE IMMEDIATE SFORMAT('inserts')", "EXECUTE IMMEDIATE CONCAT('inser', (SELECT 't into other (k) values (3)'))", "EXECUTE IMMEDIATE _cp1257 0xD182", "EXECUTE IMMEDIATE (SELECT @z)", "EXECUTE IMMEDIATE COALESCE(NULL, @z)",
	"EXECUTE IMMEDIATE @z", "EXECUTE IMMEDIATE @nothing", "EXECUTE IMMEDIATE nosuch('x')", "EXECUTE IMMEDIATE CONCAT('SELECT ', SLEEP(0))", "EXECUTE IMMEDIATE 'SELECT ?' USING NEXTVAL(nosuch)", "EXECUTE IMMEDIATE CONCAT('a' 'b',)", "EXECUTE IMMEDIATE CONCAT('SELECT ', RAND(3))",
	"EXECUTE IMMEDIATE CONVERT(@z USING utf16)", "EXECUTE IMMEDIATE CAST(@z AS NCHAR)", "EXECUTE IMMEDIATE IF(@x := 1, @z, 0)", "EXECUTE IMMEDIATE 'SELECT 1' [", "EXECUTE IMMEDIATE \x01", "EXECUTE IMMEDIATE ?", "EXECUTE IMMEDIATE CONCAT(?, @z)",
	"PREPARE p FROM SFORMAT('inserts'); EXECUTE p", "PREPARE p FROM CONCAT(@z, LEFT(UUID(), 0)); EXECUTE p; EXECUTE p; DEALLOCATE PREPARE p", "PREPARE p FROM (SELECT @z); EXECUTE p", "PREPARE p FROM @z; EXECUTE p; SELECT ROW_COUNT()", "PREPARE p FROM @nothing; EXECUTE p",
	"PREPARE p FROM @z \x01; EXECUTE p", "SET sql_mode = 'ANSI_QUOTES' x; INSERT INTO other (k) VALUES (1)", "SELECT 1; SELEKT 1; SET sql_mode = ''; INSERT INTO other (k) VALUES (1)", "SET sql_mode = ''; INSERT INTO other (k VALUES (1); SELECT 2", "CALL nosuch; INSERT INTO other (k) VALUES (1)", "PREPARE p FROM 'SELEKT'; INSERT INTO other (k) VALUES (1)", "PREPARE \x01 FROM @z", "EXECUTE \x01", "DEALLOCATE PREPARE \x01", "PREPARE p FROM 'SELECT ?'; EXECUTE p USING @z [", "PREPARE p FROM 'SELECT 1' /*!99999 x */; EXECUTE p", "PREPARE p /*!50000 FROM 'SELECT 1' */; EXECUTE p",
	"BEGIN NOT ATOMIC PREPARE p FROM @z; EXECUTE p; END", "BEGIN NOT ATOMIC EXECUTE IMMEDIATE @z; END", "BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT(@z, ''); INSERT INTO other (k) VALUES (7); END", "BEGIN NOT ATOMIC DECLARE v TEXT DEFAULT 'inserts'; EXECUTE IMMEDIATE v; END",
	"IF 1 THEN EXECUTE IMMEDIATE @z; END IF", "FOR i IN 1..2 DO EXECUTE IMMEDIATE @z; END FOR", "WHILE (SELECT COUNT(*) FROM other) < 3 DO EXECUTE IMMEDIATE @z; END WHILE", "REPEAT PREPARE p FROM @z; EXECUTE p; UNTIL 1 END REPEAT", "CASE 1 WHEN 1 THEN EXECUTE IMMEDIATE @z; END CASE",
	"SET STATEMENT max_statement_time = 100 FOR EXECUTE IMMEDIATE @z", "SET STATEMENT max_statement_time = 100 FOR PREPARE p FROM @z; EXECUTE p", "BEGIN NOT ATOMIC PREPARE p FROM @z; END; EXECUTE p", "BEGIN NOT ATOMIC \x01 END", "BEGIN NOT ATOMIC INSERT INTO @x; END",
	"BEGIN NOT ATOMIC INSERT INTO other (k) VALUES (5); SELECT 'it''s'; END", "CREATE PROCEDURE again() BEGIN EXECUTE IMMEDIATE @z; END; SELECT 1; CALL again()", "INSERT INTO (SELECT 1)", "INSERT INTO @x (k) VALUES (1)", "INSERT INTO other\xff (k) VALUES (1)", "(INSERT INTO other (k) VALUES (1))",
	"INSERT INTO other (k) VALUES ('a", "INSERT INTO `other (k) VALUES (1)", "INSERT INTO \"other\" (k) VALUES (1)", "INSERT INTO other (k) VALUES (1) /*", "REPLACE INTO (other) (k) VALUES (1)", "LOAD DATA INFILE 'x' INTO other", "LOAD DATA INFILE 'nosuch' INTO TABLE @x", "INSERT INTO other\x00 (k) VALUES (1)",
}

// TestUnseenTexts holds that dynamic SQL and texts that cannot be read run as they do natively
// while no rule concerns them: with rules for tables that do not exist, and for one that no
// statement touches.
func TestUnseenTexts(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, rules := range []string{"[{table: DB.nosuchtable, column: id, source: ids}]", `[{table: "nosuchschema.*", column: id, source: ids}, {table: DB.untouched, column: id, source: ids}]`} {
			t.Run(fmt.Sprint(server.Kind, " ", rules), func(t *testing.T) {
				t.Parallel()
				w := pair.New(t, server, rules, "CREATE TABLE other (k INT)", "CREATE TABLE untouched (id BIGINT NOT NULL PRIMARY KEY, k INT)")
				direct := wireclient.Open(t, server.Addr, w.DB)
				for _, text := range unseenTexts {
					text = strings.ReplaceAll(text, "inserts", "INSERT INTO other (k) VALUES (1)")
					var stored [2]string
					both(t, w, w.DB, func(s *wireclient.Session) ([]wireclient.Reply, error) {
						direct.Must(t, "DELETE FROM other", "DROP PROCEDURE IF EXISTS again")
						s.Must(t, "SET @z = 'INSERT INTO other (k) VALUES (1)'")
						replies, err := s.Query(text)
						stored[0], stored[1] = stored[1], direct.Value(t, "SELECT COALESCE(GROUP_CONCAT(k ORDER BY k), '') FROM other")
						return replies, err
					}, text)
					assert.True(t, stored[0] == stored[1], "%q stores %s, natively %s", text, stored[1], stored[0])
					both(t, w, w.DB, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Prepare("p", text) }, "prepared: "+text)
				}
			})
		}
	}
}
