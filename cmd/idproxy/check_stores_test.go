package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/idsource/file"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestCheckStores looks at stores that serve would refuse, and at two that are one.
func TestCheckStores(t *testing.T) {
	const one, two, other = `{mysql: {dsn: "u:hunter2@tcp(h:1)/d"}}`, `{mysql: {dsn: "v:x@tcp(h:1)/d?timeout=1s"}}`, `{mysql: {dsn: "u@tcp(h:1)/e"}}`
	for _, tt := range []struct {
		name, stores, sources string
		status                int
		want                  string
	}{
		{"parameter", `{a: {mysql: {dsn: "u:hunter2@tcp(h:1)/d?tls=gone"}}}`, "{}", statusFinding, ":2:10: error: store a: mysql store: the dsn is not of the form"},
		{"network", `{a: {mysql: {dsn: "u:hunter2@udp(h:1)/d"}}}`, "{}", statusFinding, ":2:10: error: store a: mysql store: the dsn's network is neither tcp nor unix"},
		{
			"one database", `{a: ` + one + `, b: ` + two + `}`, "{x: {segment: {store: a}}, y: {segment: {store: b}}}", 0,
			": warning: store b: it is the same database as store a in line 2, mysql store tcp(h:1)/d: use one store for both",
		},
		{
			"one series", `{a: ` + one + `, b: ` + two + `}`, "{x: {segment: {store: a}}, y: {segment: {store: b, key: x}}}", statusFinding,
			": error: source y: its key x is that of source x in line 3, as stores b and a are one database",
		},
		{
			"server of a group", `{a: {mysql: {dsns: ["u@tcp(h:1)/d", "u@tcp(h:2)/d"]}}, b: {mysql: {dsn: "u@tcp(h:2)/d"}}}`, "{}", 0,
			": warning: store b: it is the same database as store a in line 2, mysql store tcp(h:2)/d",
		},
		{"a table beside", `{a: ` + one + `, b: {mysql: {dsn: "u@tcp(h:1)/d", table: {dialect: leaf}}}}`, "{}", 0, ": fine"},
		{"two databases", `{a: ` + one + `, b: ` + other + `}`, "{}", 0, ": fine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := says(t, harness.WriteConfig(t, idle+"stores: "+tt.stores+"\nsources: "+tt.sources+"\n"), "check", tt.status, tt.want)
			assert.True(t, !strings.Contains(out, "hunter2"), "a password in %s", out)
		})
	}
}

func TestCheckFolders(t *testing.T) {
	dir := t.TempDir()
	assert.Must(t, errors.Join(os.Mkdir(filepath.Join(dir, "ids"), 0o700), os.Symlink("ids", filepath.Join(dir, "link"))))
	path := harness.WriteConfig(t, idle+fmt.Sprintf("stores: {a: {file: {dir: %[1]s/ids}}, b: {file: {dir: %[1]s/link}}}\n", dir))
	says(t, path, "check", statusFinding, "error: store b: its folder is that of store a in line 2: each would lock the other out; use one store for both")
}

// TestCheckFolder finds the folders of stores that serve would refuse, and no other.
func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	st := assert.Of(file.New(file.Config{Dir: in("store")})).Must(t)
	assert.Must(t, errors.Join(st.Prepare(t.Context()), os.Mkdir(in("volume"), 0o700), os.WriteFile(in("text"), nil, 0o600)))
	for name, want := range map[string]string{
		"store": "", "new": "", "volume/new": "",
		"volume":   "error: store a: folder " + in("volume") + " exists and is no id store",
		"text":     "error: store a: open " + in("text/store") + ": not a directory",
		"text/new": "error: store a: lstat " + in("text/new") + ": not a directory",
		"none/new": "error: store a: folder " + in("none/new") + " will not be made, as the one above it must be there: stat " + in("none") + ": no such file or directory",
	} {
		path := harness.WriteConfig(t, idle+fmt.Sprintf("stores: {a: {file: {dir: %q}}}\n", in(name)))
		got := runWith(t, "", "check", "--config", path)
		assert.True(t, (got.status == statusFinding) == (want != "") && strings.Contains(got.out, want), "%s: %+v, want %q", name, got, want)
		// serve is of the same opinion.
		other := assert.Of(file.New(file.Config{Dir: in(name)})).Must(t)
		err := other.Prepare(t.Context())
		assert.True(t, (err != nil) == (want != ""), "%s: the store says %v, and check %q", name, err, got.out)
	}
}

// TestCheckOnlineStores finds what only the servers of stores can tell.
func TestCheckOnlineStores(t *testing.T) {
	for _, server := range harness.Servers(t) { // they do not sync at commit
		t.Run(server.Kind.String(), func(t *testing.T) {
			name := harness.Database(t, server)
			port := server.Addr[strings.LastIndexByte(server.Addr, ':')+1:]
			path := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {main: {mysql: {dsn: "app:app@tcp(127.0.0.1:%[2]s)/%[3]s"}}, again: {mysql: {dsn: "app:app@tcp(localhost:%[2]s)/%[3]s"}}}
sources: {x: {segment: {store: main, key: k}}, y: {segment: {store: again, key: k}}}
`, askedListener(t), port, name))
			says(t, path, "check --online", statusFinding, ":2:10: warning: store main: mysql store tcp(127.0.0.1:"+port+")/"+name+": innodb_flush_log_at_trx_commit is 2",
				"warning: store again: it is the same database as store main in line 2, mysql store tcp(127.0.0.1:",
				"error: source y: its key k is that of source x in line 3")
		})
	}
}

// TestServeWarnsOfCrashes: the log names a store that forgets before any id is asked for.
func TestServeWarnsOfCrashes(t *testing.T) {
	server := harness.MariaDB(t)
	proxy := harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q}]
stores: {main: {mysql: {dsn: "app:app@tcp(%[1]s)/%[2]s"}}}
sources: {ids: {segment: {store: main}}}
`, server.Addr, harness.Database(t, server)))
	warned := func() bool {
		return strings.Contains(proxy.Log(), "a crash of the store's host can bring ids back that were issued")
	}
	assert.Until(t, "the log warns", warned, proxy.Log)
}

// TestCheckLogins: accounts that cannot log in without TLS are named where a listener offers none.
func TestCheckLogins(t *testing.T) {
	server := harness.MySQL(t)
	path := harness.WriteConfig(t, fmt.Sprintf(`listeners: 
  - {name: bare, listen: 127.0.0.1:0, upstream: %[1]q, account: {user: app, password: app}}
  - {name: local, listen: "unix:a.sock", upstream: %[1]q, account: {user: app, password: app}}
`, server.Addr))
	out := says(t, path, "check --online", statusFine, ":2:5: warning: listener bare: it offers no TLS, and these accounts have caching_sha2_password: 'app'@'%'",
		"fail with 2061 at their first login; add tls to the listener")
	assert.Equal(t, "findings", strings.Count(out, "caching_sha2_password"), 1)
}
