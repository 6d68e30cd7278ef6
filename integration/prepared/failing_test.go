package prepared

import (
	"testing"

	"idproxy/integration/harness"
)

// TestExecuteMiscounted: EXECUTE with too few arguments is refused for that before anything else, also when the statement's table
// has become another and the statement could not be prepared for it.
func TestExecuteMiscounted(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := openAnew(t, server, "rules: [{table: \"{db}.t\", column: id, source: ids}]\n")
			w.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "PREPARE filled FROM 'INSERT INTO t VALUES (NULL, ?)'",
				"CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY, a INT, b INT)", "PREPARE resting FROM 'INSERT INTO t VALUES (1, ?, 2)'", "DROP TEMPORARY TABLE t")
			for _, text := range []string{"EXECUTE resting", "SET @a = 1; EXECUTE resting USING @a, @a"} {
				if r, err := w.Query(text); err != nil || errorCode(r) != 1210 {
					t.Errorf("%s: %v %v", text, err, r[len(r)-1].Err)
				}
			}
			w.Must(t, "ALTER TABLE t ADD b INT")
			for text, want := range map[string]uint16{"EXECUTE filled": 1210, "EXECUTE filled USING @a": 1136} {
				if r, err := w.Query(text); err != nil || errorCode(r) != want {
					t.Errorf("%s: %v %v", text, err, r[len(r)-1].Err)
				}
			}
			w.Must(t, "ALTER TABLE t DROP b", "EXECUTE filled USING @a")
		})
	}
}

// errorCode is that of the last reply, 0 when it is none.
func errorCode(replies []wireclient.Reply) uint16 {
	if e := replies[len(replies)-1].Err; e != nil {
		return e.Code
	}
	return 0
}
