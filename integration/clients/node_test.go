package clients

import (
	"os/exec"
	"testing"
)

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
