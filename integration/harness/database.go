package harness

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// shared are the servers that all tests of a test program use, each started at its first use. It is
// the one place with package state: a test program has no other that outlives a test.
var shared = struct{ mariaDB, mySQL, newerMariaDB sharedServer }{
	sharedServer{kind: servers.MariaDB},
	sharedServer{kind: servers.MySQL},
	sharedServer{kind: servers.MariaDB, newer: true},
}

// sharedArgs are arguments of all shared servers.
var sharedArgs []string

type sharedServer struct {
	kind   servers.Kind
	newer  bool
	once   sync.Once
	server *servers.Server
	err    error
}

// Main runs the tests and stops what they shared. It does not return.
//
// The shared servers get these arguments, which may undo what package servers gives them.
//
// It lets more tests run at once than there are processors, unless -parallel says how many: they
// wait for replies most of the time.
func Main(m *testing.M, args ...string) {
	sharedArgs = args
	servers.Parallel(2 * runtime.GOMAXPROCS(0))
	code := m.Run()
	for _, s := range []*sharedServer{&shared.mariaDB, &shared.mySQL, &shared.newerMariaDB} {
		if s.server == nil {
			continue
		}
		if err := s.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := RemoveBuilds(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// MariaDB is the shared MariaDB server. Its settings are those of package servers.
func MariaDB(tb testing.TB) *servers.Server {
	tb.Helper()
	return shared.mariaDB.get(tb)
}

// MySQL is the shared MySQL server. Its settings are those of package servers.
func MySQL(tb testing.TB) *servers.Server {
	tb.Helper()
	return shared.mySQL.get(tb)
}

// NewerMariaDB is the shared MariaDB 11.8 server, for tests of what 10.11 does not have. Its
// settings are those of package servers.
func NewerMariaDB(tb testing.TB) *servers.Server {
	tb.Helper()
	return shared.newerMariaDB.get(tb)
}

// Servers are the shared servers of both kinds.
func Servers(tb testing.TB) []*servers.Server {
	tb.Helper()
	return []*servers.Server{MariaDB(tb), MySQL(tb)}
}

// EachServer runs a subtest on each shared server, with the server's kind for its name.
func EachServer(t *testing.T, test func(t *testing.T, server *servers.Server)) {
	t.Helper()
	for _, server := range Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) { test(t, server) })
	}
}

// AllServers are the shared servers by name, for tests that compare the same on each: in a wide run
// MariaDB 11.8 is one of them.
func AllServers(tb testing.TB) map[string]*servers.Server {
	tb.Helper()
	all := map[string]*servers.Server{"MariaDB": MariaDB(tb), "MySQL": MySQL(tb)}
	if width.Matrix() {
		all["MariaDB 11.8"] = NewerMariaDB(tb)
	}
	return all
}

// get starts the server at its first use.
func (s *sharedServer) get(tb testing.TB) *servers.Server {
	tb.Helper()
	s.once.Do(func() {
		s.server, s.err = servers.Start(context.Background(), s.kind, servers.Options{Newer: s.newer, NoSync: true, Args: sharedArgs})
	})
	assert.Must(tb, s.err)
	return s.server
}

// StartServer starts a server for this test alone.
func StartServer(tb testing.TB, kind servers.Kind, o servers.Options) *servers.Server {
	tb.Helper()
	o.NoSync = true
	s := assert.Of(servers.Start(tb.Context(), kind, o)).Must(tb)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of %s:\n%s", kind, s.Log())
		}
		assert.NoError(tb, s.Stop())
	})
	return s
}

var databases atomic.Int64

// Database creates an empty database with a name of its own and drops it at the end of the test.
func Database(tb testing.TB, s *servers.Server) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	NamedDatabase(tb, s, name)
	return name
}

// NamedDatabase is Database with a name that no other has.
func NamedDatabase(tb testing.TB, s *servers.Server, name string) {
	tb.Helper()
	db := Open(tb, s.Config(""), "")
	assert.Of(db.Exec("CREATE DATABASE " + name)).Must(tb)
	tb.Cleanup(func() {
		_, err := db.Exec("DROP DATABASE " + name)
		assert.True(tb, err == nil || gone(err), "%v", err)
	})
}

// gone says that the test dropped the database itself, ER_DB_DROP_EXISTS, or killed its server.
func gone(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number == 1008
	}
	return true
}

// Open opens a pool with this configuration, at another address unless that is empty, and closes it
// at the end of the test. It does not connect yet.
func Open(tb testing.TB, c *mysql.Config, addr string) *sql.DB {
	tb.Helper()
	if addr != "" {
		c.Addr = addr
	}
	connector := assert.Of(mysql.NewConnector(c)).Must(tb)
	db := sql.OpenDB(connector)
	tb.Cleanup(func() {
		if err := db.Close(); err != nil && !errors.Is(err, driver.ErrBadConn) { // its server may have been killed
			tb.Error(err)
		}
	})
	return db
}
