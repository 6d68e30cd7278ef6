package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/idsource/file"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestCheckStores looks at stores that serve would refuse, and at two that are one.
func TestCheckStores(t *testing.T) {
	for _, tt := range []struct {
		name, stores, sources string
		status                int
		want                  []string
	}{
		{
			name: "parameter", stores: `{a: {mysql: {dsn: "u:hunter2@tcp(h:1)/d?tls=gone"}}}`, status: statusFinding,
			want: []string{":2:10: error: store a: mysql store: the dsn is not of the form"},
		},
		{
			name: "network", stores: `{a: {mysql: {dsn: "u:hunter2@udp(h:1)/d"}}}`, status: statusFinding,
			want: []string{":2:10: error: store a: mysql store: the dsn's network is neither tcp nor unix"},
		},
		{
			name: "one database", stores: `{a: {mysql: {dsn: "u:hunter2@tcp(h:1)/d"}}, b: {mysql: {dsn: "v:x@tcp(h:1)/d?timeout=1s"}}}`, sources: "{x: {segment: {store: a}}, y: {segment: {store: b}}}",
			want: []string{": warning: store b: it is the same database as store a in line 2, mysql store tcp(h:1)/d: use one store for both"},
		},
		{
			name: "one series", stores: `{a: {mysql: {dsn: "u@tcp(h:1)/d"}}, b: {mysql: {dsn: "u@tcp(h:1)/d?timeout=1s"}}}`, status: statusFinding,
			sources: "{x: {segment: {store: a}}, y: {segment: {store: b, key: x}}}",
			want:    []string{": error: source y: its key x is that of source x in line 3, as stores b and a are one database"},
		},
		{
			name: "server of a group", stores: `{a: {mysql: {dsns: ["u@tcp(h:1)/d", "u@tcp(h:2)/d"]}}, b: {mysql: {dsn: "u@tcp(h:2)/d"}}}`,
			want: []string{": warning: store b: it is the same database as store a in line 2, mysql store tcp(h:2)/d"},
		},
		{name: "a table beside", stores: `{a: {mysql: {dsn: "u@tcp(h:1)/d"}}, b: {mysql: {dsn: "u@tcp(h:1)/d", table: {dialect: leaf}}}}`, want: []string{": fine"}},
		{name: "two databases", stores: `{a: {mysql: {dsn: "u@tcp(h:1)/d"}}, b: {mysql: {dsn: "u@tcp(h:1)/e"}}}`, want: []string{": fine"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.sources == "" {
				tt.sources = "{}"
			}
			path := harness.WriteConfig(t, fmt.Sprintf("listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\nstores: %s\nsources: %s\n", tt.stores, tt.sources))
			got := runWith(t, "", "check", "--config", path)
			assert.True(t, got.status == tt.status && !strings.Contains(got.out, "hunter2"), "status %d: %s", got.status, got.out)
			for _, want := range tt.want {
				holds(t, "the findings", got.out, want)
			}
		})
	}
}

func TestCheckFolders(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{os.Mkdir(filepath.Join(dir, "ids"), 0o700), os.Symlink("ids", filepath.Join(dir, "link"))} {
		assert.Must(t, err)
	}
	path := harness.WriteConfig(t, fmt.Sprintf("listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\nstores: {a: {file: {dir: %[1]s/ids}}, b: {file: {dir: %[1]s/link}}}\n", dir))
	got := runWith(t, "", "check", "--config", path)
	assert.True(t, got.status == statusFinding, "%+v", got)
	holds(t, "the findings", got.out, "error: store b: its folder is that of store a in line 2: each would lock the other out; use one store for both")
}

// TestCheckFolder finds the folders of stores that serve would refuse, and no other.
func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	st := assert.Of(file.New(file.Config{Dir: in("store")})).Must(t)
	for _, err := range []error{st.Open(t.Context()), os.Mkdir(in("volume"), 0o700), os.WriteFile(in("text"), nil, 0o600)} {
		assert.Must(t, err)
	}
	for name, want := range map[string]string{
		"store":      "",
		"new":        "",
		"volume/new": "",
		"volume":     "error: store a: folder " + in("volume") + " exists and is no id store",
		"text":       "error: store a: open " + in("text/store") + ": not a directory",
		"text/new":   "error: store a: lstat " + in("text/new") + ": not a directory",
		"none/new":   "error: store a: folder " + in("none/new") + " will not be made, as the one above it must be there: stat " + in("none") + ": no such file or directory",
	} {
		path := harness.WriteConfig(t, fmt.Sprintf("listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\nstores: {a: {file: {dir: %q}}}\n", in(name)))
		got := runWith(t, "", "check", "--config", path)
		assert.True(t, (got.status == statusFinding) == (want != "") && strings.Contains(got.out, want), "%s: %+v, want %q", name, got, want)
		// serve is of the same opinion.
		other := assert.Of(file.New(file.Config{Dir: in(name)})).Must(t)
		err := other.Open(t.Context())
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
			got := runWith(t, "", "check", "--online", "--config", path)
			assert.True(t, got.status == statusFinding, "%+v", got)
			holds(t, "a server that forgets", got.out, ":2:10: warning: store main: mysql store tcp(127.0.0.1:"+port+")/"+name+": innodb_flush_log_at_trx_commit is 2")
			holds(t, "two addresses", got.out, "warning: store again: it is the same database as store main in line 2, mysql store tcp(127.0.0.1:")
			holds(t, "one series", got.out, "error: source y: its key k is that of source x in line 3")
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.NoError(t, proxy.Poll(ctx, func() bool {
		return strings.Contains(proxy.Log(), "a crash of the store's host can bring ids back that were issued")
	}))
}

// TestCheckLogins: accounts that cannot log in without TLS are named where a listener offers none.
func TestCheckLogins(t *testing.T) {
	server := harness.MySQL(t)
	path := harness.WriteConfig(t, fmt.Sprintf(`listeners: 
  - {name: bare, listen: 127.0.0.1:0, upstream: %[1]q, account: {user: app, password: app}}
  - {name: local, listen: "unix:a.sock", upstream: %[1]q, account: {user: app, password: app}}
`, server.Addr))
	got := runWith(t, "", "check", "--online", "--config", path)
	assert.True(t, got.status == statusFine && strings.Count(got.out, "caching_sha2_password") == 1, "%+v", got)
	holds(t, "the findings", got.out, ":2:5: warning: listener bare: it offers no TLS, and these accounts have caching_sha2_password: 'app'@'%'")
	holds(t, "what to do", got.out, "fail with 2061 at their first login; add tls to the listener")
}

// TestCheckNumbers looks at sources that share a fixed worker number.
func TestCheckNumbers(t *testing.T) {
	for _, tt := range []struct {
		name, sources, rules string
		want                 string // "": nothing about numbers
		status               int
	}{
		{name: "two numbers", sources: "{x: {snowflake: {worker: 1}}, y: {snowflake: {worker: 2}}}"},
		{name: "one number", sources: "{x: {snowflake: {worker: 1}}, y: {snowflake: {worker: 1}}}", want: "note: sources x, y share worker number 1: each makes ids that the others make, too"},
		{
			name: "another layout", sources: "{x: {snowflake: {worker: 1}}, y: {snowflake: {worker: 1, layout: 39/12/12}}}", status: statusFinding,
			want: "error: source y: it shares worker number 1 and store (default) with source x in line 2, which has another layout or epoch",
		},
		{name: "the same layout by other words", sources: "{x: {snowflake: {worker: 1}}, y: {snowflake: {worker: 1, datacenter: 0, layout: 41ms/5+5/12}}}", want: "note: sources x, y share"},
		{
			name: "one column on two shards", sources: "{x: {snowflake: {worker: 1}}, y: {snowflake: {worker: 1}}}", status: statusFinding,
			rules: `[{table: shop.orders, column: id, source: x, listeners: [a]}, {table: "shop*.*", column: ID, source: y}]`,
			want:  "error: rule shop*.*.ID: source y shares worker number 1 with source x, which fills the same column on another listener by the rule in line 3: ids would come twice",
		},
		{
			name: "the first rule wins", sources: "{x: {snowflake: {worker: 1}}, y: {snowflake: {worker: 1}}}",
			rules: `[{table: shop.orders, column: id, source: x}, {table: "shop.*", column: id, source: y}]`, want: "note: sources x, y share",
		},
		{
			name: "other tables", sources: "{x: {snowflake: {worker: 1}}, y: {snowflake: {worker: 1}}}",
			rules: `[{table: shop.orders, column: id, source: x, listeners: [a]}, {table: shop.items, column: id, source: y, listeners: [b]}]`, want: "note: sources x, y share",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.rules == "" {
				tt.rules = "[]"
			}
			path := harness.WriteConfig(t, fmt.Sprintf("listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}, {name: b, listen: 127.0.0.1:0, upstream: 127.0.0.1:2}]\nsources: %s\nrules: %s\n", tt.sources, tt.rules))
			got := runWith(t, "", "check", "--config", path)
			if got.status != tt.status || strings.Contains(got.out, "worker number") != (tt.want != "") || !strings.Contains(got.out, tt.want) {
				t.Errorf("status %d: %s, want %q", got.status, got.out, tt.want)
			}
		})
	}
}
