package rewriter

import (
	"testing"

	"idproxy/integration/assert"
)

func TestShowsAll(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t SET a=1 RETURNING *":                                       true,
		"REPLACE t SET a=(SELECT 2*3), b=2*a RETURNING id, t . *":                 true,
		"INSERT INTO t SET a=1 ON DUPLICATE KEY UPDATE a=2 RETURNING id,/**/*":    true,
		"INSERT INTO t SET a=1 RETURNING a*2, (SELECT COUNT(*) FROM u)":           false,
		"INSERT INTO t SET a=1":                                                   false,
		"INSERT INTO t (a) VALUES (1) RETURNING *":                                false,
		"INSERT INTO t VALUES (CAST('a' AS CHAR CHARACTER SET utf8)) RETURNING *": false,
		"INSERT INTO t SET a='RETURNING *', b=1, c=2*3":                           false,
		"INSERT INTO t SET a=1 RETURNING '":                                       false,
	} {
		assert.Equal(t, text, ShowsAll([]byte(text), Mode{MariaDB: true}), want)
	}
}
