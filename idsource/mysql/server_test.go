package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// server is a private MariaDB on a free loopback port.
type server struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

// shared serves all tests of the package, one after the other.
var shared *server

const password = "S3cret/p@ss"

// template is the data folder that all servers begin with.
var template string

func TestMain(m *testing.M) {
	holders.Main(openJob)
	servers.Parallel(3)
	dir, err := os.MkdirTemp("", "idsource-mysql-")
	if err == nil {
		template = filepath.Join(dir, "template")
		shared = &server{dir: dir}
		err = errors.Join(shared.prepare(), shared.install())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "private MariaDB:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("idproxy/integration/process.(*Process).own"), goleak.Cleanup(func(code int) {
		shared.kill()
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}))
}

// prepare makes the template, which is the data of a server that has the
// store's database and account.
func (s *server) prepare() error {
	out, err := exec.Command("mariadb-install-db", "--no-defaults", "--user=root", "--datadir="+s.data(),
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=8M").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	if err := errors.Join(s.freePort(), s.start()); err != nil {
		return err
	}
	err = s.exec("CREATE DATABASE idproxy", "CREATE USER idproxy@'127.0.0.1' IDENTIFIED BY '"+password+"'", "GRANT ALL ON idproxy.* TO idproxy@'127.0.0.1'")
	if err := errors.Join(err, s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait()); err != nil {
		return err
	}
	return os.Rename(s.data(), template)
}

// freePort chooses a port.
func (s *server) freePort() error {
	addr, err := servers.FreeAddr()
	if err == nil {
		_, err = fmt.Sscanf(addr, "127.0.0.1:%d", &s.port)
	}
	return err
}

func (s *server) install() error {
	if out, err := exec.Command("cp", "-a", "--sparse=always", template, s.data()).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return errors.Join(s.freePort(), s.start())
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) socket() string { return filepath.Join(s.dir, "sock") }

// start starts the server and waits until it accepts connections.
func (s *server) start() error {
	s.cmd = exec.Command("mariadbd", "--no-defaults", "--user=root", "--datadir="+s.data(), "--socket="+s.socket(),
		"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", s.port), "--skip-name-resolve",
		"--log-error="+filepath.Join(s.dir, "log.err"), "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M", "--autocommit=0")
	var said bytes.Buffer // before it has its log
	s.cmd.Stdout, s.cmd.Stderr = &said, &said
	if err := s.cmd.Start(); err != nil {
		return err
	}
	var err error
	for range 3000 {
		if err = s.exec("DO 0"); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.kill()                                               // what it said is whole then
	log, _ := os.ReadFile(filepath.Join(s.dir, "log.err")) // only for the message
	return errors.Join(err, fmt.Errorf("%s: %s; server log: %s", s.cmd.ProcessState, &said, log))
}

// kill ends the server as a power failure does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // killed
}

// exec runs statements as root.
func (s *server) exec(statements ...string) error {
	cfg := driver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.Logger = "root", "unix", s.socket(), &driver.NopLogger{}
	cfg.Params = map[string]string{"autocommit": "1"}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close() //nolint:errcheck // nothing is pending
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, q := range statements {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

func (s *server) dsn() string {
	return fmt.Sprintf("idproxy:%s@tcp(127.0.0.1:%d)/idproxy", password, s.port)
}

// dsns is where the tests that need any server run: the private MariaDB, and
// one more if the environment names it.
func dsns() map[string]string {
	all := map[string]string{"mariadb": shared.dsn()}
	if more := os.Getenv("IDSOURCE_MYSQL_TEST_DSN"); more != "" {
		all["other"] = more
	}
	return all
}

// newStoreOf makes a store on a server as it is.
func newStoreOf(t *testing.T, dsn string) *Store {
	t.Helper()
	s := assert.Of(New(Config{DSN: dsn})).Must(t, "New")
	t.Cleanup(func() { assert.NoError(t, s.Close(), "Close") })
	return s
}

// newStore makes a store on a server whose table does not exist.
func newStore(t *testing.T, dsn string) *Store {
	t.Helper()
	s := newStoreOf(t, dsn)
	assert.Of(s.db.ExecContext(t.Context(), "DROP TABLE IF EXISTS idproxy_segment, idproxy_store, idproxy_mark, idproxy_series, idproxy_taken")).Must(t)
	return s
}
