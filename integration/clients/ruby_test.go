package clients

import (
	"testing"
)

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
