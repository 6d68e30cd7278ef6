package columns

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// TestNoNumberInLaterRows writes text that is no number for ids, in the first row and in others.
// Whether a server refuses it, or takes it for 0 and generates, hangs on sql_mode and on the
// table's engine.
func TestNoNumberInLaterRows(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`)
		direct := wireclient.Open(t, server.Addr, w.DB)
		direct.Must(t, "SET sql_mode=''")
		outcomes := map[string]int{}
		for i, engine := range []string{"MyISAM", "INNODB"} {
			direct.Must(t, fmt.Sprintf("CREATE TABLE t_%s (id BIGINT UNSIGNED PRIMARY KEY, a VARCHAR(10)) ENGINE=%[1]s", engine),
				fmt.Sprintf("CREATE TABLE %s.t_%s (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a VARCHAR(10)) ENGINE=%[2]s", w.Text("DB_other"), engine))
			for _, mode := range []string{"", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO"} {
				for n, way := range waysToInsert(server.Kind, "t_"+engine) {
					if (n+i+len(mode))%width.Of(2, 1) != 0 { // in each mode half of them, the other half in another
						continue
					}
					got, want := way.outcome(t, w.Addr, w.DB, "t_"+engine, mode), way.outcome(t, server.Addr, w.Text("DB_other"), "t_"+engine, mode)
					assert.True(t, got == want, "%q, %s: %s, natively %s", mode, way.name, got, want)
					outcomes[want]++
				}
			}
		}
		assert.True(t, len(outcomes) >= 4, "natively %v", outcomes)
	})
}

// wayToInsert is an INSERT into the table t.
type wayToInsert struct {
	name string
	run  func(*wireclient.Session) ([]wireclient.Reply, error)
}

// waysToInsert are INSERTs of a text that is no number, or a number below zero, in each way in
// which ids are looked at.
func waysToInsert(kind servers.Kind, table string) (ways []wayToInsert) {
	for _, id := range []string{"abc", "", "-5"} {
		for _, rows := range []string{"('%s', 'a')", "(7, 'a'), ('%s', 'b')", "(NULL, 'a'), ('%s', 'b'), (NULL, 'c')", "('%s', 'a'), (7, 'b')"} {
			text := "INSERT INTO " + table + " (id, a) VALUES " + fmt.Sprintf(rows, id)
			asked := "INSERT INTO " + table + " (id, a) VALUES " + strings.ReplaceAll(rows, "'%s'", "?")
			if id != "-5" { // a literal below zero is refused where the server makes 0 of it
				ways = append(ways,
					wayToInsert{text, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Query(text) }},
					wayToInsert{"prepared " + text, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Prepared(text) }})
			}
			ways = append(ways,
				wayToInsert{asked + " " + id, func(s *wireclient.Session) ([]wireclient.Reply, error) {
					if replies, err := s.Prepare("p", asked); err != nil || replies[0].Err != nil {
						return replies, err
					}
					return s.Execute("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.Varchar(id)}})
				}},
				wayToInsert{"EXECUTE of " + asked + " " + id, func(s *wireclient.Session) ([]wireclient.Reply, error) {
					var all []wireclient.Reply
					for _, text := range []string{"SET @id='" + id + "'", "PREPARE p FROM '" + strings.ReplaceAll(asked, "'", "''") + "'", "EXECUTE p USING @id"} {
						replies, err := s.Query(text)
						if err != nil {
							return nil, err
						}
						all = append(all, replies...)
					}
					return all, nil
				}})
		}
		if kind == servers.MariaDB {
			for _, ids := range [][]string{{"7", id}, {id, "7"}} {
				ways = append(ways, wayToInsert{fmt.Sprintf("bulk of %q", ids), func(s *wireclient.Session) ([]wireclient.Reply, error) {
					if replies, err := s.Prepare("p", "INSERT INTO "+table+" (id, a) VALUES (?, ?)"); err != nil || replies[0].Err != nil {
						return replies, err
					}
					var rows [][]wireclient.Argument
					for i, id := range ids {
						rows = append(rows, []wireclient.Argument{wireclient.Varchar(id), wireclient.Varchar(fmt.Sprint(i))})
					}
					return s.Bulk("p", true, rows)
				}})
			}
		}
	}
	return ways
}

// outcome is the error of the INSERT, or the ids in the table: "id" for those that were generated.
func (way wayToInsert) outcome(t *testing.T, addr, db, table, mode string) string {
	t.Helper()
	s := assert.Of(wireclient.DialWith(wireclient.BulkOperations, addr, db)).Must(t)
	defer s.Close()
	s.Must(t, "DELETE FROM "+table, "ALTER TABLE "+table+fmt.Sprintf(" AUTO_INCREMENT=%d", pair.SourceStart))
	s.Must(t, "SET sql_mode='"+mode+"'")
	replies := assert.Of(way.run(s)).Must(t)
	failed := ""
	for _, r := range replies {
		if r.Err != nil {
			failed = fmt.Sprint(r.Err.Code, ": ")
		}
	}
	return failed + pair.Shown(s.Must(t, "SELECT id, a FROM "+table+" ORDER BY a"))
}
