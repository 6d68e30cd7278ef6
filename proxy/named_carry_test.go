package proxy

import (
	"slices"
	"strings"
	"testing"

	"idproxy/proxy/clienterr"
)

// behind returns what the server saw behind the first text that begins so, that
// included.
func (f *fakeServer) behind(begin string) []string {
	seen := f.queries()
	i := slices.IndexFunc(seen, func(sql string) bool { return strings.HasPrefix(sql, begin) })
	if i < 0 {
		return nil
	}
	return seen[i:]
}

// On MySQL the ids of an EXECUTE are set first. One whose SET failed is not sent:
// it would find the ids of the one before.
func TestNamedIDsAreCarried(t *testing.T) {
	r := start(t, nil)
	fails := false
	r.server.set(func(f *fakeServer) {
		f.handle = func(sql string) ([][]byte, bool) {
			switch {
			case strings.HasPrefix(sql, "SET @") && fails:
				return [][]byte{clienterr.Payload(testError(1317))}, true
			case strings.HasPrefix(sql, "EXECUTE"):
				return [][]byte{okPayload(1, 0, 2)}, true
			}
			return [][]byte{okPayload(0, 0, 2)}, true
		}
	})
	c := r.client()
	c.query("PREPARE s FROM 'INSERT INTO orders (a) VALUES (?)'")
	if id := insertIDOf(t, c.query("EXECUTE s USING @a")); id != 100 {
		t.Errorf("insert id %d, want 100", id)
	}
	r.server.set(func(*fakeServer) { fails = true })
	c.wantError(c.query("EXECUTE s USING @a"), 1317, "")
	r.server.set(func(*fakeServer) { fails = false })
	if id := insertIDOf(t, c.query("EXECUTE s USING @a")); id != 102 {
		t.Errorf("insert id %d, want 102", id)
	}
	want := []string{
		"PREPARE s FROM 'INSERT INTO orders (a,`id`) VALUES (?,LAST_INSERT_ID(?))'",
		"SET @`idproxy 0`=100", "EXECUTE s USING @a,@`idproxy 0`", "SET @`idproxy 0`=101", "SET @`idproxy 0`=102", "EXECUTE s USING @a,@`idproxy 0`",
	}
	got := slices.DeleteFunc(r.server.behind("PREPARE"), func(sql string) bool { return strings.HasPrefix(sql, "SELECT LAST_INSERT_ID()") })
	if !slices.Equal(got, want) {
		t.Errorf("the server saw %q, want %q", got, want)
	}
}
