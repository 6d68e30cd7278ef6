package main

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

const wideConfig = `listeners: [{name: a, listen: "unix:a.sock", upstream: %[1]q, account: {user: app, password: app}}]
sources: {public: {uuidv7: {}}, doc: {objectid: {}}, ids: {segment: {}}}
rules:
  - {table: %[2]s.t, column: pid, source: public}
  - {table: %[2]s.t, column: id, source: ids}
  - {table: %[2]s.d, column: oid, source: doc, explicit: reject}
`

// TestWideColumns has check and explain say which columns hold UUIDs and ObjectIds, and of what
// type the others are.
func TestWideColumns(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		db := harness.Open(t, server.Config(name), "")
		path := harness.WriteConfig(t, fmt.Sprintf(wideConfig, server.Addr, name))
		for _, tt := range []struct{ pid, oid, check, explained string }{
			{"CHAR(36)", "CHAR(24)", "", "'01900000-0000-7002-8000-000000000000'"},
			{"CHAR(32)", "VARCHAR(50)", "", "'01900000000070028000000000000000'"},
			{"BINARY(16)", "BINARY(12)", "", "X'01900000000070028000000000000000'"},
			{"VARBINARY(20)", "VARBINARY(12)", "", "X'01900000000070028000000000000000'"},
			{"BINARY(20)", "CHAR(24)", "t.pid: the column's type is BINARY(20), which cannot hold the ids of source public; CHAR(36), CHAR(32), VARCHAR", ""},
			{"CHAR(30)", "CHAR(24)", "t.pid: the column's type is CHAR(30)", ""},
			{"BIGINT", "CHAR(24)", "t.pid: the column's type is BIGINT", ""},
			{"TEXT", "CHAR(24)", "t.pid: the column's type is TEXT", ""},
			{"CHAR(36)", "VARCHAR(20)", "d.oid: the column's type is VARCHAR(20), which cannot hold the ids of source doc; CHAR(24), VARCHAR", ""},
			{"CHAR(36) NOT NULL DEFAULT 'x'", "CHAR(24)", "t.pid: the column has a default: an INSERT that goes around the proxy stores that instead of failing; drop it, unless", "'0190"},
			{"CHAR(36) CHARACTER SET utf16", "CHAR(24)", "t.pid: the column's type is CHAR(36) CHARACTER SET utf16,", ""},
			{"UUID", "CHAR(24)", "", "X'01900000000070028000000000000000'"},
			{"INET6", "CHAR(24)", "t.pid: the column's type is INET6", ""},
			{"UUID", "UUID", "d.oid: the column's type is UUID", ""},
		} {
			if strings.Contains(tt.pid, "UUID") || tt.pid == "INET6" {
				if server.Kind.String() == "MySQL" {
					continue
				}
			}
			harness.MustExec(t, db, "DROP TABLE IF EXISTS t, d", "CREATE TABLE t (a INT, id BIGINT PRIMARY KEY, pid "+tt.pid+")", "CREATE TABLE d (a INT, oid "+tt.oid+")")
			got := runWith(t, "", "check", "--online", "--config", path)
			wrong := strings.Contains(got.out, ": error: ") || strings.Contains(got.out, ": warning: ")
			assert.True(t, wrong == (tt.check != "") && strings.Contains(got.out, tt.check), "%s, %s: check says %q, want %q", tt.pid, tt.oid, got.out, tt.check)
			got = runWith(t, "", "explain", "--online", "--config", path, "--schema", name, "INSERT INTO t (a) VALUES (1)")
			if tt.explained == "" && strings.HasPrefix(tt.check, "t.") != strings.Contains(got.out, "cannot hold the ids of source public") || !strings.Contains(got.out, tt.explained) {
				t.Errorf("%s: explained by %q", tt.pid, got.out)
			}
		}
	})
}

func TestWideOffline(t *testing.T) {
	path := harness.WriteConfig(t, fmt.Sprintf(wideConfig, "127.0.0.1:1", "shop"))
	for _, tt := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{"explain", "INSERT INTO shop.t (a) VALUES (1)"}, 0, []string{"VALUES (1,'01900000-0000-7002-8000-000000000000',LAST_INSERT_ID(1))"}},
		{[]string{"explain", "INSERT INTO shop.d (a) VALUES (1),(2)"}, 0, []string{
			"2 of 2 rows get ids from source doc; here '660000000000000000000001' to '660000000000000000000002'", "the ids are no numbers", "VALUES (1,'660000000000000000000001'),",
		}},
		{[]string{"explain", "INSERT INTO shop.d (oid) VALUES (f(1))"}, 1, []string{"explicit: reject"}},
		{[]string{"explain", "INSERT INTO shop.d (oid) VALUES ('x')"}, 1, []string{"explicit: reject"}},
		{[]string{"explain", "INSERT INTO shop.t (id,pid) VALUES (1,f(1))"}, 0, []string{"1 of them only if the expression for pid is NULL", "IFNULL(f(1),'0190"}},
		{[]string{"explain", "INSERT INTO shop.t (id,pid) VALUES (?,?)"}, 0, []string{"from source public where NULL is bound", "where NULL or 0 is bound"}},
		{[]string{"explain", "INSERT INTO shop.d (a) SELECT 1"}, 1, []string{"INSERT ... SELECT into column oid, whose ids are no numbers"}},
		{[]string{"explain", "LOAD DATA LOCAL INFILE 'x' INTO TABLE shop.d"}, 1, []string{"LOAD DATA into column oid"}},
		{[]string{"decode", "public", "017F22E279B07CC398C4DC0C0C07398F"}, 0, []string{"a uuidv7", "2022-02-22T19:22:22.000Z", "counter     3267", "random      18c4dc0c0c07398f"}},
		{[]string{"decode", "public", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "--json"}, 0, []string{`"id": "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"`, `"counter": 3267`}},
		{[]string{"decode", "public", "919108f7-52d1-4320-9bac-f847db4148a8"}, 1, []string{"no UUID of version 7"}},
		{[]string{"decode", "public", "17"}, 2, []string{`"17" is no UUID`}},
		{[]string{"decode", "doc", "507f1f77bcf86cd799439011"}, 0, []string{"a objectid", "2012-10-17T21:13:27.000Z", "process     bcf86cd799", "counter     4427793"}},
		{[]string{"decode", "doc", "507f"}, 2, []string{"no ObjectId"}},
		{[]string{"source", "list"}, 0, []string{"public  uuidv7", "doc     objectid"}},
		{[]string{"source", "set", "doc", "5"}, 1, []string{"no segment"}},
		{[]string{"check"}, 0, []string{"fine"}},
	} {
		got := runWith(t, "", append(tt.args, "--config", path)...)
		if tt.args[0] == "explain" {
			got = runWith(t, "", "explain", "--config", path, tt.args[1])
		}
		for _, want := range tt.want {
			assert.True(t, got.status == tt.status && strings.Contains(got.out+got.err, want), "%q: %+v, want status %d and %q", tt.args, got, tt.status, want)
		}
	}
}
