package names

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestColumnsInAnyCharset fills columns whose names clients send in their own character sets,
// beside other columns of such names, and reads back that every row has an id of ours.
func TestColumnsInAnyCharset(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		fillSpelledColumns(t, server)
	})
}

func fillSpelledColumns(t *testing.T, server *servers.Server) {
	db := harness.Database(t, server)
	direct := wireclient.Open(t, server.Addr, db)
	direct.Must(t, "SET NAMES utf8mb4")
	rules := ""
	for i, c := range spelledTables {
		quoted := "`" + c.name + "`"
		direct.Must(t, fmt.Sprintf("CREATE TABLE c%d (%s BIGINT NOT NULL PRIMARY KEY, a BIGINT)", i, quoted))
		rules += fmt.Sprintf("  - {table: %q, column: %q, source: ids}\n", fmt.Sprintf("%s.c%d", db, i), c.name)
	}
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: %d}}}
rules:
%s`, server.Addr, pair.SourceStart, rules))
	for i, c := range spelledTables {
		if c.only != "" && c.only != server.Kind.String() {
			continue
		}
		t.Run(fmt.Sprintf("%s in %s", c.name, c.charset), func(t *testing.T) {
			s := wireclient.Open(t, proxy.Addr("a"), db)
			s.Must(t, "SET NAMES utf8mb4", "SET character_set_client="+c.charset)
			statement := strings.NewReplacer("<T>", fmt.Sprintf("c%d", i), "<N>", "`"+c.sent+"`")
			n := 11
			for _, text := range []string{
				"INSERT INTO <T> (a) VALUES (1)", "INSERT INTO <T> VALUES (NULL,2)", "INSERT INTO <T> (<N>,a) VALUES (NULL,3)",
				"INSERT INTO <T> (a,<N>) VALUES (4,DEFAULT),(5,0)", "INSERT IGNORE INTO <T> (a) VALUES (6)", "REPLACE INTO <T> SET a=7",
				"INSERT INTO <T> SET <N>=NULL,a=8", "INSERT INTO <T> (a) VALUES (9) ON DUPLICATE KEY UPDATE <N>=LAST_INSERT_ID(<N>),a=10",
				"INSERT INTO <T> (a) SELECT 11 UNION SELECT 12",
			} {
				s.Must(t, statement.Replace(text))
			}
			if server.Kind == servers.MySQL {
				s.Must(t, statement.Replace("INSERT INTO <T> VALUES (NULL,13) AS fresh ON DUPLICATE KEY UPDATE a=fresh.a"))
				n++
			}
			prepared, err := s.Prepare("p", statement.Replace("INSERT INTO <T> (<N>,a) VALUES (?,?)"))
			assert.MustTrue(t, err == nil && prepared[0].Err == nil, "%v %v", err, prepared)
			replies, err := s.Execute("p", wireclient.Execution{Args: []wireclient.Argument{{Kind: wireclient.Long(1).Kind, Null: true}, wireclient.Long(14)}})
			assert.MustTrue(t, err == nil && replies[0].Err == nil, "%v %v", err, replies)
			if c.unquoted {
				s.Must(t, strings.NewReplacer("<T>", fmt.Sprintf("c%d", i), "<N>", c.sent).Replace("INSERT INTO <T> (<N>,a) VALUES (NULL,15)"))
				n++
			}
			got := direct.Value(t, fmt.Sprintf("SELECT CONCAT(COUNT(*),' ',MIN(`%s`)>=%d) FROM c%d", c.name, pair.SourceStart, i))
			assert.True(t, got == fmt.Sprintf("%d 1", n+1), "rows, all with ids: %s, want %d 1", got, n+1)
		})
	}
}
