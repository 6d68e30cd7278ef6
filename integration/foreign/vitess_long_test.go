//go:build long

package foreign

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// keyspace is one of two shards. It has tables plain and native, whose ids Vitess takes from a sequence.
type keyspace struct {
	name    string
	kind    string // upstream_kind
	column  string // says on which shard a row is
	vindex  string // how
	lookup  bool   // a table apart has the names, which are unique over the shards
	nameKey string
	differ  map[string]string // beside those of ofVitess
}

var keyspaces = []keyspace{
	{name: "shop", kind: "auto", column: "id", vindex: "xxhash", nameKey: "KEY", differ: map[string]string{
		"ON DUPLICATE KEY UPDATE of the id": refusedOwn,
	}},
	{name: "names", kind: "vitess", column: "name", vindex: "unicode_loose_xxhash", nameKey: "UNIQUE KEY", differ: map[string]string{
		"IGNORE, the first row is there":          "affected 1, insert id new1, LAST_INSERT_ID() new1: 1 ann new1 bob", // natively new0, which is in no row, here and below
		"ON DUPLICATE KEY UPDATE, the name stays": "affected 1, insert id new1, LAST_INSERT_ID() new1: 1 ann new1 bob",
		"ON DUPLICATE KEY UPDATE of the id":       "affected 0, insert id 1, LAST_INSERT_ID() 1: 1 ann",
	}},
	{name: "lookups", kind: "auto", column: "id", vindex: "xxhash", nameKey: "KEY", lookup: true, differ: map[string]string{
		"IGNORE, the first row is there":          "affected 1, insert id new1, LAST_INSERT_ID() new1: 1 ann new1 bob",
		"ON DUPLICATE KEY UPDATE, the name stays": "affected 0, insert id 0, LAST_INSERT_ID() before: 1 ann",
		"ON DUPLICATE KEY UPDATE of the id":       refusedOwn,
	}},
}

// refusedOwn is seen of a statement that would have set LAST_INSERT_ID() by itself.
const refusedOwn = "error 1235, LAST_INSERT_ID() before: 1 ann"

// ofVitess are the forms of which a client sees something else than natively, in each keyspace.
var ofVitess = map[string]string{
	"an explicit id":    "affected 1, insert id 500, LAST_INSERT_ID() before: 1 ann 500 bob", // natively the insert id is 0
	"INSERT ... SELECT": "error 1235, LAST_INSERT_ID() before: 1 ann",
}

// vitessForms are those of all servers, and more.
var vitessForms = append(slices.Clone(forms), []form{
	{name: "prepared, one row", text: "INSERT INTO %s (name) VALUES (?)", args: []any{"bob"}},
	{name: "prepared, NULL and an explicit id", text: "INSERT INTO %s (id, name) VALUES (?, ?), (?, ?)", args: []any{nil, "bob", explicit, "cid"}},
	{name: "IGNORE, all rows are new", text: "INSERT IGNORE INTO %s (name) VALUES ('bob'), ('cid')"},
	{name: "IGNORE, the id is there", text: "INSERT IGNORE INTO %s (id, name) VALUES (1, 'bob'), (NULL, 'cid')"},
	{name: "ON DUPLICATE KEY UPDATE, the id is there", text: "INSERT INTO %s (id, name) VALUES (1, 'bob') ON DUPLICATE KEY UPDATE name = 'eve'"},
	{name: "ON DUPLICATE KEY UPDATE, the name stays", text: "INSERT INTO %s (name) VALUES ('ann'), ('bob') ON DUPLICATE KEY UPDATE name = VALUES(name)"},
	{name: "ON DUPLICATE KEY UPDATE of the id", text: "INSERT INTO %s (name) VALUES ('ann') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"},
	{name: "an id that is there", text: "INSERT INTO %s (id, name) VALUES (1, 'bob')"},
}...)

// TestVitess: rows lie on two shards, by their id, by another column, and by their id with a table of the
// names, which makes these unique over shards. It takes some minutes to build.
func TestVitess(t *testing.T) {
	server := startVitess(t, build(t, "vitess", "vitess.io/vitess/go/cmd/vtcombo"))
	for _, k := range keyspaces {
		t.Run(k.name, func(t *testing.T) {
			of := server.Clone()
			of.DBName = k.name
			differ := maps.Clone(ofVitess)
			maps.Copy(differ, k.differ)
			compareForms(t, of, k.kind, vitessForms, differ)
		})
	}
	t.Run("tablets", func(t *testing.T) { testTablets(t, server.Clone()) })
	direct := harness.Open(t, server, "") // nobody gives an id there
	_, err := direct.Exec("INSERT INTO shop.plain (name) VALUES ('ann')")
	harness.WantError(t, err, 1048)
	_, err = direct.Exec("INSERT INTO names.plain (name) VALUES ('zoe')")
	harness.WantError(t, err, 1364)
}

// testTablets: a session that chooses a keyspace with its type of tablets gets ids, and Vitess finds each
// row on the shard where it looks for it.
func testTablets(t *testing.T, server *mysql.Config) {
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: 2000}}}
rules: [{table: shop.plain, column: id, source: ids}]
`, server.Addr))
	direct := server.Clone()
	server.DBName = "shop@primary"
	harness.MustExec(t, harness.Open(t, server, proxy.Addr("a")), "INSERT INTO plain (name) VALUES ('ann')"+strings.Repeat(", ('bob')", 19))
	db := harness.Open(t, direct.Clone(), "")
	for id := 2000; id < 2020; id++ {
		assert.Equal(t, fmt.Sprintf("rows with id %d", id), harness.Count(t, db, fmt.Sprintf("SELECT COUNT(*) FROM plain WHERE id = %d", id)), 1)
	}
	for _, shard := range []string{"shop:-80", "shop:80-"} {
		of := direct.Clone()
		of.DBName = shard
		n := harness.Count(t, harness.Open(t, of, ""), "SELECT COUNT(*) FROM plain WHERE id >= 2000")
		assert.True(t, n != 0 && n != 20, "%s has %d of 20 rows", shard, n)
	}
}

// nobody is the number of a user who owns nothing: Vitess does not run as root.
const nobody = 65534

// startVitess runs the keyspaces, and one without shards for what they need: all of Vitess in one program,
// over databases of one MySQL.
func startVitess(t *testing.T, program string) *mysql.Config {
	t.Helper()
	s := harness.StartServer(t, servers.MySQL, servers.Options{})
	db := harness.Open(t, s.Config(""), "")
	dir := t.TempDir()
	for _, folder := range []string{filepath.Dir(dir), s.Dir} { // those of the program and of the socket
		assert.Must(t, os.Chmod(folder, 0o711))
	}
	topology := `keyspaces {name: "apart" shards {name: "0"}}`
	harness.MustExec(t, db, "CREATE DATABASE vt_apart_0")
	var apart []string
	for _, k := range keyspaces {
		topology += fmt.Sprintf(` keyspaces {name: %q shards {name: "-80"} shards {name: "80-"}}`, k.name)
		for _, shard := range []string{"-80", "80-"} {
			database := fmt.Sprintf("`vt_%s_%s`", k.name, shard)
			harness.MustExec(t, db, "CREATE DATABASE "+database)
			harness.MustExec(t, db, "CREATE TABLE "+database+".child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT NOT NULL)")
			for _, table := range []string{"plain", "native"} {
				harness.MustExec(t, db, fmt.Sprintf("CREATE TABLE %s.%s (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) NOT NULL, %s (name))", database, table, k.nameKey))
			}
		}
		sequence := k.name + "_ids"
		harness.MustExec(t, db, "CREATE TABLE vt_apart_0."+sequence+" (id BIGINT PRIMARY KEY, next_id BIGINT, cache BIGINT) COMMENT 'vitess_sequence'")
		harness.MustExec(t, db, "INSERT INTO vt_apart_0."+sequence+" VALUES (0, 5000, 100)")
		apart = append(apart, fmt.Sprintf(`%q: {"type": "sequence"}`, sequence))
		writeVSchema(t, dir, k.name, k.vschema(sequence))
	}
	for _, table := range []string{"plain_names", "native_names"} {
		harness.MustExec(t, db, "CREATE TABLE vt_apart_0."+table+" (name VARCHAR(20) PRIMARY KEY, shard VARBINARY(10))")
		apart = append(apart, fmt.Sprintf(`%q: {}`, table))
	}
	writeVSchema(t, dir, "apart", fmt.Sprintf(`{"tables": {%s}}`, strings.Join(apart, ", ")))
	return start(t, "root", func(addr string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(addr)
		cmd := exec.Command(program, "--proto-topo", topology, "--schema-dir", dir, "--tablet-types-to-wait", "PRIMARY",
			"--db-socket", s.Socket, "--mycnf-socket-file", s.Socket, "--mycnf-server-id", "1", "--db-charset", "utf8mb4",
			"--mysql-auth-server-impl", "none", "--mysql-server-bind-address", host, "--mysql-server-port", port,
			"--bind-address", "127.0.0.1", "--port", "0", "--grpc-port", "0")
		for _, role := range []string{"app", "dba", "allprivs", "appdebug", "filtered", "repl"} {
			cmd.Args = append(cmd.Args, "--db-"+role+"-user", servers.AppUser, "--db-"+role+"-password", servers.AppPassword)
		}
		cmd.Env = append(cmd.Environ(), "VTDATAROOT="+dir)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		return cmd
	})
}

// vschema says how rows lie on the shards, and that native has its ids from a sequence.
func (k keyspace) vschema(sequence string) string {
	vindexes := fmt.Sprintf(`"by": {"type": %q}, "child": {"type": "xxhash"}`, k.vindex)
	tables := []string{`"child": {"columns": [{"name": "id", "type": "INT64"}, {"name": "parent", "type": "INT64"}], "column_vindexes": [{"column": "id", "name": "child"}]}`}
	for _, table := range []string{"plain", "native"} {
		columns, ids := fmt.Sprintf(`{"column": %q, "name": "by"}`, k.column), ""
		if k.lookup {
			vindexes += fmt.Sprintf(`, "%[1]s_names": {"type": "consistent_lookup_unique", "owner": "%[1]s", "params": {"table": "apart.%[1]s_names", "from": "name", "to": "shard"}}`, table)
			columns += fmt.Sprintf(`, {"column": "name", "name": "%s_names"}`, table)
		}
		if table == "native" {
			ids = fmt.Sprintf(`, "auto_increment": {"column": "id", "sequence": "apart.%s"}`, sequence)
		}
		tables = append(tables, fmt.Sprintf(
			`%q: {"columns": [{"name": "id", "type": "INT64"}, {"name": "name", "type": "VARCHAR"}], "column_list_authoritative": true, "column_vindexes": [%s]%s}`,
			table, columns, ids))
	}
	return fmt.Sprintf(`{"sharded": true, "vindexes": {%s}, "tables": {%s}}`, vindexes, strings.Join(tables, ", "))
}

func writeVSchema(t *testing.T, dir, keyspace, text string) {
	t.Helper()
	folder := filepath.Join(dir, keyspace)
	assert.Must(t, os.Mkdir(folder, 0o755))
	assert.Must(t, os.WriteFile(filepath.Join(folder, "vschema.json"), []byte(text), 0o644))
}
