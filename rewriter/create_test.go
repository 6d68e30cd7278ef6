package rewriter

import (
	"testing"

	"idproxy/integration/assert"
)

func TestCreatesRows(t *testing.T) {
	for text, want := range map[string]bool{
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT) SELECT a FROM x":                                      true,
		"CREATE OR REPLACE TABLE s.t (`ID` BIGINT, PRIMARY KEY (id)) ENGINE=InnoDB AS (SELECT a FROM x)":     true,
		"CREATE TABLE IF NOT EXISTS t (id INT) IGNORE WITH c AS (SELECT 1 a) SELECT * FROM c":                true,
		"CREATE TABLE t (id INT) TABLE x":                                                                    true,
		"CREATE TABLE t (id INT) VALUES ROW(1)":                                                              true,
		"CREATE TABLE t (id INT) VALUES (1)":                                                                 true,
		"CREATE TABLE t (a INT, id INT) /*!50100 PARTITION BY HASH (id) */ SELECT 1 a":                       true,
		"CREATE TABLE t (id INT DEFAULT 'x":                                                                  true,
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)":                                                      false,
		"CREATE TABLE t SELECT id, a FROM x":                                                                 false,
		"CREATE TABLE t AS (SELECT id, a FROM x)":                                                            false,
		"CREATE TABLE t (a INT) SELECT id, 1 a FROM x":                                                       false,
		"CREATE TABLE t LIKE x":                                                                              false,
		"CREATE TABLE t (id INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (5))":                 false,
		"CREATE TABLE t (id INT) PARTITION BY LIST (id) (PARTITION p VALUES IN (5))":                         false,
		"CREATE TABLE t (id INT, a VARCHAR(9) DEFAULT 'select' COMMENT 'select') COMMENT = 'select table t'": false,
		"CREATE TABLE t (id INT) WITH SYSTEM VERSIONING":                                                     false,
		"DROP TABLE t":                   false,
		"CREATE VIEW v (id) AS SELECT 1": false,
		"CREATE INDEX i ON t (id)":       false,
		"INSERT INTO t (id) SELECT 1":    false,
	} {
		assert.Equal(t, text, CreatesRows([]byte(text), Mode{Version: 101119, MariaDB: true}, "id"), want)
	}
}
