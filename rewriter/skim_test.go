package rewriter

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// A word or dollar quote right behind the number of a version comment does not go on that number.
func TestInsideOfVersionCommentsBeginsAfresh(t *testing.T) {
	m := Mode{Version: 90704}
	p := new(Plan)
	for text, reads := range map[string]bool{
		"INSERT INTO t (a) VALUES (1+/*!80000LAST_INSERT_ID()*/)": true,
		"INSERT INTO t (a) VALUES (1+/*!80000 identity*/)":        true,
		"INSERT INTO t (a) VALUES (1+/*!80000x*/)":                false,
		"INSERT INTO t (a) VALUES (1+0x80000identity)":            false,
	} {
		if err := p.Read(&Statement{Text: []byte(text), Mode: m, Rules: []*rule.Rule{testRule}}); err != nil || p.ReadsLastID != reads {
			t.Errorf("%s: %v, reads LAST_INSERT_ID %v", text, err, p.ReadsLastID)
		}
	}
	if err := p.Read(&Statement{Text: []byte("INSERT INTO t (a) VALUES (/*!80000$$),($$*/)"), Mode: m, Rules: []*rule.Rule{testRule}}); err == nil {
		t.Errorf("a dollar quote is read as %d tuples", p.Rows)
	}
	text := []byte("SELECT /*!80000$$;$$*/; SELECT 2")
	assert.Equal(t, "split at", Split(nil, text, Mode{Version: 90704, MultiStatements: true})[0].End, strings.Index(string(text), "; SELECT"))
}
