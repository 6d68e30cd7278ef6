package clients

import (
	"testing"
)

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
