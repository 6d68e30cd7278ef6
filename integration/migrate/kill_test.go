package migrate

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// TestCountersOutliveServer: a counter that was lifted stays where it is when its server is killed, on
// tables in parts and of MyISAM, too, and where auto_increment_increment is not 1.
func TestCountersOutliveServer(t *testing.T) {
	width.Wide(t, "it starts servers of its own")
	t.Parallel()
	const band = 1_000_000_000
	for name, start := range map[string]func() (*servers.Server, error){
		"MariaDB": func() (*servers.Server, error) { return servers.StartMariaDB(t.Context(), servers.Options{}) },
		"MariaDB 11.8": func() (*servers.Server, error) {
			return servers.StartMariaDB(t.Context(), servers.Options{Newer: true})
		},
		"MySQL": func() (*servers.Server, error) { return servers.StartMySQL(t.Context(), servers.Options{}) },
	} {
		s := assert.Of(start()).Must(t)
		tables := map[string]string{"plain": "", "parts": " PARTITION BY HASH (id) PARTITIONS 4", "isam": " ENGINE=MyISAM"}
		db := harness.Open(t, s.Config(""), "")
		harness.MustExec(t, db, "CREATE DATABASE shop")
		for table, more := range tables {
			harness.MustExec(t, db, "CREATE TABLE shop."+table+" (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"+more)
			harness.MustExec(t, db, "INSERT INTO shop."+table+" (a) VALUES (1), (2), (3)")
			harness.MustExec(t, db, "ALTER TABLE shop."+table+" AUTO_INCREMENT = 1000000000")
		}
		for range 2 { // the second time without a row above
			assert.Must(t, s.Kill())
			assert.Must(t, s.Start(t.Context()))
			harness.MustExec(t, harness.Open(t, s.Config(""), ""), "SET GLOBAL auto_increment_increment = 3, GLOBAL auto_increment_offset = 2")
			db := harness.Open(t, s.Config("shop"), "")
			for table := range tables {
				id, err := harness.MustExec(t, db, "INSERT INTO "+table+" (a) VALUES (4)").LastInsertId()
				assert.True(t, err == nil && id >= band && id <= band+100, "%s: id %d of %s, %v", name, id, table, err)
				harness.MustExec(t, db, "DELETE FROM "+table+" WHERE a = 4")
			}
		}
		assert.NoError(t, s.Stop())
	}
}
