package mysql

import (
	"testing"

	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func TestNotes(t *testing.T) {
	for name, dsn := range dsns() {
		t.Run(name, func(t *testing.T) {
			one, other := newStore(t, dsn), newStore(t, dsn)
			assert.Of(one.db.ExecContext(t.Context(), "DROP TABLE IF EXISTS idproxy_note")).Must(t)
			sourcetest.Notes(t, one.Notes(), other.Notes())
		})
	}
}
