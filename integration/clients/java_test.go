package clients

import (
	"os/exec"
	"testing"

	"idproxy/integration/assert"
)

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
