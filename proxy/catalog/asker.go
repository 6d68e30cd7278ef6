package catalog

import (
	"strings"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// Server answers questions. What it refuses is a *mysql.MyError.
type Server interface {
	// Query runs a statement that gives one result set.
	Query(sql string) (wire.Result, error)
	// Prepare has a statement prepared, which runs nothing. When the reply has a number, the
	// statement must be closed, also beside an error.
	Prepare(sql []byte) (wire.PrepareReply, error)
	// Close closes a prepared statement.
	Close(statement uint32) error
}

// Session is a server, and how its texts must be written.
type Session interface {
	Server
	// Settings returns what is known now.
	Settings() Settings
	// Learn asks for them.
	Learn() (Settings, error)
}

// Settings are what names in a text are written by.
type Settings struct {
	Mode    rewriter.Mode
	Charset string // character_set_client; empty: it is not known
	Schema  []byte // the default one; nil: it is not known
}

// Asker asks the questions of one session.
type Asker struct {
	Session
	Names *Spellings // that were converted before
	Plain bool       // the server is no MySQL and no MariaDB, see plain.go
}

// mariaDB reports whether the server is MariaDB, and no MySQL.
func (a *Asker) mariaDB() bool { return a.Settings().Mode.MariaDB }

// one asks for a result of at most one row. LIMIT stands in it, for without one
// sql_select_limit=0 would leave none.
func (a *Asker) one(sql string) (wire.Result, error) {
	if a.Plain {
		return a.Query(sql)
	}
	return a.Query(Untimed(sql, a.mariaDB()) + " LIMIT 1")
}

// Untimed returns a SELECT that MySQL's max_execution_time does not end: no
// statement of the client's is a SELECT because of it.
func Untimed(sql string, mariaDB bool) string {
	rest, found := strings.CutPrefix(sql, "SELECT ")
	if !found || mariaDB {
		return sql
	}
	return "SELECT " + rewriter.Untimed + rest
}

// Row asks for one row of n values. NULL is nil.
func (a *Asker) Row(sql string, n int) ([][]byte, error) {
	answer, err := a.one(sql)
	if err != nil {
		return nil, err
	}
	if len(answer.Rows) != 1 || len(answer.Rows[0]) != n {
		return nil, wire.ErrCut
	}
	return answer.Rows[0], nil
}

// perhaps asks for one value that may not be there.
func (a *Asker) perhaps(sql string) (value []byte, found bool, err error) {
	answer, err := a.one(sql)
	if err != nil || len(answer.Rows) != 1 || len(answer.Rows[0]) != 1 {
		return nil, false, err
	}
	return answer.Rows[0][0], true, nil
}
