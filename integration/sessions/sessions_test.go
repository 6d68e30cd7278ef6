package sessions

import (
	"reflect"
	"testing"

	"idproxy/integration/assert"
)

// TestDraw draws the same session for the same numbers, and another for others.
func TestDraw(t *testing.T) {
	for _, dialect := range []string{MariaDB, MySQL} {
		kind := Kind{Dialect: dialect}
		first := kind.Draw(1, 2, 100)
		assert.True(t, len(first.Steps) >= 100 && len(first.World) >= 5, "%s: %d steps, a world of %d statements", dialect, len(first.Steps), len(first.World))
		assert.True(t, reflect.DeepEqual(first, kind.Draw(1, 2, 100)), "%s: not the same again", dialect)
		assert.True(t, !reflect.DeepEqual(first, kind.Draw(1, 3, 100)), "%s: another number, the same session", dialect)
	}
}

func TestFit(t *testing.T) {
	const text = "CREATE TABLE {db}.t (id INT {plain}, i INT {kept}) {start 2}"
	for want, side := range map[string]Side{
		"CREATE TABLE d.t (id INT AUTO_INCREMENT, i INT AUTO_INCREMENT) AUTO_INCREMENT=100200000": {Schema: "d"},
		"CREATE TABLE p.t (id INT , i INT AUTO_INCREMENT) AUTO_INCREMENT=50000000":                {Schema: "p", Proxied: true},
	} {
		assert.Equal(t, "side.Fit(text)", side.Fit(text), want)
	}
}
