package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/process"
)

// Accounts that every server has.
const (
	RootUser, RootPassword = "root", "root"
	AppUser, AppPassword   = "app", "app"
)

// startTimeout bounds the start of a server, of which the slowest machines take some ten seconds.
const startTimeout = 2 * time.Minute

// Options are what one test wants different. The zero value is right for most.
type Options struct {
	Args      []string // added to the server's own, e.g. "--max-connect-errors=3"; the last of two wins
	LowerCase int      // lower_case_table_names: 0 (default), 1 or 2; MySQL fixes it when the data folder is made
	NoTLS     bool     // the server offers no TLS
	Newer     bool     // MariaDB 11.8 instead of Debian's own
	NoSync    bool     // the server does not wait for the disk; what it wrote outlives it, but no power failure
	Clock     *Clock   // default: the host's
}

// Server is one private database server.
type Server struct {
	Kind   Kind
	Addr   string // host:port of its listener, the same after Restart
	Socket string // path of its unix socket
	Dir    string // its folder, with data, log and certificates
	CA     string // PEM file of the CA its certificate is signed by; empty with NoTLS

	program program
	options Options
	proc    *process.Process
}

// StartMariaDB starts a MariaDB server with an empty data folder and waits until it takes
// connections.
func StartMariaDB(ctx context.Context, o Options) (*Server, error) { return Start(ctx, MariaDB, o) }

// StartMySQL starts a MySQL server with an empty data folder and waits until it takes connections.
func StartMySQL(ctx context.Context, o Options) (*Server, error) { return Start(ctx, MySQL, o) }

// Start starts a server of either kind, see StartMariaDB.
func Start(ctx context.Context, kind Kind, o Options) (*Server, error) {
	prog, err := find(kind, o.Newer)
	if err != nil {
		return nil, err
	}
	dir, err := runDir()
	if err != nil {
		return nil, err
	}
	s := &Server{Kind: kind, Dir: dir, Socket: filepath.Join(dir, "my.sock"), program: prog, options: o}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.startOnFreePort(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// prepare fills the server's folder.
func (s *Server) prepare() error {
	template, err := s.program.template(s.options.LowerCase)
	if err != nil {
		return err
	}
	if err := copyTree(s.path("data"), template); err != nil {
		return fmt.Errorf("copy data folder: %w", err)
	}
	if err := os.Mkdir(s.path("tmp"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("accounts.sql"), []byte(accounts), 0o600); err != nil {
		return err
	}
	if s.options.NoTLS {
		return nil
	}
	s.CA = s.path("ca.pem")
	return WriteCertificates(s.Dir)
}

// startOnFreePort starts the server on a port nobody listens on. Another program may take it before
// the server does, so it tries again.
func (s *Server) startOnFreePort(ctx context.Context) error {
	var failed error
	for range 3 {
		addr, err := FreeAddr()
		if err != nil {
			return err
		}
		s.Addr = addr
		if failed = s.Start(ctx); failed == nil {
			return nil
		}
	}
	return failed
}

// Start starts the server again, on the same port and data, after Kill or after it ended by itself.
func (s *Server) Start(ctx context.Context) error {
	env, err := s.options.env()
	if err != nil {
		return err
	}
	proc, err := process.Start(process.Spec{
		Path: s.program.path, Args: slices.Concat(s.program.args, s.args()), Env: env, Log: s.path("server.log"),
	})
	if err != nil {
		return err
	}
	s.proc = proc
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := proc.Poll(ctx, s.answers); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", s.Kind, err), proc.Kill())
	}
	return nil
}

// env is what the server gets in its environment: the library that it loads before its own. One with
// a clock of its own waits for the disk all the same.
func (o *Options) env() ([]string, error) {
	if !o.NoSync || o.Clock != nil {
		return o.Clock.env(), nil
	}
	library, err := preload{"nosync", noSyncSource}.library()
	return []string{"LD_PRELOAD=" + library}, err
}

// accounts runs at every start, before the server accepts connections. An init file has one
// statement per line.
const accounts = `DROP USER IF EXISTS ''@'localhost', 'root'@'127.0.0.1', 'root'@'::1';
CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY 'root';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY 'app';
GRANT ALL PRIVILEGES ON *.* TO 'app'@'%' WITH GRANT OPTION;
`

// args are the server's arguments, without those that say where its program is.
func (s *Server) args() []string {
	_, port, _ := net.SplitHostPort(s.Addr) // FreeAddr made it
	args := []string{
		"--datadir=" + s.path("data"), "--tmpdir=" + s.path("tmp"), "--socket=" + s.Socket,
		"--pid-file=" + s.path("my.pid"), "--port=" + port, "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--init-file=" + s.path("accounts.sql"), "--secure-file-priv=", "--local-infile=1", "--skip-log-bin",
		"--max-connections=2000", "--back-log=1000", "--max-allowed-packet=1G", "--performance-schema=OFF",
		"--innodb-buffer-pool-size=128M", "--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0",
		"--lower-case-table-names=" + strconv.Itoa(s.options.LowerCase),
	}
	args = append(args, s.program.serverArgs...)
	if s.options.NoSync {
		args = append(args, "--innodb-flush-method=fsync") // not O_DIRECT, which waits as well
		args = append(args, s.program.noSyncArgs...)
	}
	if s.options.NoTLS {
		args = append(args, s.program.noTLS...)
	} else {
		args = append(args, "--ssl-ca="+s.CA, "--ssl-cert="+s.path("server.pem"), "--ssl-key="+s.path("server.key"))
	}
	return append(args, s.options.Args...)
}

func (s *Server) path(name string) string { return filepath.Join(s.Dir, name) }

// answers logs in once, as a client would: an open port alone would do for a server that is still
// recovering.
func (s *Server) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	config := s.Config("")
	config.Logger = &mysql.NopLogger{} // failures are expected while the server starts
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return false
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Kill ends the server with SIGKILL. Start brings it back, with crash recovery.
func (s *Server) Kill() error { return s.proc.Kill() }

// Restart ends the server in good order and starts it again on the same port and data.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.proc.Stop(startTimeout); err != nil {
		return fmt.Errorf("restart %s: %w", s.Kind, err)
	}
	return s.Start(ctx)
}

// Stop ends the server for good and removes its folder.
func (s *Server) Stop() error {
	var err error
	if s.proc != nil {
		err = s.proc.Kill()
	}
	return errors.Join(err, os.RemoveAll(s.Dir))
}

// Signal sends sig to the server, for SIGSTOP and SIGCONT.
func (s *Server) Signal(sig syscall.Signal) error { return s.proc.Signal(sig) }

// RSS is the memory the server holds now, in bytes.
func (s *Server) RSS() (int64, error) {
	u, err := s.proc.Usage()
	return u.RSS, err
}

// Log returns what the server has logged so far.
func (s *Server) Log() string { return s.proc.Log() }

// Config is the driver's configuration for the app account and database db, which may be empty. It
// has no time parsing and no TLS; change the copy as needed.
func (s *Server) Config(db string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = AppUser, AppPassword, "tcp", s.Addr, db
	return c
}

// DSN is the app account's data source name for github.com/go-sql-driver/mysql. db may be empty.
func (s *Server) DSN(db string) string { return s.Config(db).FormatDSN() }

// Client is the server's own command-line client, logged in as app over TCP, with more arguments if
// wanted.
func (s *Server) Client(args ...string) *exec.Cmd { return s.ClientTo(s.Addr, args...) }

// ClientTo is Client for another address that leads to this server, such as a proxy's.
func (s *Server) ClientTo(addr string, args ...string) *exec.Cmd {
	return exec.Command(s.program.client, slices.Concat(s.program.clientArgs, accountArgs(addr), args)...)
}

// Dump is the server's own mysqldump or mariadb-dump, logged in as app over TCP.
func (s *Server) Dump(args ...string) *exec.Cmd {
	return exec.Command(s.program.dump, slices.Concat(s.program.dumpArgs, accountArgs(s.Addr), args)...)
}

// accountArgs has a client log in as app over TCP. A malformed address makes the client fail, which
// says more.
func accountArgs(addr string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return []string{"--protocol=tcp", "--host=" + host, "--port=" + port, "--user=" + AppUser, "--password=" + AppPassword}
}
