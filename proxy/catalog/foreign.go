package catalog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Sharding middlewares, Vitess and Dolt speak the protocol and read SQL of their own. Plain questions
// are such that they answer: no PREPARE, of which some tell nothing; no LIMIT, no hint and no function
// around MAX, which is NULL over shards then; and not DATABASE(), which is a shard's own.

// ErrForeign is why a server is known to be no MySQL and no MariaDB.
var ErrForeign = errors.New("a server that is no MySQL and no MariaDB")

// IsForeign reports whether a server is known by the version in its greeting to be asked plainly.
func IsForeign(version string) bool {
	version = strings.ToLower(version)
	for _, name := range []string{"vitess", "dolt", "kingshard", "gaea", "radon", "mycat", "dble", "shardingsphere"} {
		if strings.Contains(version, name) {
			return true
		}
	}
	return false
}

// IsDolt asks a server whether it is Dolt, or go-mysql-server, whose greetings are those of a MySQL.
// Asked for a column that is not there, they have another error than MySQL.
func (a *Asker) IsDolt(refused *mysql.MyError) (bool, error) {
	if refused == nil || refused.Code != mysql.ER_UNKNOWN_ERROR {
		return false, nil
	}
	comment, err := a.text("SELECT @@version_comment")
	return strings.Contains(strings.ToLower(comment), "dolt"), err
}

// PreparesBlindly asks whether a server does not say of a prepared SELECT that it shows a column.
func (a *Asker) PreparesBlindly() (bool, error) {
	reply, err := a.Prepare([]byte("SELECT 1"))
	_, err = readColumns(&reply, err)
	if reply.ID != 0 {
		if err := a.Close(reply.ID); err != nil {
			return false, err
		}
	}
	_, refused := errors.AsType[*mysql.MyError](err)
	switch {
	case errors.Is(err, ErrForeign):
		return true, nil
	case refused:
		return false, nil
	}
	return false, err
}

// errNoSchema is why the settings of a session are not known.
var errNoSchema = errors.New("its default schema is not known any more, and this server does not say it: USE it again")

// plainProbe is Probe. The schema is what the client has last chosen, as far as that can be known.
func (a *Asker) plainProbe() (p Probed, err error) {
	row, err := a.Row("SELECT @@sql_mode,@@character_set_client,@@character_set_connection,@@auto_increment_increment,@@max_allowed_packet,@@lower_case_table_names", 6)
	if err != nil {
		return p, err
	}
	p = Probed{SQLMode: string(row[0]), Charset: string(row[1]), Connection: string(row[2]), Folds: string(row[5]) != "0"}
	var errs [2]error
	p.Increment, errs[0] = strconv.ParseUint(string(row[3]), 10, 64)
	p.MaxPacket, errs[1] = strconv.ParseUint(string(row[4]), 10, 64)
	if err := errors.Join(errs[:]...); err != nil || p.Increment == 0 {
		return p, fmt.Errorf("the server's answer about its settings is not understood: %w", errors.Join(err, wire.ErrCut))
	}
	if p.Schema = a.Settings().Schema; p.Schema == nil {
		return p, errNoSchema
	}
	return p, nil
}

// plainColumns is columns, of a SELECT that gives no row.
func (a *Asker) plainColumns(sql string, t rewriter.Name) (*described, error) {
	answer, err := a.Query(sql + " LIMIT 0")
	if err == nil && len(answer.Payloads) == 0 {
		err = wire.ErrCut
	}
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", TableName(t), err)
	}
	d, err := readDefinitions(&answer.Definitions)
	if err == nil {
		err = a.decodeNames(d.table.Columns)
	}
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", TableName(t), err)
	}
	return &d, nil
}

// plainGreatest is Greatest.
func (a *Asker) plainGreatest(t rewriter.Name, column rule.Column, last uint64) (uint64, error) {
	if column.Text {
		return 0, fmt.Errorf("column %s holds text, whose greatest number this server is not asked for", column.Name)
	}
	table, err := a.AppendTable(nil, t)
	if err != nil {
		return 0, err
	}
	id, err := a.AppendName(nil, column.Name)
	if err != nil {
		return 0, err
	}
	sql := "SELECT MAX(" + string(id) + ") FROM " + string(table)
	if last > 0 {
		sql += " WHERE " + string(id) + "<=" + strconv.FormatUint(last, 10)
	}
	return a.plainNumber(sql)
}

// plainNumber asks for MAX() of a column. Dolt answers that of nothing without a row, and a middleware may
// answer with a row of each shard.
func (a *Asker) plainNumber(sql string) (greatest uint64, err error) {
	answer, err := a.one(sql)
	if err != nil {
		return 0, err
	}
	for _, row := range answer.Rows {
		if len(row) != 1 {
			return 0, wire.ErrCut
		}
		n, err := parseGreatest(string(row[0]))
		if err != nil {
			return 0, err
		}
		greatest = max(greatest, n)
	}
	return greatest, nil
}
