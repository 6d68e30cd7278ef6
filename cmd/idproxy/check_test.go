package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/check"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/snowflake"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// malformed has four problems, each on a line of its own.
const malformed = `log:
  {level: loud}
sources:
  ids: {segment: {stepp: 10}}
rules:
  - {table: shop.orders, column: id, source: idz}
listeners: [{listen: 127.0.0.1:0, upstream: 127.0.0.1:3306, proxy_protocol: {send: v3}}]
`

func TestCheckListsAllProblems(t *testing.T) {
	path := harness.WriteConfig(t, malformed)
	got := runWith(t, "", "check", "--config", path)
	assert.True(t, got.status == statusFinding && got.err == "", "status %d, standard error %q", got.status, got.err)
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	assert.Equal(t, "it ends with", lines[len(lines)-1], path+": 4 errors")
	lines = lines[:len(lines)-1]
	position := regexp.MustCompile(`^` + regexp.QuoteMeta(path) + `:(\d+):\d+: error: .+`)
	var at []string
	for _, line := range lines {
		m := position.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no position in front of %q", line)
			continue
		}
		at = append(at, m[1])
	}
	assert.Equal(t, "problems in lines", strings.Join(at, " "), "2 4 6 7")
	holds(t, "the last problem", lines[len(lines)-1], "must be v1 or v2")
}

// TestCheckEnd: what serve refuses, check names. 38 bits of milliseconds last 3181 days.
func TestCheckEnd(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		left   time.Duration
		status int
		want   string
	}{{300 * day, statusFinding, ": error: source ids: layout 38/15/10"}, {500 * day, 0, ": warning: source ids: layout 38/15/10"}, {1000 * day, 0, ": fine"}} {
		epoch := time.Now().Add(tt.left - 3181*day).UTC().Format(time.RFC3339)
		says(t, harness.WriteConfig(t, idle+"sources: {ids: {snowflake: {worker: 1, layout: 38/15/10, epoch: "+epoch+"}}}\n"+
			"rules: [{table: shop.orders, column: id, source: ids}]\n"), "check", tt.status, tt.want)
	}
}

func TestCheckJSON(t *testing.T) {
	for text, want := range map[string]int{malformed: 4, idle: 0} {
		path := harness.WriteConfig(t, text)
		got := runWith(t, "", "check", "--json", "--config", path)
		var report check.Report
		assert.Must(t, json.Unmarshal([]byte(got.out), &report), got.out)
		assert.True(t, len(report.Findings) == want && report.Findings != nil && (got.status == statusFinding) == (want > 0), "status %d, findings %+v, want %d", got.status, report.Findings, want)
		for _, f := range report.Findings {
			assert.True(t, f.Level == check.LevelError && f.Message != "" && strings.HasPrefix(f.Position, path+":"), "finding %+v", f)
		}
	}
}

func TestCheckNamesMissingCertificate(t *testing.T) {
	path := harness.WriteConfig(t, strings.Replace(idle, "}", ", tls: {cert: gone.pem, key: gone.key}}", 1))
	says(t, path, "check", statusFinding, path+":1:13: error: listener a: tls: open "+filepath.Join(filepath.Dir(path), "gone.pem"))
}

// TestCheckTLS: what TLS does not protect from is named, and so are certificates near their end.
func TestCheckTLS(t *testing.T) {
	const tls = "tls: {mode: %s, cert: server.pem, key: server.key, client_ca: server.pem}"
	for _, tt := range []struct {
		listener string
		lasts    time.Duration
		status   int
		want     []string // and nothing else
	}{
		{"upstream_tls: {mode: as_client}", 900 * time.Hour, 0, nil},
		{"upstream_tls: {mode: preferred}", 900 * time.Hour, 0, []string{"does not verify the certificate of 127.0.0.1:1"}},
		{"upstream_tls: {mode: preferred, ca: server.pem}", 900 * time.Hour, 0, []string{"upstream_tls.mode is preferred: who takes the offer of TLS out"}},
		{"upstream_tls: {mode: required, ca: server.pem}", 900 * time.Hour, 0, nil},
		{fmt.Sprintf(tls, "optional"), 900 * time.Hour, 0, []string{"does not verify", "lets those without TLS in"}},
		{fmt.Sprintf(tls, "required") + ", upstream_tls: {mode: disabled}", 900 * time.Hour, 0, nil},
		{"upstream_tls: {mode: required, ca: server.pem}", 13 * 24 * time.Hour, 0, []string{"warning: listeners.a.upstream_tls.ca: the certificate in"}},
		{"upstream_tls: {mode: required, ca: server.pem}", -time.Hour, statusFinding, []string{"error: listeners.a.upstream_tls.ca: the certificate in"}},
	} {
		path := harness.WriteConfig(t, strings.Replace(idle, "}", ", "+tt.listener+"}", 1))
		harness.WriteCertificate(t, filepath.Dir(path), tt.lasts)
		out := says(t, path, "check", tt.status, tt.want...)
		n := strings.Count(out, "warning: ") + strings.Count(out, "error: ")
		assert.True(t, n == len(tt.want), "%s: %d findings: %s", tt.listener, n, out)
	}
}

// onlineConfig has one listener in front of a server and one rule. %[2]s is the database.
const onlineConfig = `listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q, account: {user: app, password: app}}]
stores: {main: {mysql: {dsn: "app:app@tcp(%[1]s)/%[2]s"}}}
sources:
  ids: {segment: {store: main, key: ids}}
  late: {segment: {store: main, start: 3000000000}}
  flakes: {snowflake: {worker: 1}}
  short: {snowflake: {worker: 2, layout: 41/5/7}}
  hidden: {segment: {scramble: {key: 2b7e151628aed2a6abf7158809cf4f3c, bits: 48}}}
rules: [{table: %[2]s.%[3]s, column: %[4]s, source: %[5]s}]
`

func TestCheckOnline(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	db := harness.Open(t, server.Config(name), "")
	harness.MustExec(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY, small INT, day DATE)", "CREATE TABLE old (id BIGINT PRIMARY KEY)", "INSERT INTO old VALUES (5000)",
		"CREATE TABLE negative (id BIGINT PRIMARY KEY)", "INSERT INTO negative VALUES (-5)")
	for _, tt := range []struct{ name, table, column, source, want string }{
		{"fine", "orders", "id", "ids", ""},
		{"other case", "orders", "ID", "ids", ""},
		{"table missing", "gone", "id", "ids", "doesn't exist"},
		{"column missing", "orders", "nr", "ids", "the table has no column nr"},
		{"column of another type", "orders", "day", "ids", "cannot hold generated ids exactly"},
		{"column too narrow", "orders", "small", "flakes", "makes ids of up to 63 bits, and the column holds at most 2147483647"},
		{"column too narrow for a short layout", "orders", "small", "short", "makes ids of up to 53 bits, and the column holds at most 2147483647"},
		{"column too narrow for the start", "orders", "small", "late", "stands at 3000000000, and the column holds at most 2147483647"},
		{"column too narrow for scrambled ids", "orders", "small", "hidden", "makes ids of up to 48 bits, and the column holds at most 2147483647"},
		{"column wide enough", "orders", "id", "flakes", ""},
		{"source never used", "old", "id", "ids", ""},
		{"only negative ids", "negative", "id", "ids", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := harness.WriteConfig(t, fmt.Sprintf(onlineConfig, server.Addr, name, tt.table, tt.column, tt.source))
			if tt.want == "" {
				out := says(t, path, "check --online", statusFine)
				assert.True(t, !strings.Contains(out, ": error: "), "%s, want no error", out)
				return
			}
			says(t, path, "check --online", statusFinding, path+":9:9: error: rule "+name+"."+tt.table+"."+tt.column, tt.want)
		})
	}
}

// TestCheckOnlineStoreBehind uses a key until it stands at 1001, as behind a restored backup of the store.
func TestCheckOnlineStoreBehind(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	db := harness.Open(t, server.Config(name), "")
	assert.Of(db.Exec("CREATE TABLE orders (id BIGINT PRIMARY KEY)")).Must(t)
	config := fmt.Sprintf(onlineConfig, server.Addr, name, "orders", "id", "ids")
	proxy := harness.StartProxy(t, config)
	assert.Of(harness.Open(t, server.Config(name), proxy.Addr("a")).Exec("INSERT INTO orders () VALUES (NULL)")).Fails(t, "a form that is not filled", "")
	assert.Of(harness.Open(t, server.Config(name), proxy.Addr("a")).Exec("INSERT INTO orders VALUES (NULL)")).Must(t)
	path := harness.WriteConfig(t, config)
	says(t, path, "check --online", statusFine)
	assert.Of(db.Exec("INSERT INTO orders VALUES (900000)")).Must(t)
	says(t, path, "check --online", statusFinding, "at or below the greatest id 900000", "set start: 900001")
}

// TestCheckOnlineFileBehind looks at a file store while another process holds it.
func TestCheckOnlineFileBehind(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	db := harness.Open(t, server.Config(name), "")
	assert.Of(db.Exec("CREATE TABLE orders (id BIGINT PRIMARY KEY)")).Must(t)
	path := harness.WriteConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
sources: {ids: {segment: {}}}
rules: [{table: %s.orders, column: id, source: ids}]
`, server.Addr, name))
	holds(t, "the findings without a folder", runWith(t, "", "check", "--online", "--config", path).out, "will be created")
	st := assert.Of(file.New(file.Config{Dir: filepath.Join(filepath.Dir(path), "idproxy-data")})).Must(t)
	defer st.Close() //nolint:errcheck // nothing is pending
	assert.Must(t, st.Open(t.Context(), "ids", 1, 0))
	_, _, err := st.Reserve(t.Context(), idsource.Ask{Key: "ids", Count: 1000, Last: 1 << 60})
	assert.Must(t, err)
	for _, id := range []int{1000, 5000} {
		assert.Of(db.Exec("INSERT INTO orders VALUES (?)", id)).Must(t)
		got := runWith(t, "", "check", "--online", "--config", path)
		behind := strings.Contains(got.out, "stands at 1001, at or below the greatest id 5000")
		assert.True(t, behind == (id == 5000) && behind == (got.status == statusFinding), "greatest id %d: %+v", id, got)
	}
}

func TestCheckOnlineWithoutAccount(t *testing.T) {
	path := harness.WriteConfig(t, idle)
	says(t, path, "check --online", statusFinding, path+":1:13: error: listener a: NOT checked: it has no account")
}

// TestCheckOnlineForeign: a server that is no MySQL is not asked with an account.
func TestCheckOnlineForeign(t *testing.T) {
	path := harness.WriteConfig(t, strings.Replace(idle, "}", ", upstream_kind: middleware, account: {user: app}}", 1))
	says(t, path, "check --online", 0, path+":1:13: warning: listener a: NOT checked: server 127.0.0.1:1 is asked over the connections of clients alone")
}

func TestCheckOnlineServerUnreachable(t *testing.T) {
	addr := harness.FreeAddr(t)
	path := harness.WriteConfig(t, fmt.Sprintf(onlineConfig, addr, "shop", "orders", "id", "ids"))
	out := says(t, path, "check --online", statusFinding, path+":1:13: error: listener a: server "+addr, path+":4:3: error: mysql store ",
		"\n    2 times: source ids; source late\n", "connection refused")
	assert.True(t, !strings.Contains(out, "app:app"), "a password in %q", out)
}

// TestFolderOfEverybody: check and serve both refuse to keep ids where everybody can write.
func TestFolderOfEverybody(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0") // so that serve ends if it does not refuse
	assert.Must(t, err)
	defer taken.Close()
	path := harness.WriteConfig(t, fmt.Sprintf("listeners: [{name: a, listen: %q, upstream: 127.0.0.1:1}]\nstores: {here: {file: {dir: data}}}\n", taken.Addr()))
	dir := filepath.Join(filepath.Dir(path), "data")
	assert.Must(t, os.Mkdir(dir, 0o700))
	assert.Must(t, os.Chmod(dir, 0o777))
	says(t, path, "check", statusFinding, "error: folder "+dir)
	got := runWith(t, "", "serve", "--config", path)
	assert.True(t, got.status != 0 && strings.Contains(got.err, "folder "+dir+": everybody on this machine"), "serve: status %d: %s", got.status, got.err)
}

// TestCheckLayouts looks at layouts whose ids are not what an application may expect.
func TestCheckLayouts(t *testing.T) {
	for layout, want := range map[string]string{ // "" for no word about the layout
		"41/10/12": "", "39x10ms/16/8": "",
		"39x10ms/8seq/16worker": "warning: source ids: ids of layout 39x10ms/8seq/16worker are not consecutive",
		"10worker/41/12seq":     "warning: source ids: ids of layout 10worker/41/12seq do not ascend",
	} {
		t.Run(layout, func(t *testing.T) {
			out := says(t, harness.WriteConfig(t, idle+"sources: {ids: {snowflake: {worker: 1, layout: "+layout+"}}}\n"), "check", statusFine)
			assert.True(t, strings.Contains(out, want) && (want != "" || !strings.Contains(out, "layout")), "%s, want %q", out, want)
		})
	}
}

// TestCheckScramble: check says what scrambled ids are not.
func TestCheckScramble(t *testing.T) {
	path := harness.WriteConfig(t, idle+"sources: {ids: {segment: {scramble: {key: 2b7e151628aed2a6abf7158809cf4f3c}}}}\n")
	says(t, path, "check", statusFine, "warning: source ids: scrambled ids ", "consecutive", "do not ascend")
}

// TestLayoutsReadAlike: what the configuration takes for a layout is one.
func TestLayoutsReadAlike(t *testing.T) {
	for _, layout := range []string{
		"41/10/12", "41ms/10/12", "41/5+5/12", "39x10ms/8seq/16worker", "39x10ms/16worker/8seq", "16worker/8seq/39x10ms", "5+5worker/41/12seq",
		"41/10", "41/10/12/1", "41/10/13", "41/0/12", "41/+5/12", "041/10/12", "41m/10/12", "41/10worker/12", "41/12seq/10", "12seq/41/12seq",
		"41worker/10seq/12seq", "41/seq/10worker", "41/8s/16w", "w/q/1", "41/10/12seq", "20/33/10", "40worker/1seq/1", "41/012seq/10worker",
	} {
		_, err := snowflake.ParseLayout(layout)
		_, configured := config.Parse("c.yaml", fmt.Appendf(nil, `listeners: [{name: a, listen: ":1", upstream: "h:1"}]
sources: {ids: {snowflake: {worker: 1, layout: %q%s}}}
`, layout, map[bool]string{true: ", datacenter: 1"}[strings.Contains(layout, "+")]), func(string) (string, bool) { return "", false })
		assert.True(t, (err == nil) == (configured == nil), "%q: %v, in a configuration %v", layout, err, configured)
	}
}

// TestCheckShards: check says when the listeners for shards are not one for each.
func TestCheckShards(t *testing.T) {
	const shard = "  - {name: %s, listen: 127.0.0.1:0, upstream: 127.0.0.1:%d, shard: {bits: %d, value: %d}}\n"
	one := func(name string, server, bits, value int) string {
		return fmt.Sprintf(shard, name, server, bits, value)
	}
	for _, tt := range []struct{ name, listeners, want string }{
		{"all there", one("a", 1, 1, 0) + one("b", 2, 1, 1), ""},
		{"two ways to one", one("a", 1, 1, 0) + one("b", 2, 1, 1) + one("c", 2, 1, 1), ""},
		{"one twice", one("a", 1, 1, 0) + one("b", 2, 1, 0), "warning: listener b is for shard 0, as is listener a in line 2, which leads to another server"},
		{"some missing", one("a", 1, 2, 0) + one("b", 2, 2, 3), "warning: of 4 shards, no listener here is for 1, 2: rows of those are refused"},
		{"many missing", one("a", 1, 8, 0), "no listener here is for 1, 2, 3, 4, 5, ...:"},
		{"two widths", one("a", 1, 1, 0) + one("b", 2, 1, 1) + one("c", 3, 2, 0), "warning: listener c tells 2 bits of shards apart, and listener a in line 2 tells 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := says(t, harness.WriteConfig(t, "listeners:\n"+tt.listeners+`sources: {ids: {segment: {}}}
rules: [{table: shop.orders, column: id, source: ids, gene: {column: k, bits: 8}}]
`), "check", statusFine)
			assert.True(t, strings.Contains(out, tt.want) && (tt.want != "" || !strings.Contains(out, "shard")), "%s, want %q", out, tt.want)
		})
	}
	says(t, harness.WriteConfig(t, "listeners:\n"+one("a", 1, 1, 0)), "check", statusFine, "warning: listener a has a shard, and no rule on it has a gene")
}
