package genes

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestGenesFollowSettings changes what the server makes of a text in a session that idproxy knows
// already, and inserts the same key again: it is stored as the id says, or the statement is
// refused.
func TestGenesFollowSettings(t *testing.T) {
	t.Parallel()
	const back = "SET collation_connection=utf8mb4_bin"
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		w := startGenes(t, s, "")
		for _, change := range []string{
			"SET collation_connection=latin1_swedish_ci",
			"SET @@SESSION.`collation_connection`='latin1_bin'",
			"SET character_set_connection=latin1",
			"SET collation_connection=@c",
			"SET NAMES utf8mb4, collation_connection=latin1_bin",
			"SET CHARACTER SET utf8mb4", // and takes the connection's from the database
		} {
			for _, tracked := range []string{"character_set_client,character_set_connection", "collation_connection", ""} {
				t.Run(change+" "+tracked, func(t *testing.T) {
					db := w.open(t)
					harness.MustExec(t, db, "SET sql_mode='', session_track_system_variables='"+tracked+"'")
					harness.MustExec(t, db, "SET NAMES utf8mb4; SET character_set_database=latin1; SET @c='latin1_bin'")
					set := assert.Of(db.Prepare(change)).Must(t)
					defer set.Close()
					for _, do := range []func() error{
						func() error { _, err := db.Exec(change); return err },
						func() error { _, err := set.Exec(); return err },
					} {
						harness.MustExec(t, db, "INSERT INTO wide (k) VALUES ('日本')")
						assert.Must(t, do())
						_, err := db.Exec("INSERT INTO wide (k) VALUES ('日本')")
						harness.WantError(t, err, 1235, "characters beyond ASCII")
						_, err = db.Exec("INSERT INTO wide (k) VALUES (?)", "日本")
						harness.WantError(t, err, 1235, "characters beyond ASCII")
						harness.MustExec(t, db, back)
					}
					harness.MustExec(t, db, "INSERT INTO wide (k) VALUES ('日本')")
				})
			}
		}
		w.compare(t, 1)
		assert.Equal(t, "keys were stored as other characters", harness.Count(t, w.direct, "SELECT COUNT(*) FROM wide WHERE k<>'日本'"), 0)
	})
}
