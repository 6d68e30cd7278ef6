// Package upstream asks the server behind a listener, over the listener's own account: what the
// proxy asks of a client's connection, by the same functions of package catalog, and what it asks of
// nobody, by database/sql.
package upstream

import (
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/proxy"
	"idproxy/proxy/catalog"
	"idproxy/proxy/dial"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Server asks a server behind a listener with the listener's own account. It implements
// proxy.Account.
type Server struct {
	Tables
	Addr    config.Addr
	SQLMode string // of connections from now on, as SET has it; empty: the server's

	account *config.Listener
	login   atomic.Pointer[config.Account]
	closed  atomic.Bool
	tls     *tls.Config
	within  func() time.Duration // a connect must succeed
	watch   *sql.DB              // one connection, for what must not wait behind questions about tables
	idle    chan *Session        // connections for those

	mu sync.Mutex            // guards at
	at map[string]*addressed // by the address that the name led to
}

// Tables asks a server about its tables. It implements proxy.Questions.
type Tables struct{ DB *sql.DB }

// addressed is a server that is asked at an address.
type addressed struct {
	Tables
	used time.Time // last
}

// LogIn has connections from now on log in as an account.
func (u *Server) LogIn(as config.Account) { u.login.Store(&as) }

// Closed reports whether Close was called.
func (u *Server) Closed() bool { return u.closed.Load() }

// Close closes all connections.
func (u *Server) Close() error {
	u.closed.Store(true)
	u.mu.Lock()
	defer u.mu.Unlock()
	errs := []error{u.DB.Close(), u.watch.Close()}
	for _, a := range u.at {
		errs = append(errs, a.DB.Close())
	}
	for {
		select {
		case q := <-u.idle:
			q.quit()
		default:
			return errors.Join(errs...)
		}
	}
}

// OpenAlone is Open for a command, which ends soon.
func OpenAlone(c *config.Listener, to config.Addr, within func() time.Duration) (*Server, error) {
	return openAt(c, to, to.Address, within)
}

// openAt is OpenAlone for an address of the server's.
func openAt(c *config.Listener, to config.Addr, address string, within func() time.Duration) (*Server, error) {
	var once *tlsconfig.Files
	t, err := once.Upstream(c, to)
	if err != nil {
		return nil, err
	}
	return Open(c, config.Addr{Network: to.Network, Address: address}, t, within)
}

// Open returns one of the servers behind a listener. It connects when it is first asked, over TLS as t
// says, which must succeed within some time.
func Open(c *config.Listener, to config.Addr, t *tls.Config, within func() time.Duration) (*Server, error) {
	if c.Account == nil {
		return nil, fmt.Errorf("%s: listener %s has no account; the server can only be asked with one", c.Pos, c.Name)
	}
	u := &Server{Addr: to, account: c, tls: t, within: within, idle: make(chan *Session, ConnectionsAtOnce), at: map[string]*addressed{}}
	u.LogIn(*c.Account)
	u.DB, u.watch = u.open(to.Address, ConnectionsAtOnce), u.open(to.Address, 1)
	return u, nil
}

// Connections bounds those with the account to one server: ConnectionsAtOnce ask about tables, and one
// whether it answers and takes writes.
const (
	Connections       = ConnectionsAtOnce + 1
	ConnectionsAtOnce = 4
)

// keptFor is how long what was used to ask at an address is kept.
const keptFor = time.Minute

// At asks the server at an address, where a session is.
func (u *Server) At(address net.Addr) proxy.Questions {
	to := address.String()
	if address.Network() != "tcp" || to == u.Addr.Address {
		return u.Tables
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if a := u.at[to]; a != nil {
		a.used = time.Now()
		return a.Tables
	}
	for old, a := range u.at {
		if time.Since(a.used) > keptFor {
			a.DB.Close() // what it is asked meanwhile it answers
			delete(u.at, old)
		}
	}
	u.at[to] = &addressed{Tables{u.open(to, ConnectionsAtOnce)}, time.Now()}
	return u.at[to].Tables
}

// staysFor is how long a connection is used again. Sessions connect anew, each by the name as it is
// resolved then, and what is asked must not stay behind at a server that the name no longer leads to.
const staysFor = 5 * time.Second

// open returns a pool of connections with the account. It connects when it is first used.
func (u *Server) open(address string, most int) *sql.DB {
	db := sql.OpenDB(connector{u, address})
	db.SetMaxIdleConns(most)
	db.SetConnMaxLifetime(staysFor)
	db.SetMaxOpenConns(most)
	return db
}

// connector logs in with the account of a server, at an address.
type connector struct {
	server  *Server // named: a pool closes a connector that has Close
	address string
}

// Driver implements driver.Connector.
func (connector) Driver() sqldriver.Driver { return driver.MySQLDriver{} }

// Connect implements driver.Connector. It resolves names as sessions do, and it has as long as they
// have.
func (c connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	limit := c.server.within()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	d := driver.NewConfig()
	as := c.server.login.Load()
	d.User, d.Passwd = as.User, string(as.Password)
	d.Net, d.Addr = c.server.Addr.Network, c.address
	reached := false
	d.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial.Dial(ctx, proxy.Address{Net: network, Addr: address})
		reached = err == nil
		return conn, err
	}
	d.AllowFallbackToPlaintext = c.server.mayBePlain()
	if c.server.account.UpstreamTLS.Mode != config.TLSDisabled && c.server.Addr.Network == "tcp" {
		d.TLS = c.server.tls
	}
	d.Params = map[string]string{"lock_wait_timeout": "1"} // s; a client may wait that has locked the table itself
	if c.server.SQLMode != "" {
		d.Params["sql_mode"] = c.server.SQLMode
	}
	made, err := driver.NewConnector(d)
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	login, err := made.Connect(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	if errors.Is(err, driver.ErrNoTLS) {
		err = fmt.Errorf("account: the server offers no TLS, and upstream_tls.ca says by whose certificate to know it: give the server TLS, or set upstream_tls.mode to disabled (%w)", err)
	}
	if err != nil && !reached {
		return nil, &unreachedError{err}
	}
	return login, err
}

// mayBePlain reports whether the account logs in where the server offers no TLS. Where a CA is named,
// somebody on the way could get its password by leaving the offer out.
func (u *Server) mayBePlain() bool {
	return u.account.UpstreamTLS.Mode != config.TLSRequired && u.account.UpstreamTLS.CA == ""
}

// unreachedError is why there is no connection to a server.
type unreachedError struct{ error }

// Unwrap returns it.
func (e *unreachedError) Unwrap() error { return e.error }

// orLocked returns proxy.ErrLocked for the error of a table that somebody has locked, and else the
// error.
func orLocked(err error) error {
	if e, ok := errors.AsType[*driver.MySQLError](err); ok && e.Number == errLockWait {
		return fmt.Errorf("%w: %w", proxy.ErrLocked, err)
	}
	return err
}

// Greatest returns the greatest id in a column up to last, 0 when nothing in it is above 0. See
// [ask.GreatestQuery].
func (t Tables) Greatest(ctx context.Context, schema, table string, column rule.Column, last uint64) (uint64, error) {
	return t.greatest(ctx, catalog.GreatestQuery(schema, table, column, last), column)
}

// Column is a column of a table.
type Column struct {
	Schema, Table string
	rule.Column
}

// AllGreatest does what Greatest does for several columns, in one statement.
func (t Tables) AllGreatest(ctx context.Context, columns []Column, last uint64) ([]uint64, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	questions := make([]string, len(columns))
	for i, c := range columns {
		questions[i] = fmt.Sprintf("SELECT %d, (%s)", i, catalog.GreatestQuery(c.Schema, c.Table, c.Column, last))
	}
	rows, err := t.DB.QueryContext(ctx, strings.Join(questions, " UNION ALL "))
	if err != nil {
		return nil, orLocked(err)
	}
	defer rows.Close()
	greatest := make([]uint64, len(columns))
	for rows.Next() {
		var i int
		var v sql.NullString
		if err := rows.Scan(&i, &v); err != nil {
			return nil, err
		}
		if greatest[i], err = id(v, columns[i].Column); err != nil {
			return nil, err
		}
	}
	return greatest, orLocked(rows.Err())
}

// Held returns the greatest of some ids that a column holds, 0 when it holds none.
func (t Tables) Held(ctx context.Context, schema, table string, column rule.Column, ids []uint64) (uint64, error) {
	return t.greatest(ctx, catalog.HeldQuery(schema, table, column, ids), column)
}

// greatest asks a question for the greatest of some ids of a column.
func (t Tables) greatest(ctx context.Context, question string, column rule.Column) (uint64, error) {
	var v sql.NullString
	err := t.DB.QueryRowContext(ctx, question).Scan(&v)
	if err != nil {
		return 0, orLocked(err)
	}
	return id(v, column)
}

// id reads what a server answers to a question for an id of a column.
func id(v sql.NullString, column rule.Column) (uint64, error) {
	if !v.Valid || strings.HasPrefix(v.String, "-") {
		return 0, nil
	}
	n, err := strconv.ParseUint(v.String, 10, 64)
	if err != nil {
		return 0, errors.New("MAX(" + column.Name + ") is no whole number below 2^64")
	}
	return n, nil
}

// HoldsZero reports whether a column of numbers holds 0.
func (t Tables) HoldsZero(ctx context.Context, schema, table, column string) (holds bool, err error) {
	err = t.DB.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+Quote(schema)+"."+Quote(table)+" WHERE "+Quote(column)+" = 0)").Scan(&holds)
	return holds, orLocked(err)
}

// Definition returns what a view was made with, nil for a table.
func (t Tables) Definition(ctx context.Context, schema, table string) (text []byte, err error) {
	rows, err := t.DB.QueryContext(ctx, "SHOW CREATE TABLE "+Quote(schema)+"."+Quote(table))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || len(names) < 2 || names[0] != "View" || !rows.Next() {
		return nil, errors.Join(err, rows.Err())
	}
	into := make([]any, len(names))
	for i := range into {
		into[i] = new(sql.RawBytes)
	}
	into[1] = &text
	return text, errors.Join(rows.Scan(into...), rows.Err())
}

// errLockWait is the server's number for a lock that was not had in time.
const errLockWait = 1205

// Mode returns how the server reads text by default.
func (u *Server) Mode(ctx context.Context) (m rewriter.Mode, err error) {
	var version, modes string
	if err := u.DB.QueryRowContext(ctx, "SELECT VERSION(), @@GLOBAL.sql_mode").Scan(&version, &modes); err != nil {
		return m, err
	}
	for mode := range strings.SplitSeq(modes, ",") {
		m.ANSIQuotes = m.ANSIQuotes || mode == "ANSI_QUOTES"
		m.NoBackslashEscapes = m.NoBackslashEscapes || mode == "NO_BACKSLASH_ESCAPES"
		m.NoAutoValueOnZero = m.NoAutoValueOnZero || mode == "NO_AUTO_VALUE_ON_ZERO"
	}
	m.MariaDB = strings.Contains(version, "MariaDB")
	m.Version = VersionNumber(version)
	return m, nil
}

// VersionNumber reads "10.11.19-MariaDB" as 101119; 0 when it is no version.
func VersionNumber(text string) uint32 {
	var major, minor, patch uint32
	if n, _ := fmt.Sscanf(text, "%d.%d.%d", &major, &minor, &patch); n != 3 {
		return 0
	}
	return major*10000 + minor*100 + patch
}

func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// IsGone reports whether an error says that there is nothing to ask: no such table, schema or column, or a
// view of such.
func IsGone(err error) bool {
	e, ok := errors.AsType[*driver.MySQLError](err)
	return ok && slices.Contains([]uint16{1049, 1051, 1054, 1109, 1146, 1356}, e.Number)
}
