package mysql

import (
	"testing"

	"idproxy/idsource/sourcetest"
)

func TestNotes(t *testing.T) {
	for name, dsn := range dsns() {
		t.Run(name, func(t *testing.T) {
			one, other := newStore(t, dsn), newStore(t, dsn)
			if _, err := one.db.ExecContext(t.Context(), "DROP TABLE IF EXISTS idproxy_note"); err != nil {
				t.Fatal(err)
			}
			sourcetest.Notes(t, one.Notes(), other.Notes())
		})
	}
}
