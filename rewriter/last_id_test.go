package rewriter

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func TestReadLastIDQuery(t *testing.T) {
	for _, c := range []struct {
		text   string
		column string // empty: it is something else
	}{
		{"SELECT LAST_INSERT_ID()", "LAST_INSERT_ID()"},
		{"select last_insert_id();", "last_insert_id()"},
		{" /* c */ SELECT\tLAST_INSERT_ID( ) -- x\n", "LAST_INSERT_ID( )"},
		{"SELECT LAST_INSERT_ID() AS id", "id"},
		{"SELECT LAST_INSERT_ID() newId FROM dual LIMIT 1 ;", "newId"},
		{"SELECT LAST_INSERT_ID() as `last id`", "last id"},
		{"SELECT LAST_INSERT_ID() 'id'", "id"},
		{"SELECT LAST_INSERT_ID() AS \"id\"", "id"},
		{"SELECT @@identity", "@@identity"},
		{"SELECT @@IDENTITY AS 'Identity'", "Identity"},
		{"SELECT @@session.identity", "@@session.identity"},
		{"select @@LOCAL.last_insert_id from DUAL", "@@LOCAL.last_insert_id"},
		{"SELECT LAST_INSERT_ID()/* a; b */;/* behind it */ SELECT 2", "LAST_INSERT_ID()"},
		{"SELECT LAST_INSERT_ID() AS ';';'é", ";"},

		{"SELECT 1", ""},
		{"SELECT LAST_INSERT_ID(5)", ""},
		{"SELECT LAST_INSERT_ID()+1", ""},
		{"SELECT LAST_INSERT_ID(), 1", ""},
		{"SELECT LAST_INSERT_ID", ""},
		{"SELECT LAST_INSERT_ID(", ""},
		{"SELECT LAST_INSERT_ID() AS", ""},
		{"SELECT LAST_INSERT_ID() AS ``", ""},
		{"SELECT LAST_INSERT_ID() AS 'it''s'", ""},
		{"SELECT LAST_INSERT_ID() AS 'é'", ""},
		{"SELECT LAST_INSERT_ID() FROM t", ""},
		{"SELECT LAST_INSERT_ID() FROM dual, t", ""},
		{"SELECT LAST_INSERT_ID() FROM dual WHERE 0", ""},
		{"SELECT LAST_INSERT_ID() LIMIT 0", ""},
		{"SELECT LAST_INSERT_ID() INTO @x", ""},
		{"SELECT LAST_INSERT_ID() UNION SELECT 2", ""},
		{"SELECT LAST_INSERT_ID() /* a; b", ""},
		{"SELECT LAST_INSERT_ID() 'a; b", ""},
		{"SELECT LAST_INSERT_ID() /*! + 1 */", ""},
		{"SELECT DISTINCT LAST_INSERT_ID()", ""},
		{"SELECT @@global.identity", ""},
		{"SELECT @@identity.x", ""},
		{"SELECT @identity", ""},
		{"SELECT identity", ""},
		{"SET identity = 5", ""},
		{"", ""},
	} {
		q, ok := ReadLastIDQuery([]byte(c.text))
		assert.True(t, ok == (c.column != "") && (!ok || q.Column == c.column && q.Variable == strings.Contains(c.text, "@@")), "%q: %+v, %v; want column %q", c.text, q, ok, c.column)
		rest := c.text[q.End:]
		assert.True(t, !ok || rest == "" || strings.HasPrefix(rest, ";"), "%q: %q is behind it", c.text, rest)
	}
}
