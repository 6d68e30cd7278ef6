package clients

import (
	"testing"
)

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
