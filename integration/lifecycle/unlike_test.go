package lifecycle

import (
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// waysIn are those by which clients reach a proxy, and waysOut those by which it reaches a server.
var (
	waysIn  = []string{"plain", "tls", "mutual", "unix"}
	waysOut = []string{"plain", "verified", "unverified", "unix"}
)

// unlike is a proxy with a listener for each way out and kind of way in, in front of a server.
type unlike struct {
	*testing.T
	server *servers.Server
	root   *sql.DB
	schema string
	proxy  *harness.Proxy
	dir    string // of sockets
	tls    *tls.Config
	mutual *tls.Config
}

func newUnlike(t *testing.T, server *servers.Server) *unlike {
	u := &unlike{T: t, server: server, root: makeAccounts(t, server), schema: harness.Database(t, server), dir: t.TempDir()}
	harness.MustExec(t, u.root, "CREATE TABLE "+u.schema+".t (id BIGINT PRIMARY KEY, v VARCHAR(200) UNIQUE)")
	own := func(name string) string { return filepath.Join(server.Dir, name) }
	ca, cert := own("ca.pem"), own("client.pem")
	u.tls = trust(t, ca)
	u.mutual = u.tls.Clone()
	u.mutual.Certificates = []tls.Certificate{assert.Of(tls.LoadX509KeyPair(cert, own("client.key"))).Must(t)}

	out := map[string]string{
		"plain":      fmt.Sprintf("upstream: %q, upstream_tls: {mode: disabled}", server.Addr),
		"verified":   fmt.Sprintf("upstream: %q, upstream_tls: {mode: required, ca: %q}", server.Addr, ca),
		"unverified": fmt.Sprintf("upstream: %q, upstream_tls: {mode: preferred}", server.Addr),
		"unix":       fmt.Sprintf("upstream: %q, upstream_tls: {mode: disabled}", "unix:"+server.Socket),
	}
	config := "listeners:\n"
	for name, to := range out {
		config += fmt.Sprintf("  - {name: plain-%s, listen: '127.0.0.1:0', compression: on, tls: {cert: %q, key: %q}, %s}\n", name, own("server.pem"), own("server.key"), to)
		config += fmt.Sprintf("  - {name: mutual-%s, listen: '127.0.0.1:0', compression: on, tls: {mode: required, cert: %q, key: %q, client_ca: %q}, %s}\n", name, own("server.pem"), own("server.key"), ca, to)
		config += fmt.Sprintf("  - {name: unix-%s, listen: %q, compression: on, %s}\n", name, "unix:"+u.socket(name), to)
	}
	config += fmt.Sprintf("sources: {ids: {segment: {start: 1000}}}\nrules: [{table: %s.t, column: id, source: ids}]\n", u.schema)
	u.proxy = replay.StartProxy(t, harness.Spec{Config: config})
	return u
}

func (u *unlike) socket(out string) string { return filepath.Join(u.dir, out+".sock") }

// listener is the name of the one for a way in and out.
func listener(in, out string) string {
	if in == "tls" {
		in = "plain"
	}
	return in + "-" + out
}

// forget has the server ask for passwords again.
func (u *unlike) forget() {
	u.Helper()
	harness.MustExec(u.T, u.root, "FLUSH PRIVILEGES")
}

// config is how the driver logs in.
func (u *unlike) config(user, in, out string) *mysql.Config {
	c := u.server.Config(u.schema)
	c.User, c.Passwd = user, passwordOf(user)
	switch in {
	case "unix":
		c.Net, c.Addr = "unix", u.socket(out)
		return c
	case "tls":
		c.TLS = u.tls
	case "mutual":
		c.TLS = u.mutual
	}
	c.Addr = u.proxy.Addr(listener(in, out))
	return c
}

// insert logs in with the driver, inserts a row and reads its key back. What the server sees of TLS
// is what the way out says.
func (u *unlike) insert(user, in, out, value string, compressed bool) error {
	c := u.config(user, in, out)
	if err := c.Apply(mysql.EnableCompression(compressed)); err != nil {
		return err
	}
	db := harness.Open(u.T, c, "")
	defer db.Close()
	conn, err := db.Conn(u.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	result, err := conn.ExecContext(u.Context(), "INSERT INTO t (v) VALUES (?)", value)
	if err != nil {
		return err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return err
	}
	var stored int64
	if err := conn.QueryRowContext(u.Context(), "SELECT id FROM t WHERE v = ? AND id = LAST_INSERT_ID()", value).Scan(&stored); err != nil || stored != id || id < 1000 {
		return fmt.Errorf("id %d, stored %d: %w", id, stored, err)
	}
	var name, cipher string
	if err := conn.QueryRowContext(u.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
		return err
	}
	if secure := strings.HasSuffix(out, "verified"); secure != (cipher != "") {
		return fmt.Errorf("the server's cipher is %q", cipher)
	}
	return nil
}

// TestUnlike logs in by every way in and out, with every plugin, cold and warm, compressed and not, inserts, and reads
// the key back. A wrong password gets the server's own answer.
func TestUnlike(t *testing.T) {
	for name, server := range harness.AllServers(t) {
		t.Run(name, func(t *testing.T) {
			u := newUnlike(t, server)
			logins := 0
			for i, a := range accounts[server.Kind] {
				for j, in := range waysIn {
					for k, out := range waysOut {
						for _, compressed := range compressions(i + j + k) {
							u.forget()
							for _, state := range []string{"cold", "warm"} {
								logins++
								what := fmt.Sprintf("%s %s %s %s %t", a.user, in, out, state, compressed)
								assert.NoError(t, understood(func() error { return u.insert(a.user, in, out, what, compressed) }), what)
								if !width.Matrix() {
									compressed = !compressed
								}
							}
						}
						u.deny(a.user, in, out)
					}
				}
			}
			t.Logf("compared: %d statements, %d facets", logins, logins)
		})
	}
}

// compressions says whether the nth combination of all else is compressed. In a narrow run it is either
// cold or warm.
func compressions(n int) []bool { return width.Of([]bool{n%2 == 0}, []bool{false, true}) }

// algorithms are the arguments by which the servers' clients choose one.
var algorithms = map[servers.Kind][]string{
	servers.MariaDB: {"--skip-compress", "--compress"},
	servers.MySQL:   {"--compression-algorithms=uncompressed", "--compression-algorithms=zlib", "--compression-algorithms=zstd"},
}

// understood logs in again where the driver did not understand the server: a nonce of ed25519 has 32
// bytes, and where the last one is 0 the driver takes it for their end, directly, too.
func understood(login func() error) (err error) {
	for range 5 {
		if err = login(); !errors.Is(err, mysql.ErrMalformPkt) {
			return err
		}
	}
	return err
}

// deny logs in with a wrong password, which the server answers as it does directly.
func (u *unlike) deny(user, in, out string) {
	u.Helper()
	u.forget()
	ping := func(c *mysql.Config) error {
		c.Passwd = replay.WrongPassword
		db := harness.Open(u.T, c, "")
		defer db.Close()
		return db.PingContext(u.Context())
	}
	direct := u.server.Config(u.schema)
	direct.User = user
	if out == "unix" {
		direct.Net, direct.Addr = "unix", u.server.Socket
	}
	got, want := understood(func() error { return ping(u.config(user, in, out)) }), understood(func() error { return ping(direct) })
	assert.True(u, got != nil && want != nil && got.Error() == want.Error(), "%s %s %s with a wrong password: %v, directly %v", user, in, out, got, want)
}

// TestUnlikeClients does the same with the servers' own clients: whose first word may be the
// password, and whose libraries are not Go's.
func TestUnlikeClients(t *testing.T) {
	pairs := width.Of([][2]string{{"plain", "verified"}, {"tls", "plain"}, {"mutual", "unix"}, {"unix", "plain"}}, nil)
	if pairs == nil {
		for _, in := range waysIn {
			for _, out := range waysOut {
				pairs = append(pairs, [2]string{in, out})
			}
		}
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		u := newUnlike(t, server)
		for i, a := range accounts[server.Kind] {
			guesses := []string{""}
			if a.user == "a_sha256" {
				guesses = append(guesses, "--default-auth=sha256_password")
			}
			for j, pair := range pairs {
				for _, guess := range guesses {
					all := algorithms[server.Kind]
					one := (i + j) % len(all)
					for _, algorithm := range width.Of(all[one:one+1], all) {
						u.forget()
						what := fmt.Sprintf("%s %s %s %s %s", a.user, pair[0], pair[1], guess, algorithm)
						assert.NoError(t, u.commandLine(a.user, pair[0], pair[1], what, algorithm, guess), what)
					}
				}
			}
		}
	})
}

// commandLine is insert with the server's own client.
func (u *unlike) commandLine(user, in, out, value string, more ...string) error {
	own := func(name string) string { return filepath.Join(u.server.Dir, name) }
	ca, pair := "--ssl-ca="+own("ca.pem"), []string{"--ssl-cert=" + own("client.pem"), "--ssl-key=" + own("client.key")}
	args := map[servers.Kind]map[string][]string{
		servers.MariaDB: {"plain": {"--skip-ssl"}, "tls": {"--ssl", ca}, "mutual": append(pair, "--ssl", ca)},
		servers.MySQL:   {"plain": {"--ssl-mode=DISABLED", "--get-server-public-key"}, "tls": {"--ssl-mode=VERIFY_CA", ca}, "mutual": append(pair, "--ssl-mode=VERIFY_CA", ca)},
	}[u.server.Kind][in]
	addr := u.server.Addr
	if in == "unix" {
		args = []string{"--protocol=socket", "--host=localhost", "--socket=" + u.socket(out)}
	} else {
		addr = u.proxy.Addr(listener(in, out))
	}
	args = append(args, "--user="+user, "--password="+passwordOf(user), "-N", "-e",
		fmt.Sprintf("INSERT INTO %[1]s.t (v) VALUES ('%[2]s'); SELECT LAST_INSERT_ID() = id, id >= 1000 FROM %[1]s.t WHERE v = '%[2]s'", u.schema, value))
	for _, m := range more {
		if m != "" {
			args = append(args, m)
		}
	}
	text, err := output(u.T, u.server.ClientTo(addr, args...))
	if err != nil || !strings.Contains(text, "1\t1\n") {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// TestUnlikeWire plays what drivers do not do: users that change in a session, and blocks that are no
// password. The server's answers are those it gives directly.
func TestUnlikeWire(t *testing.T) {
	server := harness.MySQL(t)
	u := newUnlike(t, server)
	ways := map[string]replay.Config{
		"in clear": {Addr: u.proxy.Addr("plain-verified")}, "encrypted": {Addr: u.proxy.Addr("plain-plain"), Tls: u.tls},
		"over a socket": {Addr: u.proxy.Addr("plain-unix")}, "from a socket": {Network: "unix", Addr: u.socket("plain")},
	}
	for way, cfg := range ways {
		for _, user := range []string{"a_sha2", "a_sha256"} {
			cfg.User, cfg.Password = "a_empty", ""
			err := replay.Do(func() {
				c := replay.Login(cfg)
				defer c.Close()
				for range 2 {
					u.forget()
					replay.Check(c.ChangeUser(user, replay.Password, ""))
					c.Must("SELECT CURRENT_USER(), '" + replay.Value + "'")
					replay.Check(c.ChangeUser("a_empty", "", ""))
				}
				err := c.ChangeUser(user, replay.WrongPassword, "")
				assert.True(t, replay.CodeOf(err) == 1045, "%s %s: a wrong password: %v", way, user, err)
			})
			assert.NoError(t, err, way+": change to "+user)
		}
	}
	for _, user := range []string{"a_sha2", "a_sha256"} {
		for what, garble := range map[string]func([]byte) []byte{
			"garbage": func(b []byte) []byte { return make([]byte, len(b)) }, "one byte less": func(b []byte) []byte { return b[1:] },
			"nothing": func([]byte) []byte { return nil }, "twice": func(b []byte) []byte { return append(b, b...) },
			"a bit flipped": func(b []byte) []byte { b[9] ^= 1; return b },
		} {
			login := func(addr string) string {
				u.forget()
				return fmt.Sprint(replay.Do(func() {
					replay.Login(replay.Config{Addr: addr, User: user, Password: replay.Password, Garble: garble}).Close()
				}))
			}
			direct, proxied := login(server.Addr), login(u.proxy.Addr("plain-verified"))
			assert.True(t, direct == proxied && strings.Contains(direct, "1045"), "%s: %s: %s, directly %s", user, what, proxied, direct)
		}
		u.forget()
		huge := replay.Config{Addr: u.proxy.Addr("plain-verified"), User: user, Password: replay.Password, Garble: func([]byte) []byte { return make([]byte, 5000) }}
		err := replay.Do(func() { replay.Login(huge).Close() })
		assert.True(t, replay.CodeOf(err) == 1045 && strings.Contains(err.Error(), "larger than any password"), "%s: 5000 bytes: %v", user, err)
	}
}

// TestModes holds what each mode does with clients and servers that have TLS or have none.
func TestModes(t *testing.T) {
	bare := harness.StartServer(t, servers.MariaDB, servers.Options{NoTLS: true})
	server := harness.MariaDB(t)
	dir := t.TempDir()
	clientCertificate(t, dir) // whose CA signed no server
	config := fmt.Sprintf(`
listeners:
  - {name: must,     listen: "127.0.0.1:0", upstream: %[1]q, tls: {mode: required, cert: %[2]s/server.pem, key: %[2]s/server.key}}
  - {name: mustbare, listen: "127.0.0.1:0", upstream: %[3]q, tls: {mode: required, cert: %[2]s/server.pem, key: %[2]s/server.key}}
  - {name: ends,     listen: "127.0.0.1:0", upstream: %[3]q, tls: {mode: required, cert: %[2]s/server.pem, key: %[2]s/server.key}, upstream_tls: {mode: preferred}}
  - {name: prefers,  listen: "127.0.0.1:0", upstream: %[1]q, upstream_tls: {mode: preferred, ca: %[2]s/ca.pem}}
  - {name: bare,     listen: "127.0.0.1:0", upstream: %[3]q, upstream_tls: {mode: required}}
  - {name: distrust, listen: "127.0.0.1:0", upstream: %[1]q, upstream_tls: {mode: required, ca: %[4]s/ca.pem}}
  - {name: renamed,  listen: "127.0.0.1:0", upstream: %[1]q, upstream_tls: {mode: required, ca: %[2]s/ca.pem, server_name: db1}}
  - {name: socket,   listen: "unix:%[4]s/in", upstream: %[1]q, tls: {mode: required, cert: %[2]s/server.pem, key: %[2]s/server.key}}
`, server.Addr, server.Dir, bare.Addr, dir)
	p := replay.StartProxy(t, harness.Spec{Config: config})
	secure := trust(t, filepath.Join(server.Dir, "ca.pem"))
	for _, tt := range []struct {
		listener string
		tls      *tls.Config
		cipher   bool   // the server speaks TLS
		want     string // part of the error, or empty
	}{
		{listener: "must", tls: secure, cipher: true},
		{listener: "must", want: "tls.mode is required; connect with TLS"},
		{listener: "mustbare", want: "upstream_tls.mode is as_client and the server has none"},
		{listener: "mustbare", tls: secure, want: "does not support TLS"},
		{listener: "ends", tls: secure},
		{listener: "ends", want: "tls.mode is required"},
		{listener: "prefers", cipher: true},
		{listener: "bare", want: "offers no TLS"},
		{listener: "distrust", want: "unknown authority"},
		{listener: "renamed", want: "not db1"},
		{listener: "socket"},
	} {
		cfg := server.Config("")
		cfg.TLS = tt.tls
		cfg.Addr = p.Addr(tt.listener)
		if tt.listener == "socket" {
			cfg.Net, cfg.Addr = "unix", filepath.Join(dir, "in")
		}
		var name, cipher string
		err := harness.Open(t, cfg, "").QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher)
		if tt.want == "" && (err != nil || (cipher != "") != tt.cipher) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("listener %s, TLS %t: cipher %q, %v; want an error with %q", tt.listener, tt.tls != nil, cipher, err, tt.want)
		}
	}
	assert.Of(os.Stat(filepath.Join(dir, "in"))).NoError(t)
}
