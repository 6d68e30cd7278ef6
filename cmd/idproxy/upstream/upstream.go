// Package upstream asks the server behind a listener, over the listener's own account: what the
// proxy asks of a client's connection, by the same functions of package ask, and what it asks of
// nobody, by database/sql.
package upstream

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/proxy"
	"idproxy/proxy/ask"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Server asks a listener's server with the listener's own account.
type Server struct {
	DB *sql.DB

	account  *config.Listener
	password atomic.Pointer[config.Secret]
	tls      *tls.Config
	idle     chan *Session // connections for those
}

// SetPassword gives the account another password, for connections from now on.
func (u *Server) SetPassword(p config.Secret) { u.password.Store(&p) }

// Close closes all connections.
func (u *Server) Close() error {
	for {
		select {
		case q := <-u.idle:
			q.cut()
		default:
			return u.DB.Close()
		}
	}
}

// OpenAlone is Open for a command, which ends soon.
func OpenAlone(c *config.Listener) (*Server, error) {
	var once *tlsconfig.Files
	t, err := once.Upstream(c)
	if err != nil {
		return nil, err
	}
	return Open(c, t)
}

// Open connects when it is first asked, over TLS as t says.
func Open(c *config.Listener, t *tls.Config) (*Server, error) {
	if c.Account == nil {
		return nil, fmt.Errorf("%s: listener %s has no account; the server can only be asked with one", c.Pos, c.Name)
	}
	u := &Server{account: c, tls: t, idle: make(chan *Session, ConnectionsAtOnce)}
	u.SetPassword(c.Account.Password)
	return u, u.openDB()
}

// ConnectionsAtOnce bounds the connections with the account of one listener.
const ConnectionsAtOnce = 4

// staysFor is how long a connection is used again. Sessions connect anew, each by the name as it is
// resolved then, and what is asked must not stay behind at a server that the name no longer leads to.
const staysFor = 5 * time.Second

// openDB makes a pool of connections to a listener's server with its own
// account. It connects when it is first used.
func (u *Server) openDB() error {
	c, d := u.account, driver.NewConfig()
	d.User = c.Account.User
	d.Net, d.Addr = c.Upstream.Network, c.Upstream.Address
	d.AllowFallbackToPlaintext = c.UpstreamTLS.Mode != config.TLSRequired
	if c.UpstreamTLS.Mode != config.TLSDisabled && c.Upstream.Network == "tcp" {
		d.TLS = u.tls
	}
	login := driver.BeforeConnect(func(_ context.Context, d *driver.Config) error {
		d.Passwd = string(*u.password.Load())
		return nil
	})
	if err := d.Apply(login); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	d.Params = map[string]string{"lock_wait_timeout": "1"} // s; a client may wait that has locked the table itself
	connector, err := driver.NewConnector(d)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	u.DB = sql.OpenDB(connector)
	u.DB.SetMaxIdleConns(1)
	u.DB.SetConnMaxLifetime(staysFor)
	u.DB.SetMaxOpenConns(ConnectionsAtOnce)
	return nil
}

// orLocked returns proxy.ErrLocked for the error of a table that somebody has locked, and else the
// error.
func orLocked(err error) error {
	if e, ok := errors.AsType[*driver.MySQLError](err); ok && e.Number == errLockWait {
		return fmt.Errorf("%w: %w", proxy.ErrLocked, err)
	}
	return err
}

// Greatest returns the greatest id in a column, 0 when nothing in it is above 0.
func (u *Server) Greatest(ctx context.Context, schema, table string, column rule.Column) (uint64, error) {
	return u.greatest(ctx, ask.GreatestQuery(schema, table, column), column)
}

// Held returns the greatest of some ids that a column holds, 0 when it holds none.
func (u *Server) Held(ctx context.Context, schema, table string, column rule.Column, ids []uint64) (uint64, error) {
	return u.greatest(ctx, ask.HeldQuery(schema, table, column, ids), column)
}

// greatest asks a question for the greatest of some ids of a column.
func (u *Server) greatest(ctx context.Context, question string, column rule.Column) (uint64, error) {
	var v sql.NullString
	err := u.DB.QueryRowContext(ctx, question).Scan(&v)
	if err != nil {
		return 0, orLocked(err)
	}
	if !v.Valid || strings.HasPrefix(v.String, "-") {
		return 0, nil
	}
	n, err := strconv.ParseUint(v.String, 10, 64)
	if err != nil {
		return 0, errors.New("MAX(" + column.Name + ") is no whole number below 2^64")
	}
	return n, nil
}

// Definition returns what a view was made with, nil for a table.
func (u *Server) Definition(ctx context.Context, schema, table string) (text []byte, err error) {
	rows, err := u.DB.QueryContext(ctx, "SHOW CREATE TABLE "+Quote(schema)+"."+Quote(table))
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
	m.Version = versionNumber(version)
	return m, nil
}

// versionNumber reads "10.11.19-MariaDB" as 101119; 0 when it is no version.
func versionNumber(text string) uint32 {
	var major, minor, patch uint32
	if n, _ := fmt.Sscanf(text, "%d.%d.%d", &major, &minor, &patch); n != 3 {
		return 0
	}
	return major*10000 + minor*100 + patch
}

func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
