package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// describe asks the server about a table, over the client's own connection: so
// it shows what the session itself would see.
func (s *session) describe(n need) error {
	s.c.mu.Lock()
	unseen, mode := s.c.state.unseen, s.c.state.mode
	s.c.mu.Unlock()
	f := &facts{name: tableName(n.table.Schema, n.table.Table), at: time.Now(), changes: s.l.tables.count()}
	visible, err := s.columns("*", n.table)
	if err == nil {
		f.table = visible.table
		err = s.notVisible(f, n.table, !visible.keyed && !mode.MariaDB && mode.Version >= 80030)
	}
	if err == nil {
		err = s.tellBytes(f, n.table)
	}
	if err == nil {
		err = s.findCharsets(f, n.table)
	}
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		f.err = refused
		s.held.denied, s.held.deniedKey = f, n.key
		return nil
	}
	if err != nil {
		return err
	}
	s.decider.keep(n.key, f, unseen)
	return nil
}

// notVisible asks for the columns of rules that SELECT * does not show. A table
// that does not have them either may be a view, whose columns are what it was
// made with. generated: the table may have MySQL's generated invisible primary
// key, which counts by itself.
func (s *session) notVisible(f *facts, t rewriter.Name, generated bool) error {
	book, missing := s.l.ruleBook(), false
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		found, err := s.invisible(f, t, rule.Column)
		if err == nil && found && rule.Gene != nil {
			err = s.describeKey(f, t, rule.Gene)
		}
		if err != nil {
			return err
		}
		missing = missing || !found
	}
	if generated {
		if _, err := s.invisible(f, t, "my_row_id"); err != nil {
			return err
		}
	}
	if !missing {
		return nil
	}
	view, err := s.isView(t)
	f.view = view
	return err
}

// invisible asks for a column that is not known yet, and reports whether there
// is one.
func (s *session) invisible(f *facts, t rewriter.Name, column string) (bool, error) {
	if _, _, ok := f.table.Column(column); ok {
		return true, nil
	}
	found, err := s.columns(string(quoteName(nil, []byte(column))), t)
	if e, ok := errors.AsType[*mysql.MyError](err); ok && e.Code == mysql.ER_BAD_FIELD_ERROR {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f.table.Invisible = append(f.table.Invisible, found.table.Columns...)
	return true, nil
}

// tellBytes finds out which columns without a character set have one. Definitions
// give all text as bytes under character_set_results=binary, and what is known of a
// table is not of the session that has asked.
func (s *session) tellBytes(f *facts, t rewriter.Name) error {
	var doubtful []*rewriter.Column
	for _, columns := range [...][]rewriter.Column{f.table.Columns, f.table.Invisible} {
		for i := range columns {
			if c := &columns[i]; c.Bytes && (c.Text || c.Type == "BLOB") {
				doubtful = append(doubtful, c)
			}
		}
	}
	if doubtful == nil {
		return nil
	}
	results, err := s.queryRow("SELECT @@character_set_results", 1)
	if err != nil || string(results[0]) != "binary" {
		return err
	}
	charsets, err := s.charsets(doubtful, t)
	if err != nil {
		return err
	}
	for i, c := range doubtful {
		if string(charsets[i]) != "binary" {
			c.Bytes, c.Type = false, asText(c)
		}
	}
	return nil
}

// findCharsets asks for the character sets of columns for wide ids. Definitions do
// not tell: they give the one that results are sent in.
func (s *session) findCharsets(f *facts, t rewriter.Name) error {
	var wide []*rewriter.Column
	book := s.l.ruleBook()
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		if c := f.table.Find(rule.Column); c != nil && rule.IDs.Wide() && c.Form(rule.IDs) != rewriter.FormNone {
			wide = append(wide, c)
		}
	}
	charsets, err := s.charsets(wide, t)
	if err != nil {
		return err
	}
	for i, c := range wide {
		c.SetCharset(string(charsets[i]))
	}
	return nil
}

// charsets asks for the character sets of columns. The question has one row, also of
// an empty table, and reads none: it opens no read view. It names the table as it is
// called, for under LOCK TABLES it may have no other name.
func (s *session) charsets(columns []*rewriter.Column, t rewriter.Name) ([][]byte, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	sql := []byte("SELECT ")
	for i, c := range columns {
		if i > 0 {
			sql = append(sql, ',')
		}
		sql = append(quoteName(append(sql, "CHARSET(MIN("...), []byte(c.Name)), "))"...)
	}
	return s.queryRow(string(appendTable(append(sql, " FROM "...), t))+" WHERE FALSE", len(columns))
}

// columns asks what SELECT list FROM a table shows, by a prepared statement
// that is never executed.
func (s *session) columns(list string, t rewriter.Name) (*described, error) {
	payload := append([]byte{mysql.COM_STMT_PREPARE}, "SELECT "+list+" FROM "...)
	packets, err := s.ask(wire.AppendPacket(nil, 0, appendTable(payload, t)), replyPrepare)
	if err != nil {
		return nil, err
	}
	d, err := s.c.readColumns(packets)
	if id := d.statement; id != 0 {
		if werr := s.write(wire.AppendPacket(nil, 0, []byte{mysql.COM_STMT_CLOSE, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})); werr != nil {
			return nil, werr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", tableName(t.Schema, t.Table), err)
	}
	return &d, nil
}

// isView reports whether a table that can be read is a view. The definitions of
// its columns do not tell: they name the view as the table they come from.
//
// information_schema is asked only where a right is missing (SHOW VIEW, or more than
// one to columns): in a transaction of REPEATABLE READ that opens a read view on MySQL.
func (s *session) isView(t rewriter.Name) (bool, error) {
	packets, err := s.ask(s.c.appendQuery(nil, "SHOW CREATE TABLE "+string(appendTable(nil, t))), replyResult)
	if err != nil {
		return false, err
	}
	if definitions, _, err := s.c.textResult(packets); err == nil && len(definitions) > 0 {
		if c, ok := wire.ParseColumn(definitions[0], s.c.caps&wire.MariaDBExtendedMetadata != 0); ok {
			return c.Name == "View", nil
		}
	}
	if bytes.IndexByte(t.Schema, '\\') >= 0 || bytes.IndexByte(t.Table, '\\') >= 0 {
		return true, nil // how to write that in a string depends on sql_mode; better safe
	}
	rows, err := s.query("SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA=" + quoteText(t.Schema) + " AND TABLE_NAME=" + quoteText(t.Table))
	if err != nil {
		return false, err
	}
	return len(rows) == 1 && len(rows[0]) == 1 && bytes.Contains(rows[0][0], []byte("VIEW")), nil
}

// quoteText returns a string literal of text without backslashes.
func quoteText(text []byte) string { return "'" + strings.ReplaceAll(string(text), "'", "''") + "'" }

// quoteName appends an identifier in backticks.
func quoteName(dst, name []byte) []byte {
	dst = append(dst, '`')
	for _, b := range name {
		if b == '`' {
			dst = append(dst, '`')
		}
		dst = append(dst, b)
	}
	return append(dst, '`')
}

// appendTable appends the qualified name of a table.
func appendTable(dst []byte, t rewriter.Name) []byte {
	return quoteName(append(quoteName(dst, t.Schema), '.'), t.Table)
}

// tableName names a table in messages.
func tableName(schema, table []byte) string {
	var b strings.Builder
	b.Write(schema)
	b.WriteByte('.')
	b.Write(table)
	return b.String()
}

// described is what the reply to a PREPARE of a SELECT says.
type described struct {
	table     *rewriter.Table
	keyed     bool   // some column belongs to a primary key
	statement uint32 // to close; 0: none
}

// readColumns reads the reply to a PREPARE of a SELECT of columns.
func (c *conversation) readColumns(packets []byte) (d described, err error) {
	first, rest, err := nextPayload(packets)
	if err != nil {
		return d, err
	}
	if first[0] == wire.ErrByte {
		return d, serverError(first)
	}
	p, ok := wire.ParsePrepared(first)
	if !ok || !p.Definitions {
		return d, fmt.Errorf("server sent no column definitions (resultset_metadata=NONE?)")
	}
	d.statement = p.ID
	extended := c.caps&wire.MariaDBExtendedMetadata != 0
	t := &rewriter.Table{}
	for len(t.Columns) < int(p.Columns) {
		var payload []byte
		if payload, rest, err = nextPayload(rest); err != nil {
			return d, err
		}
		col, ok := wire.ParseColumn(payload, extended)
		if !ok {
			return d, fmt.Errorf("column definition %d is malformed", len(t.Columns)+1)
		}
		if strings.IndexByte(col.Name, 0) >= 0 {
			return d, errors.New("names arrive in a character set that is not understood; set character_set_results to utf8mb4")
		}
		d.keyed = d.keyed || col.Flags&mysql.PRI_KEY_FLAG != 0
		t.Columns = append(t.Columns, rewriter.Column{
			Name:          col.Name,
			AutoIncrement: col.Flags&mysql.AUTO_INCREMENT_FLAG != 0,
			Max:           maxID(col),
			Unsigned:      col.Flags&mysql.UNSIGNED_FLAG != 0,
			Text:          isText(col.Type),
			Bytes:         col.Collation == binaryCollation,
			Length:        charLength(col),
			Padded:        col.Type == mysql.MYSQL_TYPE_STRING,
			UUID:          isUUID(col),
			Default:       col.Flags&mysql.NOT_NULL_FLAG == 0 || col.Flags&noDefaultValue == 0,
		})
		last := &t.Columns[len(t.Columns)-1]
		last.Type = typeName(col, last)
	}
	d.table = t
	return d, nil
}

// binaryCollation is what columns without a character set have.
const binaryCollation = 63

// noDefaultValue is the flag of a column without DEFAULT and AUTO_INCREMENT.
// MySQL also sets it where DROP DEFAULT took a column's NULL away.
const noDefaultValue = 4096

// GreatestQuery returns the question for the greatest id in a column: a number,
// or NULL. Ids above 2^64-1, which no source gives, do not count, and neither
// does text that is no number: text compares as text, where '9' is above '10'.
func GreatestQuery(schema, table string, column rewriter.Column) string {
	id := string(quoteName(nil, []byte(column.Name)))
	from := string(appendTable(nil, rewriter.Name{Schema: []byte(schema), Table: []byte(table)}))
	if !column.Text { // an index answers this at once
		return "SELECT CAST(MAX(" + id + ") AS DECIMAL(65)) FROM " + from + " WHERE " + id + "<=18446744073709551615"
	}
	number := "CAST(" + id + " AS DECIMAL(65))"
	return "SELECT MAX(" + number + ") FROM " + from + " WHERE CONVERT(" + id + " USING utf8mb4) REGEXP _utf8mb4'^ *[0-9]+[^0-9A-Za-z]*$' AND " +
		number + "<=18446744073709551615"
}

// isText reports whether a column type holds characters.
func isText(t byte) bool {
	switch t {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING:
		return true
	}
	return false
}
