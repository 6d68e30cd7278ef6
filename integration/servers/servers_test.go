package servers

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

var kinds = []Kind{MariaDB, MySQL}

func start(t *testing.T, kind Kind, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), kind, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
			t.Errorf("folder %s is still there (%v)", s.Dir, err)
		}
	})
	return s
}

func open(t *testing.T, c *mysql.Config) *sql.DB {
	t.Helper()
	c.Logger = &mysql.NopLogger{} // it reports connections that a test means to break
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func query(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	var value string
	if err := db.QueryRow(text).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func TestServerSurvivesKillAndRestart(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			s := start(t, kind, Options{NoSync: true})
			if !s.waitsForNoDisk(t) {
				t.Error("the server waits for the disk")
			}
			addr, db := s.Addr, open(t, s.Config(""))
			for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)", "INSERT INTO shop.t VALUES (7)"} {
				if _, err := db.Exec(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
			for name, restart := range map[string]func() error{
				"restart": func() error { return s.Restart(t.Context()) },
				"kill": func() error {
					if err := s.Kill(); err != nil {
						return err
					}
					if err := db.Ping(); err == nil {
						t.Error("a killed server answers")
					}
					return s.Start(t.Context())
				},
			} {
				if err := restart(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := query(t, open(t, s.Config("shop")), "SELECT a FROM t"); got != "7" || s.Addr != addr {
					t.Errorf("after %s: row %s at %s, want 7 at %s", name, got, s.Addr, addr)
				}
			}
			if rss, err := s.RSS(); rss < 10<<20 || err != nil {
				t.Errorf("RSS() = %d, %v, want more than 10 MiB", rss, err)
			}
		})
	}
}

// waitsForNoDisk reports whether the library of NoSync is loaded.
func (s *Server) waitsForNoDisk(t *testing.T) bool {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.proc.PID()))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(maps), "/nosync-")
}

func TestServerSettings(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			s := start(t, kind, Options{Args: []string{"--max-connect-errors=3"}, LowerCase: 1})
			if s.waitsForNoDisk(t) {
				t.Error("the server waits for no disk, which nobody asked for")
			}
			config := s.Config("")
			config.User, config.Passwd = RootUser, RootPassword
			db := open(t, config)
			for variable, want := range map[string]string{
				"max_connect_errors": "3", "lower_case_table_names": "1", "performance_schema": "1",
				"local_infile": "1", "back_log": "1000", "max_allowed_packet": "1073741824",
			} {
				if got := query(t, db, "SELECT @@"+variable); got != want {
					t.Errorf("@@%s = %s, want %s", variable, got, want)
				}
			}
			out, err := s.Client("-e", "SELECT CURRENT_USER()").Output()
			if got := strings.Fields(string(out)); err != nil || len(got) != 2 || got[1] != "app@%" {
				t.Errorf("client says %q, %v, want app@%%", out, err)
			}
		})
	}
}

func TestServerTLS(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			s := start(t, kind, Options{})
			pem, err := os.ReadFile(s.CA)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(pem)
			config := s.Config("")
			config.TLS = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
			var name, cipher string
			if err := open(t, config).QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil || cipher == "" {
				t.Errorf("cipher %q, %v, want one", cipher, err)
			}

			plain := start(t, kind, Options{NoTLS: true})
			config = plain.Config("")
			config.TLS = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
			if err := open(t, config).Ping(); err == nil || !strings.Contains(err.Error(), "TLS") {
				t.Errorf("TLS to a server with NoTLS: %v, want it refused", err)
			}
		})
	}
}

func TestMariaDBKnowsEd25519(t *testing.T) {
	s := start(t, MariaDB, Options{})
	if _, err := open(t, s.Config("")).Exec("CREATE USER ed IDENTIFIED VIA ed25519 USING PASSWORD('secret')"); err != nil {
		t.Fatal(err)
	}
	config := s.Config("")
	config.User, config.Passwd = "ed", "secret"
	db := open(t, config)
	for errors.Is(db.Ping(), mysql.ErrMalformPkt) { // the driver cuts a zero off a challenge that happens to end in one
	}
	if got := query(t, db, "SELECT CURRENT_USER()"); got != "ed@%" {
		t.Errorf("logged in as %s, want ed@%%", got)
	}
}

func TestNewerMariaDB(t *testing.T) {
	s := start(t, MariaDB, Options{Newer: true, LowerCase: 1})
	db := open(t, s.Config(""))
	if got := query(t, db, "SELECT VERSION()"); !strings.HasPrefix(got, "11.8.") {
		t.Errorf("version %s, want 11.8", got)
	}
	if got := query(t, db, "SELECT @@lower_case_table_names"); got != "1" {
		t.Errorf("lower_case_table_names = %s, want 1", got)
	}
	for _, text := range []string{
		"CREATE USER ed IDENTIFIED VIA ed25519 USING PASSWORD('secret')", "CREATE USER pa IDENTIFIED VIA parsec USING PASSWORD('secret')",
		"CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)", "INSERT INTO shop.t VALUES (7)",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := s.Client("-N", "-e", "SELECT a FROM shop.t").CombinedOutput()
	if err != nil || string(out) != "7\n" {
		t.Errorf("client says %q, %v, want 7", out, err)
	}
	out, err = s.Dump("shop", "t").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "INSERT INTO `t` VALUES") {
		t.Errorf("dump says %q, %v, want rows", out, err)
	}
	if _, err := Start(t.Context(), MySQL, Options{Newer: true}); err == nil {
		t.Error("there is a newer MySQL")
	}
}

func TestMissingProgramsNameTheCommand(t *testing.T) {
	empty := t.TempDir()
	_, mysqlErr := findMySQL(empty)
	_, mariadbErr := findMariaDB(empty)
	_, newerErr := findNewerMariaDB(empty)
	for want, err := range map[string]error{
		"install-servers.sh mysql": mysqlErr, "install-servers.sh mariadb": mariadbErr, "install-servers.sh mariadb118": newerErr,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that names %s", err, want)
		}
	}
}
