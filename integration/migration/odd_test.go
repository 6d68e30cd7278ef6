package migration

import (
	"database/sql"
	"maps"
	"slices"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// oddTables are tables whose names, engines and columns are not like those of most.
var oddTables = map[string]string{
	"`a``b`":      "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
	"`q'\"uote`":  "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
	"UPPER":       "(ID BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT)",
	"partitioned": "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 4",
	"isam":        "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE=MyISAM",
	"memory":      "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE=MEMORY",
	"compressed":  "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) ROW_FORMAT=COMPRESSED",
	"words":       "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b TEXT, FULLTEXT KEY (b))",
	"filled":      "(id INT ZEROFILL AUTO_INCREMENT PRIMARY KEY, a INT)",
	"made":        "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT AS (a + 1) STORED, c INT AS (a + 1) VIRTUAL)",
	"second":      "(a INT, id BIGINT AUTO_INCREMENT, PRIMARY KEY (a, id), KEY (id))",
	"versioned":   "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING", // MariaDB alone
	"`two words`": "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
	"`Größe`":     "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
	"alone":       "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", // on one shard
}

// TestOddTables walks such tables there and back.
func TestOddTables(t *testing.T) {
	s := startSite(t)
	names := map[int][]string{}
	for i, server := range s.shards {
		for _, name := range slices.Sorted(maps.Keys(oddTables)) {
			lacks := name == "alone" && i == 1 || name == "versioned" && server.Kind == servers.MySQL
			if !lacks && (width.Matrix() || len(names[i])%4 == 0 || name == "memory" || name == "versioned" || name == "partitioned" || name[0] == '`') {
				harness.MustExec(t, s.around(i), "CREATE TABLE "+name+" "+oddTables[name])
				names[i] = append(names[i], name)
			}
		}
	}
	// insert inserts a row through a proxy and one around it, of which the latter may be refused.
	insert := func(when string, through, around func(id int64) bool) {
		t.Helper()
		for i := range s.shards {
			proxy := s.through(i, i)
			for _, name := range names[i] {
				for way, db := range map[string]*sql.DB{"through": proxy, "around": s.around(i)} {
					r, err := db.Exec("INSERT INTO " + name + " (a) VALUES (1)")
					if way == "around" && around == nil {
						harness.WantError(t, err, 1364)
						continue
					}
					if err != nil {
						t.Errorf("%s, shard%d, %s %s: %v", when, i, way, name, err)
						continue
					}
					want := map[string]func(int64) bool{"through": through, "around": around}[way]
					id, err := r.LastInsertId()
					assert.True(t, err == nil && want(id), "%s, shard%d, %s %s: id %d, %v", when, i, way, name, id, err)
				}
			}
		}
	}
	own := func(id int64) bool { return id < 1000 }
	given := func(id int64) bool { return id >= 1_000_000 && id < 999_999_999 }
	banded := func(id int64) bool { return id >= 1_000_000_000 }
	s.begin("observe")
	insert("observed", own, own)
	s.steps("lift", "enforce")
	insert("enforced", given, banded)
	s.steps("watch", "drop")
	insert("dropped", given, nil)
	s.must("--run drop --back")
	insert("counting again", given, banded)
	s.back("watch", "enforce")
	insert("observed again", banded, banded)
	s.must("--run lift --back")
}
