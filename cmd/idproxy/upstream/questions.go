package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"

	"idproxy/config"
	"idproxy/proxy"
	"idproxy/proxy/catalog"
	"idproxy/proxy/dial"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Describe describes a table as the proxy does, and says how the columns of rules are declared.
func (u *Server) Describe(ctx context.Context, schema, table string, rules []*rule.Rule) (*rule.Table, error) {
	return u.describe(ctx, schema, table, rules, true)
}

// Table describes a table as far as the proxy does for an INSERT. A table that is locked is
// proxy.ErrLocked.
func (u *Server) Table(ctx context.Context, schema, table string, rules []*rule.Rule) (*rule.Table, error) {
	t, err := u.describe(ctx, schema, table, rules, false)
	return t, orLocked(err)
}

// describe asks over a connection of its own: database/sql does not give what the definitions of
// columns say.
func (u *Server) describe(ctx context.Context, schema, table string, rules []*rule.Rule, declared bool) (*rule.Table, error) {
	q, err := u.Session(ctx)
	if err != nil {
		return nil, err
	}
	f, err := (&catalog.Asker{Session: q, Names: new(catalog.Spellings)}).Table(catalog.About{
		Name:      rewriter.Name{Schema: []byte(schema), Table: []byte(table)},
		Rules:     rules,
		Declared:  declared,
		EachTable: func(*rule.Rule) bool { return false },
		Before:    func() *catalog.Table { return nil },
	})
	if whole := q.stop(); whole && err == nil {
		u.giveBack(q)
	} else {
		q.cut()
	}
	switch {
	case err != nil:
		return nil, cmp.Or(context.Cause(ctx), err)
	case f.Err != nil:
		return nil, asDriver(f.Err)
	}
	return f.Table, nil
}

// asDriver returns a server's error as database/sql has it.
func asDriver(e *mysql.MyError) error {
	out := &driver.MySQLError{Number: e.Code, Message: e.Message}
	copy(out.SQLState[:], e.State)
	return out
}

// Session is a connection that answers questions of package catalog.
type Session struct {
	conn       *client.Conn
	raw        net.Conn
	stop       func() bool // ends what watch has begun, and reports whether nothing was cut
	mode       rewriter.Mode
	statements map[uint32]*client.Stmt
}

// Session returns a connection that nobody else uses, and that ctx cuts. Its user ends it.
func (u *Server) Session(ctx context.Context) (*Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case q := <-u.idle:
		q.watch(ctx)
		return q, nil
	default:
	}
	mode, err := u.Mode(ctx)
	if err != nil {
		return nil, err
	}
	q := &Session{mode: mode, statements: map[uint32]*client.Stmt{}}
	if err := q.connect(ctx, u); err != nil {
		return nil, plain(err)
	}
	if _, err := q.conn.Execute("SET lock_wait_timeout=1"); err != nil { // as database/sql has it
		q.cut()
		return nil, plain(err)
	}
	return q, nil
}

// giveBack keeps a connection for the next question.
func (u *Server) giveBack(q *Session) {
	select {
	case u.idle <- q:
	default:
		q.quit()
	}
}

// errNoTLS is what go-mysql says of a server without TLS. It has no value for it.
const errNoTLS = "does not support TLS"

// connect logs in as database/sql does: over TLS where the server has it or must have it.
func (q *Session) connect(ctx context.Context, u *Server) (err error) {
	l := u.account
	dialed := func(ctx context.Context, network, address string) (net.Conn, error) {
		limited, cancel := context.WithTimeout(ctx, u.within())
		defer cancel()
		raw, err := dial.Dial(limited, proxy.Address{Net: network, Addr: address})
		if err == nil {
			q.raw = raw
			q.watch(ctx)
		}
		return raw, err
	}
	connect := func(options ...client.Option) error {
		options = append(options, func(c *client.Conn) error { return c.SetCollation("utf8mb4_general_ci") })
		as := u.login.Load()
		q.conn, err = client.ConnectWithDialer(ctx, u.Addr.Network, u.Addr.Address, as.User, string(as.Password), "", dialed, options...)
		return err
	}
	if l.UpstreamTLS.Mode == config.TLSDisabled || u.Addr.Network != "tcp" {
		return connect()
	}
	if u.mayBePlain() && u.isPlain(ctx) { // a server without TLS counts who comes for it and goes
		return connect()
	}
	err = connect(func(c *client.Conn) error { c.SetTLSConfig(u.tls); return nil })
	if err != nil && u.mayBePlain() && strings.Contains(err.Error(), errNoTLS) {
		return connect()
	}
	return err
}

// isPlain reports whether database/sql got no TLS of the server. A server that does not say so may
// have it.
func (u *Server) isPlain(ctx context.Context) bool {
	var name, cipher string
	err := u.DB.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher)
	return err == nil && cipher == ""
}

// watch has the connection cut when ctx is done.
func (q *Session) watch(ctx context.Context) {
	raw := q.raw
	q.stop = context.AfterFunc(ctx, func() { raw.Close() })
}

func (q *Session) cut() { q.raw.Close() }

// quit takes leave of the server, which counts and logs whom it loses without that.
func (q *Session) quit() {
	_ = q.conn.Quit() // nothing is left to be done
	q.cut()
}

// End closes the connection.
func (q *Session) End() {
	q.stop()
	q.quit()
}

// Use chooses the default schema.
func (q *Session) Use(schema string) error { return plain(q.conn.UseDB(schema)) }

// Query implements ask.Server.
func (q *Session) Query(sql string) (out wire.Result, err error) {
	r, err := q.conn.Execute(sql)
	if err != nil {
		return out, plain(err)
	}
	defer r.Close()
	for _, f := range r.Fields {
		out.Payloads = append(out.Payloads, bytes.Clone(f.Data))
	}
	for _, data := range r.RowDatas {
		row, values := make([][]byte, len(r.Fields)), wire.NewReader(data)
		for i := range row {
			if v, null := values.Value(); !null {
				row[i] = append([]byte{}, v...)
			}
		}
		if !values.OK() {
			return out, wire.ErrCut
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// Prepare implements ask.Server.
func (q *Session) Prepare(sql []byte) (p wire.PrepareReply, err error) {
	made, err := q.conn.Prepare(string(sql))
	if err != nil {
		return p, plain(err)
	}
	q.statements[made.ID] = made
	p.Prepared = wire.Prepared{ID: made.ID, Columns: uint16(made.Columns), Params: uint16(made.Params), Definitions: true}
	for _, payload := range made.RawColumnFields {
		p.Shown.Payloads = append(p.Shown.Payloads, bytes.Clone(payload))
	}
	return p, nil
}

// Close implements ask.Server.
func (q *Session) Close(statement uint32) error {
	made := q.statements[statement]
	delete(q.statements, statement)
	return made.Close()
}

// plain returns the server's error out of what go-mysql wraps it in.
func plain(err error) error {
	if e, ok := errors.AsType[*mysql.MyError](err); ok {
		return e
	}
	return err
}

// Settings implements ask.Session.
func (q *Session) Settings() catalog.Settings {
	return catalog.Settings{Mode: q.mode, Charset: "utf8mb4"}
}

// Learn implements ask.Session.
func (q *Session) Learn() (catalog.Settings, error) { return q.Settings(), nil }
