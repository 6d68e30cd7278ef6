package clients

import (
	"os/exec"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/width"
)

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
