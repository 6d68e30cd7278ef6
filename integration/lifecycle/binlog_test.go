package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestGoMySQLBinlog has a replica of go-mysql's read, through the proxy, the rows that were
// inserted through the proxy: it sees the ids that applications see, whichever way they sent the
// rows.
func TestGoMySQLBinlog(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			server := harness.StartServer(t, kind, servers.Options{
				Args: []string{"--log-bin=binlog", "--server-id=1", "--binlog-format=ROW"},
			})
			db := harness.Database(t, server)
			setUp := harness.Open(t, server.Config(db), "")
			assert.Of(setUp.Exec("CREATE TABLE orders (a VARCHAR(20), id BIGINT UNSIGNED NOT NULL PRIMARY KEY)")).Must(t)
			addr := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}}
rules:     [{table: %s.orders, column: id, source: ids}]
`, server.Addr, db)).Addr("a")
			events := replicate(t, server, addr)
			app := harness.Open(t, server.Config(db), addr)
			var want []string
			for _, insert := range []struct {
				text string
				args []any
				rows []string
			}{
				{"INSERT INTO orders (a) VALUES ('text')", nil, []string{"text"}},
				{"INSERT INTO orders (a) VALUES ('two'), ('rows')", nil, []string{"two", "rows"}},
				{"INSERT INTO orders (a) VALUES (?)", []any{"prepared"}, []string{"prepared"}},
				{"INSERT INTO orders (a) VALUES (?), (?)", []any{"both", "prepared"}, []string{"both", "prepared"}},
				{"INSERT INTO orders (a, id) VALUES (?, ?)", []any{"explicit", 1 << 40}, []string{"explicit"}},
				{"INSERT INTO orders (a, id) VALUES (?, ?)", []any{"given as NULL", nil}, []string{"given as NULL"}},
			} {
				result := assert.Of(app.Exec(insert.text, insert.args...)).Must(t, insert.text)
				first := assert.Of(result.LastInsertId()).Must(t)
				for i, row := range insert.rows {
					want = append(want, fmt.Sprintf("%s %d", row, first+int64(i)))
				}
			}
			assert.Equal(t, "rows (-as inserted, +in the binlog)", cmp.Diff(want, inserted(t, events, "orders", len(want))), "")
		})
	}
}

// replicate starts a replica at an address that leads to the server. It reads from the first binlog
// on.
func replicate(t *testing.T, server *servers.Server, addr string) *replication.BinlogStreamer {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	assert.Must(t, err)
	port := assert.Of(strconv.ParseUint(text, 10, 16)).Must(t)
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 78, Flavor: map[servers.Kind]string{servers.MariaDB: "mariadb", servers.MySQL: "mysql"}[server.Kind],
		Host: host, Port: uint16(port), User: servers.AppUser, Password: servers.AppPassword,
		VerifyChecksum: true, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(syncer.Close)
	events := assert.Of(syncer.StartSync(mysql.Position{Name: "binlog.000001", Pos: 4})).Must(t)
	return events
}

// inserted reads the binlog until n rows were inserted into the table.
func inserted(t *testing.T, events *replication.BinlogStreamer, table string, n int) (rows []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(rows) < n {
		event := assert.Of(events.GetEvent(ctx)).Must(t, fmt.Sprintf("after %q", rows))
		written, ok := event.Event.(*replication.RowsEvent)
		if !ok || string(written.Table.Table) != table {
			continue
		}
		for _, row := range written.Rows {
			rows = append(rows, fmt.Sprintf("%s %d", row...))
		}
	}
	return rows
}
