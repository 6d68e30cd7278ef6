package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/rule"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestTakesLeave: a server that was asked has lost nobody, be it with TLS or without.
func TestTakesLeave(t *testing.T) {
	bare := harness.StartServer(t, servers.MariaDB, servers.Options{NoTLS: true})
	for name, server := range map[string]*servers.Server{"MariaDB": harness.MariaDB(t), "MySQL": harness.MySQL(t), "without TLS": bare} {
		t.Run(name, func(t *testing.T) {
			schema := harness.Database(t, server)
			db := harness.Root(t, server, schema)
			harness.MustExec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE USER guest@'%' IDENTIFIED BY 'guest'", "GRANT SELECT ON "+schema+".* TO guest@'%'")
			t.Cleanup(func() { harness.MustExec(t, db, "DROP USER guest@'%'") })
			asked := func(leave func(u *Server, q *Session)) (lost int) {
				t.Helper()
				before := harness.Lost(t, db, "guest")
				to := config.Addr{Network: "tcp", Address: server.Addr}
				u := assert.Of(OpenAlone(&config.Listener{Name: "a", Upstream: to, UpstreamTLS: config.UpstreamTLS{Mode: config.TLSAsClient}, Account: &config.Account{User: "guest", Password: "guest"}}, to, within)).Must(t)
				q := assert.Of(u.Session(t.Context())).Must(t)
				assert.Of(u.Describe(t.Context(), schema, "t", nil)).NoError(t)
				leave(u, q)
				assert.NoError(t, errors.Join(u.Ping(t.Context()), u.Close()))
				return harness.Lost(t, db, "guest") - before
			}
			assert.Equal(t, "lost of those that ended", asked(func(_ *Server, q *Session) { q.End() }), 0)
			assert.Equal(t, "lost of those that were kept", asked(func(u *Server, q *Session) { u.giveBack(q) }), 0)
			assert.Greater(t, "the control: lost of those that were cut", asked(func(_ *Server, q *Session) { q.cut() }), 0)
		})
	}
}

// TestDescribe describes a table with and without TLS, one that is not there, and for a caller
// that is gone.
func TestDescribe(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			name := harness.Database(t, server)
			db := harness.Root(t, server, name)
			assert.Of(db.Exec("CREATE TABLE `t ``größe` (id INT UNSIGNED PRIMARY KEY, d DECIMAL(5) NOT NULL DEFAULT 7)")).Must(t)
			for _, mode := range []string{config.TLSAsClient, config.TLSRequired, config.TLSDisabled} {
				to := config.Addr{Network: "tcp", Address: server.Addr}
				l := &config.Listener{Name: "a", Upstream: to, UpstreamTLS: config.UpstreamTLS{Mode: mode}, Account: &config.Account{User: "app", Password: "app"}}
				u := assert.Of(OpenAlone(l, to, within)).Must(t)
				defer u.Close()
				for range 2 { // the second time over the connection of the first
					table := assert.Of(u.Describe(t.Context(), name, "t `größe", []*rule.Rule{{Column: "d"}})).Must(t, mode)
					id, d := table.Find("id"), table.Find("d")
					assert.True(t, id != nil && id.Max == 1<<32-1 && id.Primary && d != nil && d.Max == 99999 && d.Own != "" && d.NotNull, "%v: %+v, %+v", mode, id, d)
				}
				_, err := u.Describe(t.Context(), name, "nothing", nil)
				e, ok := errors.AsType[*driver.MySQLError](err)
				assert.True(t, ok && e.Number == 1146, "%v: no such table: %v", mode, err)
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				assert.Of(u.Describe(gone, name, "t `größe", nil)).Fails(t, mode+": described for a caller that is gone", "")
				assert.Of(u.Describe(t.Context(), name, "t `größe", nil)).NoError(t, mode+": behind that")
			}
		})
	}
}

// within is how long a connect may take.
func within() time.Duration { return time.Minute }

func rootListener(behind ...config.Addr) *config.Listener {
	account := &config.Account{User: servers.RootUser, Password: servers.RootPassword}
	return &config.Listener{Name: "a", Upstreams: behind, UpstreamTLS: config.UpstreamTLS{Mode: config.TLSDisabled}, Account: account}
}

// numbered returns two servers with a table t in a schema, which holds 1 at the first and 2 at the
// second.
func numbered(t *testing.T, schema string) []*servers.Server {
	t.Helper()
	all := harness.Servers(t)[:2]
	for i, s := range all {
		db := harness.Root(t, s, "")
		harness.MustExec(t, db, "CREATE DATABASE "+schema, "CREATE TABLE "+schema+".t (id BIGINT PRIMARY KEY)",
			fmt.Sprintf("INSERT INTO %s.t VALUES (%d)", schema, i+1))
		t.Cleanup(func() { _, _ = db.Exec("DROP DATABASE " + schema) })
	}
	return all
}

// TestAddressMoves has an address lead to another server, as a name does after a failover, while the
// one before goes on: questions go there, too, though the pool is never idle.
func TestAddressMoves(t *testing.T) {
	const schema = "moves"
	all := numbered(t, schema)
	var to atomic.Value
	to.Store(all[0].Addr)
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer ln.Close()
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to.Load().(string))
			if err != nil {
				from.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, from); server.Close() }()
			go func() { _, _ = io.Copy(from, server); from.Close() }()
		}
	}()
	address := config.Addr{Network: "tcp", Address: ln.Addr().String()}
	u := assert.Of(OpenAlone(rootListener(address), address, within)).Must(t)
	defer u.Close()
	greatest := func() uint64 {
		n := assert.Of(u.Greatest(t.Context(), schema, "t", rule.Column{Name: "id"}, 0)).Must(t)
		return n
	}
	assert.MustEqual(t, "MAX(id)", greatest(), 1)
	to.Store(all[1].Addr)
	for moved := time.Now(); greatest() != 2; time.Sleep(100 * time.Millisecond) {
		assert.MustTrue(t, time.Since(moved) <= 12*staysFor, "the server before is still asked")
	}
}

// TestAt: a name may lead to several servers. The one is asked where a session is.
func TestAt(t *testing.T) {
	const schema = "addresses"
	all := numbered(t, schema)
	name := config.Addr{Network: "tcp", Address: strings.Replace(all[0].Addr, "127.0.0.1", "localhost", 1)}
	u := assert.Of(OpenAlone(rootListener(name), name, within)).Must(t)
	defer u.Close()
	for range 2 {
		for i, s := range all {
			address := assert.Of(net.ResolveTCPAddr("tcp", s.Addr)).Must(t)
			assert.Of(u.At(address).Greatest(t.Context(), schema, "t", rule.Column{Name: "id"}, 0)).Equal(t, fmt.Sprintf("MAX(id) at %v", address), uint64(i+1))
		}
	}
	socket := &net.UnixAddr{Net: "unix", Name: all[0].Socket}
	assert.Of(u.At(socket).Greatest(t.Context(), schema, "t", rule.Column{Name: "id"}, 0)).Equal(t, "MAX(id)", 1)
}

// silent returns the address of a server that says something in place of a greeting, or nothing.
func silent(t *testing.T, says string) config.Addr {
	t.Helper()
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			if says != "" {
				_, _ = io.WriteString(c, says) // it is read or not
				c.Close()
			}
		}
	}()
	return config.Addr{Network: "tcp", Address: ln.Addr().String()}
}

// TestSilentServer: a server that accepts and does not greet is not waited for without end.
func TestSilentServer(t *testing.T) {
	to := silent(t, "")
	u, err := OpenAlone(rootListener(to), to, func() time.Duration { return 300 * time.Millisecond })
	assert.Must(t, err)
	defer u.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err = u.Greatest(ctx, "s", "t", rule.Column{Name: "id"}, 0)
	assert.True(t, err != nil && err.Error() == "no answer within 300ms" && ctx.Err() == nil, "got %v", err)
}

// TestPingBesideQuestions: questions that take long keep nobody from asking whether the server answers
// and takes writes.
func TestPingBesideQuestions(t *testing.T) {
	to := config.Addr{Network: "tcp", Address: harness.MariaDB(t).Addr}
	u := assert.Of(OpenAlone(rootListener(to), to, within)).Must(t)
	defer u.Close()
	slow, end := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	defer asked.Wait()
	defer end()
	for range ConnectionsAtOnce {
		asked.Go(func() {
			var n int
			_ = u.DB.QueryRowContext(slow, "SELECT SLEEP(60)").Scan(&n) // it is cut
		})
	}
	for u.DB.Stats().InUse < ConnectionsAtOnce {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	assert.NoError(t, u.Ping(ctx), "ping")
	assert.Of(u.ReadOnly(ctx)).Equal(t, "read-only", false)
}

// TestOpenWriters: where a series begins is asked of servers that take writes, and of none where that
// leaves a doubt.
func TestOpenWriters(t *testing.T) {
	// ERR 1040, as a server with too many connections has it
	full := silent(t, "\x17\x00\x00\x00\xff\x10\x04Too many connections")
	dead, mute := config.Addr{Network: "tcp", Address: "127.0.0.1:1"}, silent(t, "")
	var both sync.WaitGroup // one of them says nothing for seconds
	defer both.Wait()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		writers := func(t *testing.T) {
			var at []config.Addr
			for range 2 {
				at = append(at, config.Addr{Network: "tcp", Address: harness.StartServer(t, kind, servers.Options{}).Addr})
			}
			behind, takes := at[0], at[1]
			u := assert.Of(OpenAlone(rootListener(behind), behind, within)).Must(t)
			defer u.Close()
			harness.MustExec(t, u.DB, "SET GLOBAL read_only=1")
			for _, tt := range []struct {
				name     string
				servers  []config.Addr
				writable bool
				want     string // addresses, or what the error says
			}{
				{"the second takes writes", []config.Addr{behind, takes}, false, takes.Address},
				{"the first takes writes", []config.Addr{takes, behind}, true, takes.Address},
				{"one is down", []config.Addr{dead, takes}, true, takes.Address},
				{"the one that may have more is down", []config.Addr{dead, behind}, false, "no server takes writes"},
				{"the same in another order", []config.Addr{behind, dead}, false, behind.Address + ": read-only; " + dead.Address},
				{"one is there and does not say", []config.Addr{full, takes}, true, "not all servers say whether they take writes"},
				{"one is there and says nothing", []config.Addr{mute, takes}, true, "not all servers say whether they take writes"},
				{"one that is to be writable", []config.Addr{behind}, true, "no server takes writes"},
				{"the only one", []config.Addr{behind}, false, behind.Address},
			} {
				l := rootListener(tt.servers...)
				cfg := &config.Config{Limits: config.Limits{Handshake: time.Minute}}
				all, err := OpenWriters(t.Context(), cfg, l, tt.writable)
				var got []string
				for _, u := range all {
					got = append(got, u.Addr.Address)
					u.Close()
				}
				if err != nil {
					got = append(got, err.Error())
				}
				text := strings.Join(got, " ")
				assert.True(t, strings.Contains(text, tt.want) && (err == nil) == (text == tt.want), "%s: %q, want %q", tt.name, text, tt.want)
			}
		}
		both.Go(func() { t.Run(kind.String(), writers) })
	}
}

// TestLogIn: connections are made with the password of the moment, by both ways to ask.
func TestLogIn(t *testing.T) {
	for _, server := range harness.Servers(t) {
		to := config.Addr{Network: "tcp", Address: server.Addr}
		u, err := OpenAlone(&config.Listener{
			Name: "a", Upstream: to, UpstreamTLS: config.UpstreamTLS{Mode: config.TLSAsClient, CA: server.CA},
			Account: &config.Account{User: servers.AppUser, Password: "an old one"},
		}, to, within)
		assert.Must(t, err)
		defer u.Close()
		u.DB.SetMaxIdleConns(-1) // or the connection of the right password stays
		for _, password := range []config.Secret{"", servers.AppPassword, "a wrong one"} {
			if password != "" {
				u.LogIn(config.Account{User: servers.AppUser, Password: password})
			}
			q, asked := u.Session(t.Context())
			if asked == nil {
				q.cut()
			}
			pinged := u.DB.PingContext(t.Context())
			assert.True(t, (pinged == nil) == (password == servers.AppPassword) && (asked == nil) == (pinged == nil), "%s: with %q: %v, %v", server.Kind, password, pinged, asked)
		}
	}
}

// TestPasswordStays: where the server's certificate is to be looked at, the account does not log in
// without one.
func TestPasswordStays(t *testing.T) {
	bare := harness.StartServer(t, servers.MariaDB, servers.Options{NoTLS: true})
	ca := filepath.Join(t.TempDir(), "server.pem")
	harness.WriteCertificate(t, filepath.Dir(ca), time.Hour)
	to := config.Addr{Network: "tcp", Address: bare.Addr}
	for _, mode := range []string{config.TLSAsClient, config.TLSPreferred} {
		for _, named := range []string{"", ca} {
			u, err := OpenAlone(&config.Listener{
				Name: "a", Upstream: to, UpstreamTLS: config.UpstreamTLS{Mode: mode, CA: named},
				Account: &config.Account{User: servers.AppUser, Password: servers.AppPassword},
			}, to, within)
			assert.Must(t, err)
			defer u.Close()
			q := &Session{}
			asked := q.connect(t.Context(), u)
			q.cut()
			pinged := u.Ping(t.Context())
			refused := named != ""
			assert.True(t, (pinged != nil) == refused && (asked != nil) == refused && (!refused || strings.Contains(pinged.Error(), "the server offers no TLS")), "%s, CA %t: %v, %v", mode, refused, pinged, asked)
		}
	}
}

// TestRights: of the grants of an account the most specific counts for a schema, and no right of
// another one. What is printed has its form.
func TestRights(t *testing.T) {
	maria, literal := Facts{MariaDB: true}, Facts{Literal: true}
	for _, tt := range []struct {
		name    string
		facts   Facts
		rows    []string
		schema  string
		sees    bool
		granted string
	}{
		{"nothing", Facts{}, []string{"GRANT USAGE ON *.* TO `a`@`%`"}, "shop_1", false, "`shop\\_1`"},
		{"a quote", Facts{}, nil, "a`b%", false, "`a``b\\%`"},
		{"everything", Facts{}, []string{"GRANT SELECT, INSERT ON *.* TO `a`@`%`"}, "shop", true, "`shop`"},
		{"all of it", Facts{}, []string{"GRANT ALL PRIVILEGES ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*6' WITH GRANT OPTION"}, "shop", true, "`shop`"},
		{"all but one", Facts{}, []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "sh_p", false, "`sh\\_p`"},
		{"another of all but one", Facts{}, []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "shop", true, "`shop`"},
		{"as it is mostly written", Facts{}, []string{"GRANT SELECT ON `sh_p`.* TO `a`@`%`"}, "sh_p", true, "`sh_p`"},
		{"with a backslash", Facts{}, []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "sh_p", true, "`sh\\_p`"},
		{"of another, with a backslash", Facts{}, []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of many", Facts{}, []string{"GRANT ALL PRIVILEGES ON `sh%p`.* TO `a`@`%`"}, "shoop", true, "`sh%p`"},
		{"the most specific selects not", Facts{}, []string{"GRANT SELECT ON `sh%`.* TO `a`@`%`", "GRANT INSERT ON `shop`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"the most specific selects", Facts{}, []string{"GRANT INSERT ON `%`.* TO `a`@`%`", "GRANT SELECT ON `sho_`.* TO `a`@`%`"}, "shop", true, "`sho_`"},
		{"one of two that begin alike", Facts{}, []string{"GRANT SELECT ON `s%1`.* TO `a`@`%`", "GRANT INSERT ON `s_1`.* TO `a`@`%`"}, "shh1", true, "`s%1`"},
		{"which of two counts is not said", Facts{}, []string{"GRANT SELECT ON `s%1`.* TO `a`@`%`", "GRANT INSERT ON `s_1`.* TO `a`@`%`"}, "sx1", false, "`s%1`"},
		{"the first of MariaDB's", maria, []string{"GRANT INSERT ON `s_1`.* TO `a`@`%`", "GRANT SELECT ON `s\\_%`.* TO `a`@`%`"}, "s_1", false, "`s_1`"},
		{"a role of MariaDB's", maria, []string{"GRANT INSERT ON `s_1`.* TO `a`@`%`", "GRANT SELECT ON `s\\_1`.* TO `r`"}, "s_1", true, "`s_1`"},
		{"everybody's of MariaDB", maria, []string{"GRANT INSERT ON `s_1`.* TO `a`@`%`", "GRANT SELECT ON `s\\_1`.* TO PUBLIC"}, "s_1", true, "`s_1`"},
		{"no wildcard", literal, []string{"GRANT SELECT ON `s%`.* TO `a`@`%`"}, "s_1", false, "`s_1`"},
		{"no backslash", literal, []string{"GRANT SELECT ON `s\\_1`.* TO `a`@`%`"}, "s_1", false, "`s_1`"},
		{"the name", literal, []string{"GRANT SELECT ON `s_1`.* TO `a`@`%`"}, "s_1", true, "`s_1`"},
		{"all but one in capitals", Facts{Fold: true}, []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `shop`.* FROM `a`@`%`"}, "Shop", false, "`Shop`"},
		{"many wildcards", Facts{}, []string{"GRANT SELECT ON `%a%a%a%a%a%a%a%a%a%b`.* TO `a`@`%`"}, strings.Repeat("a", 60), false, "`" + strings.Repeat("a", 60) + "`"},
		{"quoted otherwise", Facts{}, []string{`GRANT SELECT ON "a""b".* TO "a"@"%"`}, `a"b`, true, "`a\"b`"},
		{"not quoted", Facts{}, []string{"GRANT SELECT ON shop.* TO a@%"}, "shop", true, "`shop`"},
		{"of a table", Facts{}, []string{"GRANT SELECT ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of columns", Facts{}, []string{"GRANT SELECT (`a`, `b`) ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of a routine", Facts{}, []string{"GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"a role, a proxy and half a row", Facts{}, []string{"GRANT `r`@`%` TO `a`@`%`", "GRANT PROXY ON ''@'' TO 'a'@'%'", "GRANT SELECT ON `sho", "GRANT", ""}, "shop", false, "`shop`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := ReadRights(tt.facts, tt.rows...)
			assert.True(t, g.On(tt.schema, "SELECT") == tt.sees && g.Granted(tt.schema) == tt.granted, "sees %v, granted %s; want %v, %s: %+v", g.On(tt.schema, "SELECT"), g.Granted(tt.schema), tt.sees, tt.granted, g)
		})
	}
}
