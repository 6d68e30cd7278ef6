package servers

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
)

var kinds = []Kind{MariaDB, MySQL}

func start(t *testing.T, kind Kind, o Options) *Server {
	t.Helper()
	s := assert.Of(Start(t.Context(), kind, o)).Must(t)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop())
		_, err := os.Stat(s.Dir)
		assert.True(t, os.IsNotExist(err), "folder %s is still there (%v)", s.Dir, err)
	})
	return s
}

func open(t *testing.T, c *mysql.Config) *sql.DB {
	t.Helper()
	c.Logger = &mysql.NopLogger{} // it reports connections that a test means to break
	connector := assert.Of(mysql.NewConnector(c)).Must(t)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func query(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	var value string
	assert.Must(t, db.QueryRow(text).Scan(&value), text)
	return value
}

func TestServerSurvivesKillAndRestart(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			s := start(t, kind, Options{NoSync: true})
			assert.True(t, s.waitsForNoDisk(t), "the server waits for the disk")
			addr, db := s.Addr, open(t, s.Config(""))
			for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)", "INSERT INTO shop.t VALUES (7)"} {
				assert.Of(db.Exec(text)).Must(t, text)
			}
			for name, restart := range map[string]func() error{
				"restart": func() error { return s.Restart(t.Context()) },
				"kill": func() error {
					if err := s.Kill(); err != nil {
						return err
					}
					assert.Fails(t, "a killed server answers", db.Ping(), "")
					return s.Start(t.Context())
				},
			} {
				assert.Must(t, restart(), name)
				got := query(t, open(t, s.Config("shop")), "SELECT a FROM t")
				assert.True(t, got == "7" && s.Addr == addr, "after %s: row %s at %s, want 7 at %s", name, got, s.Addr, addr)
			}
			rss, err := s.RSS()
			assert.True(t, rss >= 10<<20 && err == nil, "RSS() = %d, %v, want more than 10 MiB", rss, err)
		})
	}
}

// waitsForNoDisk reports whether the library of NoSync is loaded.
func (s *Server) waitsForNoDisk(t *testing.T) bool {
	t.Helper()
	maps := assert.Of(os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.proc.PID()))).Must(t)
	return strings.Contains(string(maps), "/nosync-")
}

func TestServerSettings(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			s := start(t, kind, Options{Args: []string{"--max-connect-errors=3"}, LowerCase: 1})
			assert.True(t, !s.waitsForNoDisk(t), "the server waits for no disk, which nobody asked for")
			config := s.Config("")
			config.User, config.Passwd = RootUser, RootPassword
			db := open(t, config)
			for variable, want := range map[string]string{
				"max_connect_errors": "3", "lower_case_table_names": "1", "performance_schema": "0",
				"local_infile": "1", "back_log": "1000", "max_allowed_packet": "1073741824",
			} {
				assert.Equal(t, "@@"+variable, query(t, db, "SELECT @@"+variable), want)
			}
			out, err := s.Client("-e", "SELECT CURRENT_USER()").Output()
			got := strings.Fields(string(out))
			assert.True(t, err == nil && len(got) == 2 && got[1] == "app@%", "client says %q, %v, want app@%%", out, err)
		})
	}
}

func TestServerTLS(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			s := start(t, kind, Options{})
			pem := assert.Of(os.ReadFile(s.CA)).Must(t)
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(pem)
			config := s.Config("")
			config.TLS = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
			var name, cipher string
			err := open(t, config).QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher)
			assert.True(t, err == nil && cipher != "", "cipher %q, %v, want one", cipher, err)

			plain := start(t, kind, Options{NoTLS: true})
			config = plain.Config("")
			config.TLS = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
			err = open(t, config).Ping()
			assert.True(t, err != nil && strings.Contains(err.Error(), "TLS"), "TLS to a server with NoTLS: %v, want it refused", err)
		})
	}
}

func TestMariaDBKnowsEd25519(t *testing.T) {
	s := start(t, MariaDB, Options{})
	assert.Of(open(t, s.Config("")).Exec("CREATE USER ed IDENTIFIED VIA ed25519 USING PASSWORD('secret')")).Must(t)
	config := s.Config("")
	config.User, config.Passwd = "ed", "secret"
	db := open(t, config)
	for errors.Is(db.Ping(), mysql.ErrMalformPkt) { // the driver cuts a zero off a challenge that happens to end in one
	}
	assert.Equal(t, "logged in as", query(t, db, "SELECT CURRENT_USER()"), "ed@%")
}

func TestNewerMariaDB(t *testing.T) {
	s := start(t, MariaDB, Options{Newer: true, LowerCase: 1})
	db := open(t, s.Config(""))
	got := query(t, db, "SELECT VERSION()")
	assert.True(t, strings.HasPrefix(got, "11.8."), "version %s, want 11.8", got)
	assert.Equal(t, "lower_case_table_names", query(t, db, "SELECT @@lower_case_table_names"), "1")
	for _, text := range []string{
		"CREATE USER ed IDENTIFIED VIA ed25519 USING PASSWORD('secret')", "CREATE USER pa IDENTIFIED VIA parsec USING PASSWORD('secret')",
		"CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)", "INSERT INTO shop.t VALUES (7)",
	} {
		assert.Of(db.Exec(text)).Must(t, text)
	}
	assert.Must(t, s.Restart(t.Context()))
	out, err := s.Client("-N", "-e", "SELECT a FROM shop.t").CombinedOutput()
	assert.True(t, err == nil && string(out) == "7\n", "client says %q, %v, want 7", out, err)
	out, err = s.Dump("shop", "t").CombinedOutput()
	assert.True(t, err == nil && strings.Contains(string(out), "INSERT INTO `t` VALUES"), "dump says %q, %v, want rows", out, err)
	assert.Of(Start(t.Context(), MySQL, Options{Newer: true})).Fails(t, "there is a newer MySQL", "")
}

func TestMissingProgramsNameTheCommand(t *testing.T) {
	empty := t.TempDir()
	_, mysqlErr := findMySQL(empty)
	_, mariadbErr := findMariaDB(empty)
	_, newerErr := findNewerMariaDB(empty)
	for want, err := range map[string]error{
		"install-servers.sh mysql": mysqlErr, "install-servers.sh mariadb": mariadbErr, "install-servers.sh mariadb118": newerErr,
	} {
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "got %v, want an error that names %s", err, want)
	}
}

// TestClock moves the clocks of running servers and asks them for the time. This is the control of
// tests that move one.
func TestClock(t *testing.T) {
	for _, name := range []string{"MariaDB", "MySQL", "Redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := assert.Of(NewClock()).Must(t)
			t.Cleanup(func() { assert.NoError(t, clock.Close()) })
			now := clockOf(t, name, clock)
			for _, by := range []time.Duration{0, time.Hour, 2 * time.Second, -time.Hour, -1500 * time.Millisecond, 0} {
				clock.Ahead(by)
				before := time.Now().Add(by).Truncate(time.Millisecond)
				got := now()
				after := time.Now().Add(by)
				assert.True(t, !got.Before(before) && !got.After(after), "ahead by %v it is %v, want %v to %v", by, got, before, after)
			}
		})
	}
}

// clockOf starts a server and returns what asks it for the time.
func clockOf(t *testing.T, name string, clock *Clock) func() time.Time {
	t.Helper()
	if name == "Redis" {
		r := assert.Of(StartRedisClock(t.Context(), clock)).Must(t)
		t.Cleanup(func() { _ = r.Stop() })
		return func() time.Time {
			answer := assert.Of(r.Do("EVAL", `"return(redis.call('TIME')[1]..'.'..redis.call('TIME')[2])"`, "0")).Must(t)
			seconds, micro, _ := strings.Cut(answer, ".")
			return time.Unix(number(t, seconds), number(t, micro)*1000)
		}
	}
	kind := MariaDB
	if name == "MySQL" {
		kind = MySQL
	}
	db := open(t, start(t, kind, Options{Clock: clock}).Config(""))
	return func() time.Time {
		return time.UnixMilli(number(t, query(t, db, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)")))
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	return assert.Of(strconv.ParseInt(text, 10, 64)).Must(t)
}
