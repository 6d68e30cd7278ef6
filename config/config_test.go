package config

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"idproxy/integration/assert"
)

// testEnv is the environment of all tests.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"TOKEN": "0123456789abcdef", "PW": `p: "}{'#@/`, "WORKER": "7", "EMPTY": "", "DOLLAR": "${PW}$$", "LINES": "a: b\nc: d", "TIME": "45s",
	}[name]
	return v, ok
}

func parseOK(t *testing.T, text string) *Config {
	t.Helper()
	return assert.Of(Parse("c.yaml", []byte(text), testEnv)).Must(t, "Parse("+text+")")
}

func problems(t *testing.T, err error) Errors {
	t.Helper()
	if err == nil {
		return nil
	}
	list, ok := errors.AsType[Errors](err)
	assert.MustTrue(t, ok, "got %T, want Errors", err)
	return list
}

// TestSeveralRulesOfOneTable holds that a table may have several columns with
// ids, also of one source.
func TestSeveralRulesOfOneTable(t *testing.T) {
	c := parseOK(t, oneListener+`
sources: {ids: {segment: {}}, flakes: {snowflake: {worker: 1}}}
rules:
  - {table: shop.orders, column: id, source: ids, explicit: advance, last_insert_id: packet}
  - {table: shop.orders, column: event_id, source: ids}
  - {table: "shop.*", column: flake, source: flakes, explicit: advance}
`)
	assert.MustTrue(t, len(c.Rules) == 3, "got %+v", c.Rules)
	assert.Equal(t, "the first", c.Rules[0].Explicit+" "+c.Rules[0].LastInsertID, ExplicitAdvance+" "+LastIDPacket)
	assert.Equal(t, "the second", c.Rules[1].Explicit+" "+c.Rules[1].LastInsertID, ExplicitKeep+" "+LastIDServer)
}

const oneListener = `listeners:
  - {name: a, listen: "127.0.0.1:3307", upstream: "127.0.0.1:3306"}
`

func TestDefaults(t *testing.T) {
	const text = `
listeners: [{listen: 127.0.0.1:3307, upstream: db:3306}]
sources: {order_id: {segment: {}}, event_id: {snowflake: {worker: 0}}}
rules: [{table: shop.orders, column: id, source: order_id}]
`
	got := assert.Of(Parse("/etc/idproxy/c.yaml", []byte(text), testEnv)).Must(t)
	want := &Config{
		Path:      "/etc/idproxy/c.yaml",
		Dir:       "/etc/idproxy",
		SHA256:    fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
		Listeners: []Listener{{Name: "listener0", Listen: Addr{"tcp", "127.0.0.1:3307"}, Upstream: Addr{"tcp", "db:3306"}, UpstreamTLS: UpstreamTLS{Mode: "as_client"}, Compression: "off", UpstreamKind: "auto"}},
		Stores:    []Store{{Name: "(default)", File: &FileStore{Dir: "/etc/idproxy/idproxy-data"}}},
		Sources: []Source{
			{Name: "order_id", Segment: &Segment{Store: "(default)", Key: "order_id", Start: 1, Step: 1000, MaxStep: 1000000, StepPolicy: "leaf", Prefetch: 10}},
			{Name: "event_id", Snowflake: &Snowflake{
				Store: "(default)", Layout: "41/10/12", Epoch: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
				Sequence: "continue", MaxAhead: 3 * time.Second, ClockBack: ClockBack{Hold: 15 * time.Millisecond, Then: "error"},
			}},
		},
		Rules: []Rule{{
			Schema: "shop", Table: "orders", Column: "id", Source: "order_id",
			Explicit: "keep", Unsupported: "reject", LastInsertID: "server", Mode: Mode{Word: "enforce"},
		}},
		Limits:          Limits{Sessions: 10000, Logins: 5000, Handshake: 10 * time.Second, Statement: 256 << 20, Held: 1 << 30, IDWait: 2 * time.Second},
		TCP:             TCP{Keepalive: Span(30 * time.Second)},
		ShutdownTimeout: 30 * time.Second,
		Engine:          EngineLoops,
		Log:             Log{Level: "info", Format: "text"},
	}
	assert.NoDiff(t, "differs", cmp.Diff(want, got, cmpopts.IgnoreTypes(Pos{})))
}

func TestEveryAvailableKey(t *testing.T) {
	c := parseOK(t, `
listeners:
  - name: shard0
    listen: "[::1]:0"
    upstream: unix:run/mysqld.sock
    account: {user: idproxy, password: "${PW}"}
    tls: {cert: server.pem, key: /abs/server.key, client_ca: ca.pem}
    upstream_tls: {mode: required, ca: ca.pem, server_name: db1}
  - {listen: unix:/run/idproxy.sock, upstream: db.example.com:3306, allow: [10.0.0.0/8, "fd00::/8"],
     limits: {sessions: 2, sessions_per_network: {limit: 1}, idle_timeout: 1m}}
  - {listen: :1, upstreams: [db1:3306, unix:run/mysqld.sock], writable: true, account: {user: idproxy}}
stores:
  main: {mysql: {dsn: "idproxy:${PW}@tcp(127.0.0.1:3306)/idproxy"}}
  local: {file: {dir: ./data}}
  tickets: {mysql: {dsns: ["u@tcp(h1:3306)/d", "u@tcp(h2:3306)/d"]}}
  raft: {etcd: {endpoints: ["h1:2379", "h2:2379"], username: app, password: "${PW}", tls: {ca: ca.pem, cert: own.pem, key: /abs/own.key, server_name: raft}}}
sources:
  each: {segment: {store: raft, key: "ids_{schema}.{table}", step_policy: rate}}
  order.id: {segment: {store: main, key: orders, start: 5000, step: 2000000, prefetch: 50%}}
  fixed_id:
    snowflake: {worker: 31, datacenter: 3, layout: 41/5+5/12, store: local, epoch: 2024-02-03, sequence: "random:100",
                max_ahead: 1m, clock_back: {hold: 1s, then: borrow}}
rules:
  - {table: "shop_?.*", column: id, source: order.id, explicit: reject, unsupported: forward, mode: observe, listeners: [listener1]}
ids: {redis: {listen: 127.0.0.1:6399, max_incrby: 5000, users: {default: {password: "${PW}"}, reader: {password: x, sources: [each, other], max_incrby: 10}}},
      http: {listen: "unix:run/ids", max_n: 5000, tinyid_step: 200, users: {billing: {token: "${TOKEN}", sources: [each, "u*"], max_n: 10, rate: 7}, all: {token: 0123456789abcdefg}}}}
limits: {sessions: 5, logins: 3, handshake: 1m, connect_timeout: 500ms, statement: 64KiB, held: 1MiB, id_wait: 300ms, sessions_per_user: 4,
         sessions_per_network: {limit: 7, ipv4: 24}, idle_timeout: 1h, transaction_timeout: 2m}
tcp: {keepalive: 0, user_timeout: 1m}
shutdown_timeout: "${TIME}"
engine: goroutines
log: {level: debug, format: json}
`)
	l := c.Listeners[0]
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"listen", l.Listen, Addr{"tcp", "[::1]:0"}},
		{"upstream", l.Upstream, Addr{"unix", "run/mysqld.sock"}},
		{"upstream text", l.Upstream.String(), "unix:run/mysqld.sock"},
		{"password", string(l.Account.Password), `p: "}{'#@/`},
		{"tls", *l.TLS, ListenerTLS{Mode: TLSOptional, Cert: "server.pem", Key: "/abs/server.key", ClientCA: "ca.pem"}},
		{"upstream_tls", l.UpstreamTLS, UpstreamTLS{Mode: TLSRequired, CA: "ca.pem", ServerName: "db1"}},
		{"one server", l.Servers(), []Addr{{"unix", "run/mysqld.sock"}}},
		{"servers", c.Listeners[2].Servers(), []Addr{{"tcp", "db1:3306"}, {"unix", "run/mysqld.sock"}}},
		{"servers as text", c.Listeners[2].Behind(), "db1:3306, unix:run/mysqld.sock"},
		{"writable", c.Listeners[2].Writable, true},
		{"second name", c.Listeners[1].Name, "listener1"},
		{"dsn", string(c.Store("main").MySQL.DSN), `idproxy:p: "}{'#@/@tcp(127.0.0.1:3306)/idproxy`},
		{"dir", c.Store("local").File.Dir, "data"},
		{"segment", *c.Source("order.id").Segment, Segment{Store: "main", Key: "orders", Start: 5000, StartGiven: true, Step: 2000000, MaxStep: 2000000, StepPolicy: "leaf", Prefetch: 50}},
		{"snowflake", *c.Source("fixed_id").Snowflake, Snowflake{
			Worker: 31, Datacenter: 3, Layout: "41/5+5/12", Store: "local", Epoch: time.Date(2024, 2, 3, 0, 0, 0, 0, time.UTC),
			Sequence: "random:100", MaxAhead: time.Minute, ClockBack: ClockBack{Hold: time.Second, Then: ThenBorrow},
		}},
		{"dsns", string(c.Store("tickets").MySQL.DSNs[1]), "u@tcp(h2:3306)/d"},
		{"etcd", *c.Store("raft").Etcd, EtcdStore{
			Endpoints: []string{"h1:2379", "h2:2379"}, Username: "app", Password: `p: "}{'#@/`,
			TLS: &StoreTLS{CA: "ca.pem", Cert: "own.pem", Key: "/abs/own.key", ServerName: "raft"},
		}},
		{"series for each table", *c.Source("each").Segment, Segment{Store: "raft", Key: "ids_{schema}.{table}", Start: 1, Step: 1000, MaxStep: 1000000, StepPolicy: "rate", Prefetch: 10}},
		{"rule", c.Rules[0].String(), "shop_?.*.id"},
		{"rule words", c.Rules[0].Explicit + " " + c.Rules[0].Unsupported + " " + c.Rules[0].Mode.Word, "reject forward observe"},
		{"rule on shard0", c.Rules[0].On("shard0"), false},
		{"rule on listener1", c.Rules[0].On("listener1"), true},
		{"ids over HTTP", [...]uint64{c.IDs.HTTP.MaxN, c.IDs.HTTP.TinyIDStep, c.IDs.HTTP.Users[0].MaxN, c.IDs.HTTP.Users[0].Rate, c.IDs.HTTP.Users[1].MaxN}, [...]uint64{5000, 200, 10, 7, 5000}},
		{"user over HTTP", string(c.IDs.HTTP.Users[0].Token) + " " + strings.Join(c.IDs.HTTP.Users[0].Sources, " "), "0123456789abcdef each u*"},
		{"ids", c.IDs.Redis.Listen.String() + " " + string(c.IDs.Redis.Users[0].Password), `127.0.0.1:6399 p: "}{'#@/`},
		{"user", c.IDs.Redis.Users[1].Name + " " + strings.Join(c.IDs.Redis.Users[1].Sources, " "), "reader each other"},
		{"INCRBY", []uint64{c.IDs.Redis.MaxIncrBy, c.IDs.Redis.Users[0].MaxIncrBy, c.IDs.Redis.Users[1].MaxIncrBy}, []uint64{5000, 5000, 10}},
		{"limits", c.Limits, Limits{
			Sessions: 5, Logins: 3, Handshake: time.Minute, ConnectTimeout: 500 * time.Millisecond, Statement: 64 << 10, Held: 1 << 20, IDWait: 300 * time.Millisecond,
			SessionsPerUser: 4, SessionsPerNetwork: &Network{7, 24, 64}, IdleTimeout: Span(time.Hour), TransactionTimeout: Span(2 * time.Minute),
		}},
		{"allow", c.Listeners[1].Allow, []string{"10.0.0.0/8", "fd00::/8"}},
		{"limits of a listener", c.Bounds(&c.Listeners[1]), ListenerLimits{
			Sessions: 2, SessionsPerUser: 4, SessionsPerNetwork: &Network{1, 32, 64}, IdleTimeout: Span(time.Minute), TransactionTimeout: Span(2 * time.Minute),
		}},
		{"limits of another", c.Bounds(&l).SessionsPerNetwork.Limit, uint64(7)},
		{"tcp", c.TCP, TCP{UserTimeout: Span(time.Minute)}},
		{"shutdown_timeout", c.ShutdownTimeout, 45 * time.Second},
		{"engine", c.Engine, EngineGoroutines},
		{"log", c.Log, Log{Level: "debug", Format: "json"}},
		{"no default store", len(c.Stores), 4},
		{"store that is not there", c.Store("x") == nil && c.Source("x") == nil, true},
	} {
		assert.NoDiff(t, tt.name, cmp.Diff(tt.want, tt.got))
	}
}

func TestPositions(t *testing.T) {
	c := parseOK(t, `
listeners:
  - {listen: :1, upstream: h:1}
stores:
  local: {file: {dir: d}}
sources:
  ids:
    segment: {store: local}
rules:
  - column: id
    table: shop.orders
    source: ids
`)
	assert.Equal(t, "listener", c.Listeners[0].Pos.String(), "c.yaml:3:5")
	assert.Equal(t, "store", c.Stores[0].Pos.String(), "c.yaml:5:3")
	assert.Equal(t, "source", c.Sources[0].Pos.String(), "c.yaml:7:3")
	assert.Equal(t, "rule", c.Rules[0].Pos.String(), "c.yaml:10:5")
}

// TestEnvironment shows that what a variable holds is never read as YAML.
func TestEnvironment(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`"${PW}"`, `p: "}{'#@/`},
		{`'${PW}'`, `p: "}{'#@/`},
		{`${PW}`, `p: "}{'#@/`},
		{`a${PW}b$$c`, `ap: "}{'#@/b$c`},
		{`"${DOLLAR}"`, `${PW}$$`},
		{`"$${PW}"`, `${PW}`},
		{`"$$$$"`, `$$`},
		{`"${LINES}"`, "a: b\nc: d"},
		{`"${EMPTY}"`, ``},
		{"|-\n        ${PW}", `p: "}{'#@/`},
	} {
		c := parseOK(t, "listeners:\n  - listen: :1\n    upstream: h:1\n    account:\n      user: u\n      password: "+tt.in+"\n")
		assert.Equal(t, "password: "+tt.in, string(c.Listeners[0].Account.Password), tt.want)
	}
	c := parseOK(t, oneListener+`sources: {ids: {snowflake: {worker: "${WORKER}"}}}`)
	assert.Equal(t, "worker", c.Sources[0].Snowflake.Worker, 7)
}

// TestDefaultStoreIsShared keeps two stores off one folder, where they would lock each other out.
func TestDefaultStoreIsShared(t *testing.T) {
	c := parseOK(t, oneListener+"stores: {mine: {file: {dir: ./idproxy-data/}}}\nsources: {ids: {segment: {}}}\n")
	got := c.Sources[0].Segment.Store
	assert.True(t, got == "mine" && len(c.Stores) == 1, "got store %q of %d, want mine of 1", got, len(c.Stores))
	assert.Of(Parse("c.yaml", []byte(oneListener+"sources: {ids: {segment: {store: (default)}}}\n"), testEnv)).Fails(t, "naming the default store", "")
}

func TestFirstMatch(t *testing.T) {
	// Rules that look alike and are all needed.
	parseOK(t, `
listeners: [{name: a, listen: :1, upstream: h:1}, {name: b, listen: :2, upstream: h:1}]
sources: {x: {segment: {}}, y: {segment: {}}}
rules:
  - {table: shop.orders, column: id, source: x, listeners: [a]}
  - {table: shop.orders, column: id, source: y, listeners: [b]}
  - {table: "shop.*", column: id, source: x}
  - {table: "shop.*", column: event_id, source: y}
  - {table: "*.orders", column: id, source: x}
  - {table: "sho?.order?", column: id, source: x}
`)
}

// TestSecretsAreNotPrinted looks for the secrets in everything a Config can end up in.
func TestSecretsAreNotPrinted(t *testing.T) {
	c := parseOK(t, `
listeners: [{listen: :1, upstream: h:1, account: {user: u, password: hunter2}}]
stores: {main: {mysql: {dsn: "u:hunter2@tcp(h:1)/d"}}}
`)
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	account, store := *c.Listeners[0].Account, *c.Stores[0].MySQL
	logger.Info("x", "secret", account.Password, "config", c, "account", account)
	asJSON := assert.Of(json.Marshal(c)).Must(t)
	texts := []string{log.String(), string(asJSON)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, account), fmt.Sprintf(verb, account.Password), fmt.Sprintf(verb, store), fmt.Sprintf(verb, c))
	}
	for _, text := range texts {
		for _, secret := range []string{"hunter2", fmt.Sprintf("%x", "hunter2"), fmt.Sprintf("%X", "hunter2")} {
			assert.True(t, !strings.Contains(text, secret), "the password is in %s", text)
		}
	}
	assert.Equal(t, "a secret and an empty one are printed as", account.Password.String()+Secret("").String(), "********")
	assert.True(t, string(account.Password) == "hunter2", "the password is lost") // negative control: the value itself is there
}

// TestSecretsAreNotInErrors breaks the file at every byte of a password's
// neighbourhood and looks for it in what comes back.
func TestSecretsAreNotInErrors(t *testing.T) {
	const file = `
listeners: [{listen: :1, upstream: h:1, account: {user: u, password: "hunter2"}}]
stores: {main: {mysql: {dsn: "u:hunter2@tcp(h:1)/d"}}, more: {mysql: {dsns: ["u:hunter2@tcp(h:1)/d"]}}}
admin: {listen: :2, token: "hunter2"}
`
	broken := 0
	for i := range len(file) {
		for _, with := range []string{"", "\"", "{", "]", ":", "\n", "&", "\t", "$", "!", "- "} {
			if end := i + 1; strings.Contains(file[max(0, i-8):min(len(file), end+8)], "hunter2") && with != "\"" {
				continue // the password itself changed
			}
			_, err := Parse("c.yaml", []byte(file[:i]+with+file[i+1:]), testEnv)
			if err == nil {
				continue
			}
			broken++
			assert.True(t, !strings.Contains(err.Error(), "hunter2"), "%q for byte %d: %v", with, i, err)
		}
	}
	assert.True(t, broken >= 500, "only %d files were refused", broken)
}

// TestSecretHoldersPrintThemselves walks the structs: each that has a Secret must be
// a fmt.Formatter, for the reason given there.
func TestSecretHoldersPrintThemselves(t *testing.T) {
	found := 0
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i).Type
			for f.Kind() == reflect.Slice || f.Kind() == reflect.Map {
				f = f.Elem()
			}
			if f == reflect.TypeFor[Secret]() {
				found++
				assert.True(t, typ.Implements(reflect.TypeFor[fmt.Formatter]()), "%s holds a secret and is no fmt.Formatter", typ)
			}
			walk(f)
		}
	}
	walk(reflect.TypeFor[Config]())
	assert.True(t, found == 11, "found %d fields of secrets, want 11", found)
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "idproxy.yaml")
	assert.Of(Load(path)).ErrorIs(t, "no file", fs.ErrNotExist)
	t.Setenv("IDPROXY_TEST_DIR", "data")
	text := oneListener + "stores: {s: {file: {dir: \"${IDPROXY_TEST_DIR}\"}}}\nids: {redis: {listen: unix:ids.sock}, http: {listen: :9308, tls: {cert: c, key: k}}}\n"
	assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
	c := assert.Of(Load(path)).Must(t)
	assert.Equal(t, "dir", c.Store("s").File.Dir, filepath.Join(dir, "data"))
	assert.Equal(t, "ids.redis.listen", c.IDs.Redis.Listen.Address, filepath.Join(dir, "ids.sock"))
	h := c.IDs.HTTP
	got, want := []string{h.TLS.Cert, h.TLS.Key}, []string{filepath.Join(dir, "c"), filepath.Join(dir, "k")}
	assert.True(t, slices.Equal(got, want), "ids.http.tls: got %s, want %s", got, want)
}

// TestValuesFromFiles: a value can name a file, or a credential of systemd.
func TestValuesFromFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Join(dir, "credentials"))
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		assert.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	write("pw", "s3:cret${PW} \r\n")
	write("two", "a\nb\n")
	write("empty", "")
	write("line", "\n")
	write("large", strings.Repeat("x", maxValue+1))
	write("credentials/db", "from systemd\n")
	assert.Must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	absolute := filepath.Join(dir, "pw")
	for _, tt := range []struct{ in, want, problem string }{
		{in: "${file:pw}", want: "s3:cret${PW} "},
		{in: "${file:" + absolute + "}", want: "s3:cret${PW} "},
		{in: "u:${file:pw}@$$", want: "u:s3:cret${PW} @$"},
		{in: "${file:two}", want: "a\nb"},
		{in: "${credential:db}", want: "from systemd"},
		{in: "${file:none}", problem: "file " + filepath.Join(dir, "none") + ": no such file or directory"},
		{in: "${file:credentials}", problem: "file " + filepath.Join(dir, "credentials") + ": it is not a regular file"},
		{in: "${file:pipe}", problem: "file " + filepath.Join(dir, "pipe") + ": it is not a regular file"},
		{in: "${file:empty}", problem: "file " + filepath.Join(dir, "empty") + ": it is empty"},
		{in: "${file:line}", problem: "file " + filepath.Join(dir, "line") + ": it is empty"},
		{in: "${file:large}", problem: "file " + filepath.Join(dir, "large") + ": it has more than 65536 bytes: a value has fewer"},
		{in: "${credential:../pw}", problem: alone},
		{in: "${file:}", problem: alone},
		{in: "${fil:pw}", problem: alone},
	} {
		path := filepath.Join(dir, "c.yaml")
		text := fmt.Sprintf("listeners: [{listen: :1, upstream: h:1, account: {user: a, password: %q}}]\n", tt.in)
		write("c.yaml", text)
		c, err := Load(path)
		switch {
		case tt.problem != "":
			assert.Equal(t, tt.in, fmt.Sprint(err), path+":1:70: "+tt.problem)
		case err != nil:
			t.Errorf("%s: %v", tt.in, err)
		case string(c.Listeners[0].Account.Password) != tt.want:
			t.Errorf("%s: got %q, want %q", tt.in, string(c.Listeners[0].Account.Password), tt.want)
		case len(c.ValueFiles) != 1 || !filepath.IsAbs(c.ValueFiles[0]):
			t.Errorf("%s: files %q", tt.in, c.ValueFiles)
		}
		assert.Of(Parse(path, []byte(text), os.LookupEnv)).Fails(t, tt.in+": Parse reads files", "")
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	os.Unsetenv("CREDENTIALS_DIRECTORY")
	write("c.yaml", "listeners: [{listen: :1, upstream: h:1, account: {user: a, password: \"${credential:db}\"}}]\n")
	assert.Of(Load(filepath.Join(dir, "c.yaml"))).Fails(t, "no systemd", "add LoadCredential=db:PATH to the unit")
}

func TestOddFiles(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"byte order mark", "\ufeff" + oneListener, ""},
		{"carriage returns", strings.ReplaceAll(oneListener, "\n", "\r\n"), ""},
		{"carriage returns, error", strings.ReplaceAll(oneListener+"log: {}\nlogs: {}\n", "\n", "\r\n"), `c.yaml:4:1: unknown key "logs": did you mean "log"?`},
		{"document start", "---\n" + oneListener, ""},
		{"document end", oneListener + "...\n", ""},
		{"deep", strings.Repeat("[", 5000), "c.yaml:1:1: the file is larger than 4 MiB or nested deeper than 100 levels: this is no idproxy configuration"},
		{"deep lists", strings.Repeat("- ", 5000), "c.yaml:1:1: the file is larger than 4 MiB or nested deeper than 100 levels: this is no idproxy configuration"},
		{"large", "#" + strings.Repeat("x", 4<<20), "c.yaml:1:1: the file is larger than 4 MiB or nested deeper than 100 levels: this is no idproxy configuration"},
	} {
		_, err := Parse("c.yaml", []byte(tt.in), testEnv)
		assert.True(t, fmt.Sprint(err) == tt.want || tt.want == "" && err == nil, "%s: got %v, want %q", tt.name, err, tt.want)
	}
}

func TestSizeString(t *testing.T) {
	for in, want := range map[Size]string{256 << 20: "256MiB", 1 << 30: "1GiB", 1 << 10: "1KiB", 1000: "1000B", 0: "0B"} {
		assert.Equal(t, fmt.Sprintf("Size(%d)", int64(in)), in.String(), want)
	}
}

// TestLeasePresets: a name stands for durations.
func TestLeasePresets(t *testing.T) {
	for name, want := range map[string]Lease{
		"":                                    {Heartbeat: 2 * time.Second, Reclaim: 20 * time.Second},
		", lease: standard":                   {Heartbeat: 2 * time.Second, Reclaim: 20 * time.Second},
		", lease: patient":                    {Heartbeat: 5 * time.Second, Reclaim: 5 * time.Minute},
		", lease: {}":                         {Heartbeat: 2 * time.Second, Reclaim: 20 * time.Second},
		", lease: {reclaim: 1m}":              {Heartbeat: 2 * time.Second, Reclaim: time.Minute},
		`, lease: "${PRESET}", max_ahead: 1s`: {Heartbeat: 5 * time.Second, Reclaim: 5 * time.Minute},
	} {
		c, err := Parse("c.yaml", []byte(`listeners: [{listen: :1, upstream: h:1}]
stores: {leases: {redis: {addrs: ["h:6379"]}}}
sources: {a: {snowflake: {workers: leases`+name+`}}}
`), func(string) (string, bool) { return "patient", true })
		assert.Must(t, err, name)
		assert.Equal(t, name, *c.Sources[0].Snowflake.Lease, want)
	}
}

// TestConnectTimeout: all of several servers can be tried within the time of a login, whatever the
// file says.
func TestConnectTimeout(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		servers          int
		handshake, limit time.Duration // limit 0: the file says nothing
		want             time.Duration
	}{
		{1, 10 * s, 0, 10 * s},
		{1, 10 * s, 3 * s, 3 * s},
		{1, 2 * s, 3 * s, 2 * s},
		{2, 10 * s, 0, 3 * s},
		{2, 10 * s, s, s},
		{2, 3 * s, 3 * s, s},
		{2, 3 * s, 10 * s, s},
		{4, 10 * s, 0, 2 * s},
	} {
		c := &Config{Limits: Limits{Handshake: tt.handshake, ConnectTimeout: tt.limit}}
		l := &Listener{Upstreams: make([]Addr, tt.servers)}
		got := c.ConnectTimeout(l)
		assert.True(t, got == tt.want && (tt.servers <= 1 || got*time.Duration(tt.servers) < tt.handshake), "%d servers, handshake %v, connect_timeout %v: %v, want %v", tt.servers, tt.handshake, tt.limit, got, tt.want)
	}
}
