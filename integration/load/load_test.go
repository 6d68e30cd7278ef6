package load

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// loadWorld is a table twice: with AUTO_INCREMENT, loaded directly, and with a plain column, loaded
// through idproxy.
type loadWorld struct {
	server         *servers.Server
	native, filled *harness.Loader
	proxy          *harness.Proxy
	nativeDB       string
	filledDB       string
}

func newLoadWorld(t *testing.T, s *servers.Server) *loadWorld {
	t.Helper()
	w := &loadWorld{server: s, nativeDB: harness.Database(t, s), filledDB: harness.Database(t, s)}
	w.proxy = harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000001}}}
rules:     [{table: "%s.*", column: id, source: ids}]
`, s.Addr, w.filledDB))
	w.native = harness.NewLoader(t, s.Config(w.nativeDB), "")
	w.filled = harness.NewLoader(t, s.Config(w.filledDB), w.proxy.Addr("a"))
	return w
}

// loadTable is what cases load into. Explicit ids stay below the generated ones.
const loadTable = "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO, a VARCHAR(200), u INT UNIQUE) AUTO_INCREMENT=1000001 DEFAULT CHARSET utf8mb4"

// create makes the table on both sides.
func (w *loadWorld) create(sql string) {
	w.native.T.Helper()
	w.native.Exec(strings.Replace(sql, " AUTO,", " AUTO_INCREMENT,", 1))
	w.filled.Exec(strings.Replace(strings.Replace(sql, " AUTO,", ",", 1), "AUTO_INCREMENT=1000001", "", 1))
}
