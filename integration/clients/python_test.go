package clients

import (
	"testing"
)

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
