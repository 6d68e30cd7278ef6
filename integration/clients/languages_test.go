package clients

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

func TestC(t *testing.T) {
	need(t, "gcc", "mariadb_config")
	program := filepath.Join(t.TempDir(), "stmt")
	flags := assert.Of(exec.Command("mariadb_config", "--cflags", "--libs").Output()).Must(t)
	args := append([]string{"-std=gnu11", "-Wall", "-O1", "-o", program, "c/stmt.c"}, strings.Fields(string(flags))...)
	out, err := exec.Command("gcc", args...).CombinedOutput()
	assert.MustTrue(t, err == nil && len(out) == 0, "compile c/stmt.c: %v\n%s", err, out)
	const prepared = "repeated bound batch two upsert failed rollback direct cursor reset reprepared no_list"
	testClients(
		t,
		client{name: "text", command: script(program, "text"), scenarios: "query"},
		client{name: "prepared", command: script(program, "prepared"), scenarios: prepared},
		client{name: "prepared, found rows", command: script(program, "prepared", "found"), scenarios: prepared},
		client{name: "bulk", command: script(program, "bulk"), scenarios: "bulk bulk_text bulk_ids", servers: []servers.Kind{servers.MariaDB}},
	)
}

// shell runs a server's command-line client on cli/batch.sql. It goes on after an error, and shows
// each statement's outcome.
func shell(s *servers.Server, args ...string) func(addr, db string) *exec.Cmd {
	args = append(args, "--batch", "--force", "--skip-column-names", "-v", "-v", "--default-character-set=utf8mb4")
	return func(addr, db string) *exec.Cmd {
		client := s.ClientTo(addr, append(args[:len(args):len(args)], "--user="+db, db)...) // the last of two wins
		return exec.Command("sh", append([]string{"-c", `exec "$@" <cli/batch.sql 2>&1`, "sh"}, client.Args...)...)
	}
}

func TestCommandLine(t *testing.T) {
	const all = "single batch commit rollback upsert ignore failed explicit zero variable plain several"
	testClients(
		t,
		client{name: "mariadb", command: shell(harness.MariaDB(t)), scenarios: all},
		client{name: "mysql", command: shell(harness.MySQL(t), "--plugin-dir=../../.tools/mysql97/usr/lib/mysql/plugin"), scenarios: all},
	)
}

// gorm is the program of Go's clients.
func gorm(t *testing.T) string {
	t.Helper()
	return assert.Of(harness.BuildOther("./gorm")).Must(t)
}

func TestGo(t *testing.T) {
	program := gorm(t)
	const all = "single batch repeated commit rollback upsert failed explicit zero plain"
	const orm = "single batch children rollback upsert failed explicit mixed plain"
	const text = "interpolateParams=true"
	testClients(
		t,
		client{name: "GORM, interpolating", command: script(program, "orm", text), scenarios: orm},
		client{name: "GORM", command: script(program, "orm", ""), scenarios: orm},
		client{name: "database sql, interpolating", command: script(program, "sql", text), scenarios: all},
		client{name: "database sql", command: script(program, "sql", ""), scenarios: all},
		client{name: "database sql, found rows", command: script(program, "sql", "clientFoundRows=true"), scenarios: all},
	)
}

// connector is MariaDB Connector/J, from Debian.
const connector = "/usr/share/java/mariadb-java-client.jar"

func TestJava(t *testing.T) {
	need(t, "java", "javac", connector)
	classes := t.TempDir()
	out, err := exec.Command("javac", "-encoding", "UTF-8", "-d", classes, "java/Clients.java").CombinedOutput()
	assert.Must(t, err, "compile java/Clients.java", string(out))
	const scenarios = "single values repeated batch batch_without_keys batch_of_many batch_of_types batch_of_ids batch_of_texts batch_that_fails upsert_batch " +
		"commit rollback upsert failed explicit zero plain"
	mode := func(name, options string) client {
		// A small virtual machine starts in half the time.
		return client{name: name, scenarios: scenarios, command: script("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8",
			"-cp", classes+":"+connector, "Clients", options)}
	}
	testClients(
		t,
		mode("text", "useBulkStmts=false&disablePipeline=true&usePipelineAuth=false"),
		mode("text pipelined", "useBulkStmts=false&useBatchMultiSend=true"),
		mode("rewritten", "useBulkStmts=false&rewriteBatchedStatements=true"),
		mode("multi queries", "useBulkStmts=false&allowMultiQueries=true"),
		mode("defaults", ""),
		mode("bulk", "useBulkStmts=true&useServerPrepStmts=true"),
		mode("prepared", "useServerPrepStmts=true&useBulkStmts=false&disablePipeline=true"),
		mode("prepared pipelined", "useServerPrepStmts=true&useBulkStmts=false&useBatchMultiSend=true"),
		mode("prepared, no cache", "useServerPrepStmts=true&useBulkStmts=false&cachePrepStmts=false"),
		mode("prepared rewritten", "useServerPrepStmts=true&useBulkStmts=false&rewriteBatchedStatements=true"),
	)
}

// node is the command of a script for Node.js, which finds its packages among the installed tools.
func node(t *testing.T, args ...string) func(addr, db string) *exec.Cmd {
	t.Helper()
	modules := tool(t, "node/node_modules")
	need(t, "node", modules)
	return func(string, string) *exec.Cmd {
		cmd := exec.Command("node", args...)
		cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
		return cmd
	}
}

func TestNode(t *testing.T) {
	const mysql2 = "single batch repeated at_once commit rollback upsert failed explicit zero plain"
	const connector = "single repeated pipelined pipelined_failure commit rollback upsert failed explicit zero plain"
	const drizzle = "single batch mixed repeated commit rollback upsert failed explicit plain"
	testClients(
		t,
		client{name: "mysql2", command: node(t, "node/mysql2.js", "query"), scenarios: mysql2 + " values multi"},
		client{name: "mariadb", command: node(t, "node/mariadb.js", "query"), scenarios: connector},
		client{
			name: "Knex", command: node(t, "node/knex.js"),
			scenarios: "single batch mixed chunks commit rollback upsert failed explicit zero empty plain",
		},
		client{
			name: "Sequelize", command: node(t, "node/sequelize.js"),
			scenarios: "single batch mixed children rollback upsert failed explicit zero bound plain",
		},
		client{name: "TypeORM", command: node(t, "node/typeorm.js"), scenarios: "single batch mixed children rollback upsert failed explicit zero plain"},
		client{name: "Drizzle", command: node(t, "node/drizzle.js"), scenarios: drizzle},
		client{name: "mysql2 execute", command: node(t, "node/mysql2.js", "execute"), scenarios: mysql2},
		client{name: "mariadb execute", command: node(t, "node/mariadb.js", "execute"), scenarios: connector + " batch batch_results batch_ids"},
		client{name: "mariadb bulk", command: node(t, "node/mariadb.js", "query", "bulk"), scenarios: connector + " batch batch_results batch_ids"},
	)
}

// TestLargeIDs shows what the drivers of Node.js make of ids above 2^53, as docs/clients.md has it.
func TestLargeIDs(t *testing.T) {
	s := plainSite(t, harness.MariaDB(t))
	s.proxy = harness.StartWith(t, s.server.Addr, "orders: {segment: {start: 9007199254740993}}", fmt.Sprintf("{table: %s.orders, column: id, source: orders}", s.db))
	s.addr = s.proxy.Addr("a")
	const want = `
mysql2: insert id string and string, in a result number (wrong)
mysql2, supportBigNumbers: insert id string and string, in a result string
mariadb: insert id bigint and bigint, in a result bigint
mariadb, insertIdAsNumber: insert id number (wrong) and number, in a result bigint
mariadb, bigIntAsNumber: insert id bigint and bigint, in a result number (wrong)
`
	output, _, _ := strings.Cut(s.run(t, client{name: "large ids", command: node(t, "node/large.js")}), "commands ")
	assert.Equal(t, "large ids are shown as", "\n"+output, want)
}

func TestPerl(t *testing.T) {
	need(t, "perl")
	const all = "single batch repeated array commit rollback upsert ignore failed explicit zero plain"
	testClients(
		t,
		client{name: "DBD::mysql", command: script("perl", "perl/dbd.pl", "mysql", "0"), scenarios: all},
		client{name: "DBD::MariaDB", command: script("perl", "perl/dbd.pl", "MariaDB", "0"), scenarios: all},
		client{name: "DBD::mysql prepared", command: script("perl", "perl/dbd.pl", "mysql", "1"), scenarios: all},
		client{name: "DBD::MariaDB prepared", command: script("perl", "perl/dbd.pl", "MariaDB", "1"), scenarios: all},
	)
}

func TestPHP(t *testing.T) {
	need(t, "php")
	const all = "single batch commit rollback upsert ignore failed explicit zero plain"
	testClients(
		t,
		client{name: "mysqli", command: script("php", "php/mysqli.php"), scenarios: all + " child replace mixed multi"},
		client{name: "PDO emulating", command: script("php", "php/pdo.php", "emulate"), scenarios: all + " repeated"},
		client{name: "mysqli prepared", command: script("php", "php/mysqli.php", "prepared"), scenarios: all + " child replace mixed repeated bound"},
		client{name: "PDO prepared", command: script("php", "php/pdo.php"), scenarios: all + " repeated"},
	)
}

// python is Debian's, which alone sees Debian's modules.
const python = "/usr/bin/python3"

func TestPython(t *testing.T) {
	need(t, python)
	const all = "single batch many many_ids commit rollback upsert ignore failed explicit zero plain"
	const alchemy = "single batch many orm bulk bulk_keys rollback savepoint upsert explicit zero plain"
	testClients(
		t,
		client{name: "PyMySQL", command: script(python, "python/dbapi.py", "pymysql"), scenarios: all},
		client{name: "mysqlclient", command: script(python, "python/dbapi.py", "MySQLdb"), scenarios: all},
		client{name: "SQLAlchemy, PyMySQL", command: script(python, "python/alchemy.py", "pymysql"), scenarios: alchemy},
		client{name: "SQLAlchemy, mysqlclient", command: script(python, "python/alchemy.py", "mysqldb"), scenarios: alchemy},
		client{
			name: "Django", command: script(python, "python/djangos.py"),
			scenarios: "single bulk bulk_ids commit rollback upsert failed explicit plain",
		},
	)
}

func TestRuby(t *testing.T) {
	need(t, "ruby")
	const all = "single batch commit rollback upsert failed explicit zero plain"
	const records = "single repeated batch children rollback upsert failed explicit plain"
	testClients(
		t,
		client{name: "mysql2", command: script("ruby", "ruby/mysql2.rb"), scenarios: all},
		client{name: "Active Record", command: script("ruby", "ruby/activerecord.rb"), scenarios: records},
		client{name: "mysql2 prepared", command: script("ruby", "ruby/mysql2.rb", "prepared"), scenarios: all + " repeated"},
		client{name: "Active Record prepared", command: script("ruby", "ruby/activerecord.rb", "prepared"), scenarios: records},
	)
}

// everyLibrary are the scenarios of all libraries whose connections are compressed.
const everyLibrary = "single batch commit rollback upsert failed explicit zero plain"

// TestCompressed: libraries whose connections are compressed, by the server itself and by idproxy.
// PHP's is the one that looks at the numbers of compressed packets.
func TestCompressed(t *testing.T) {
	need(t, "php")
	mysqli := client{name: "mysqli", command: script("php", "php/mysqli.php", "prepared", "compressed"), scenarios: everyLibrary + " child replace mixed repeated bound", zlib: true}
	testClients(t, mysqli)
}

// TestCompressedClients is TestCompressed for more libraries.
func TestCompressedClients(t *testing.T) {
	width.Wide(t, "one library is in TestCompressed")
	need(t, "php", "perl", "java", "javac", connector)
	dir := t.TempDir()
	out, err := exec.Command("javac", "-encoding", "UTF-8", "-d", dir, "java/Clients.java").CombinedOutput()
	assert.Must(t, err, "compile java/Clients.java", string(out))
	java := func(options string) func(addr, db string) *exec.Cmd {
		return script("java", "-Dfile.encoding=UTF-8", "-cp", dir+":"+connector, "Clients", options)
	}
	testClients(
		t,
		client{name: "mysqli text", command: script("php", "php/mysqli.php", "", "compressed"), scenarios: everyLibrary + " child replace mixed multi", zlib: true},
		client{name: "mysql2", command: node(t, "node/mysql2.js", "query", "compressed"), scenarios: everyLibrary + " values multi", zlib: true},
		client{name: "mysql2 execute", command: node(t, "node/mysql2.js", "execute", "compressed"), scenarios: everyLibrary, zlib: true},
		client{name: "DBD::mysql", command: script("perl", "perl/dbd.pl", "mysql", "0", "compressed"), scenarios: everyLibrary, zlib: true},
		client{name: "database sql", command: script(gorm(t), "sql", "compress=true"), scenarios: everyLibrary, zlib: true},
		client{name: "Connector/J", command: java("useCompression=true"), scenarios: everyLibrary, zlib: true},
		client{name: "Connector/J prepared, pipelined", command: java("useCompression=true&useServerPrepStmts=true&useBulkStmts=false&useBatchMultiSend=true"), scenarios: everyLibrary, zlib: true},
		client{name: "Connector/J text, pipelined", command: java("useCompression=true&useBulkStmts=false&useBatchMultiSend=true"), scenarios: everyLibrary, zlib: true},
	)
}
