package proxy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/facts"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// describe asks the server about a table, over the client's own connection: so
// it shows what the session itself would see.
func (s *session) describe(n need) error {
	s.c.mu.Lock()
	mode := s.c.state.mode
	s.c.mu.Unlock()
	f := &facts.Table{Name: tableName(n.table.Schema, n.table.Table), At: time.Now(), Changes: s.l.tables.Count()}
	visible, err := s.columns("*", n.table)
	if err == nil {
		f.Shape, f.Full = visible.shape, f.At
		if before := s.l.tables.Get([]byte(n.key)); before.Tells(f) {
			f.Table, f.View, f.Full = before.Table, before.View, before.Full
			f.LearnEngine(before.Engine())
			s.l.tables.Put(n.key, f)
			return nil
		}
		f.Table = visible.table
		err = s.notVisible(f, n.table, !visible.keyed && !mode.MariaDB && mode.Version >= 80030)
	}
	show := s.showOnce(n.table)
	if err == nil {
		err = s.findDefinition(f, n.table, mode.MariaDB, show)
	}
	if err == nil {
		err = s.tellBytes(f, n.table)
	}
	if err == nil {
		err = s.findCharsets(f, n.table)
	}
	if err == nil {
		err = s.findBases(f, n.table, show)
	}
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		f.Err = refused
		s.held.denied, s.held.deniedKey = f, n.key
		return nil
	}
	if err != nil {
		return err
	}
	s.tellLeft(f, n.table)
	if f.Partial {
		s.held.denied, s.held.deniedKey = f, n.key
		return nil
	}
	s.l.tables.Put(n.key, f)
	return nil
}

// notVisible asks for the columns of rules that SELECT * does not show. generated:
// the table may have MySQL's generated invisible primary key, which counts by itself.
func (s *session) notVisible(f *facts.Table, t rewriter.Name, generated bool) error {
	book := s.l.ruleBook()
	for _, rule := range book.Match(t.Schema, t.Table, book.fold) {
		found, err := s.invisible(f, t, rule.Column, rule.Exact())
		if err == nil && found && rule.Gene != nil {
			err = s.describeKey(f, t, rule.Gene)
		}
		if err != nil {
			return err
		}
	}
	if generated {
		if _, err := s.invisible(f, t, "my_row_id", false); err != nil {
			return err
		}
	}
	return nil
}

// invisible asks for a column that is not known yet, and reports whether there
// is one. MySQL tells a user with rights to columns alone that one that is not there
// may not be read: unless it must be there, that counts as no column.
func (s *session) invisible(f *facts.Table, t rewriter.Name, column string, must bool) (bool, error) {
	if _, _, ok := f.Table.Column(column); ok {
		return true, nil
	}
	name, err := s.appendName(nil, column)
	if err != nil {
		return false, err
	}
	found, err := s.columns(string(name), t)
	if e, ok := errors.AsType[*mysql.MyError](err); ok && e.Code == mysql.ER_BAD_FIELD_ERROR {
		return false, nil
	} else if ok && e.Code == mysql.ER_COLUMNACCESS_DENIED_ERROR && !must {
		f.Partial = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f.Table.Invisible = append(f.Table.Invisible, found.table.Columns...)
	return true, nil
}

// tellBytes finds out which columns without a character set have one. Definitions
// give all text as bytes under character_set_results=binary, and what is known of a
// table is not of the session that has asked.
func (s *session) tellBytes(f *facts.Table, t rewriter.Name) error {
	var doubtful []*rule.Column
	for _, columns := range [...][]rule.Column{f.Table.Columns, f.Table.Invisible} {
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
func (s *session) findCharsets(f *facts.Table, t rewriter.Name) error {
	var wide []*rule.Column
	book := s.l.ruleBook()
	for _, r := range book.Match(t.Schema, t.Table, book.fold) {
		if c := f.Table.Find(r.Column); c != nil && r.IDs.Wide() && c.Form(r.IDs) != rule.FormNone {
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
func (s *session) charsets(columns []*rule.Column, t rewriter.Name) ([][]byte, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	sql := []byte("SELECT ")
	for i, c := range columns {
		if i > 0 {
			sql = append(sql, ',')
		}
		var err error
		if sql, err = s.appendName(append(sql, "CHARSET(MIN("...), c.Name); err != nil {
			return nil, err
		}
		sql = append(sql, "))"...)
	}
	sql, err := s.appendTable(append(sql, " FROM "...), t)
	if err != nil {
		return nil, err
	}
	return s.queryRow(string(sql)+" WHERE FALSE", len(columns))
}

// columns asks what SELECT list FROM a table shows, by a prepared statement
// that is never executed.
func (s *session) columns(list string, t rewriter.Name) (*described, error) {
	payload, err := s.appendTable(append([]byte{mysql.COM_STMT_PREPARE}, "SELECT "+list+" FROM "...), t)
	if err != nil {
		return nil, err
	}
	packets, err := s.ask(wire.AppendPacket(nil, 0, payload), replyPrepare)
	if err != nil {
		return nil, err
	}
	d, err := s.c.readColumns(packets)
	if id := d.statement; id != 0 {
		if werr := s.closeStatement(id); werr != nil {
			return nil, werr
		}
	}
	if err == nil {
		err = s.decodeNames(d.table.Columns)
	}
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", tableName(t.Schema, t.Table), err)
	}
	return &d, nil
}

// decodeNames reads the names of columns that arrive in a character set of
// results in which ASCII is not ASCII. Definitions do not say which that is: a
// table of numbers has none.
func (s *session) decodeNames(columns []rule.Column) error {
	if !slices.ContainsFunc(columns, func(c rule.Column) bool { return !isASCII(c.Name) }) {
		return nil
	}
	results, err := s.queryRow("SELECT @@character_set_results", 1)
	if err != nil {
		return err
	}
	set := string(results[0])
	for i := range columns {
		name := &columns[i].Name
		switch {
		case wire.IsWide(set):
			*name = string(wire.DecodeWide([]byte(*name), set))
		case set != "" && !facts.IsUTF8(set) && !facts.IsPlain(*name):
			converted, err := s.convert(facts.Spelling{Name: *name, Charset: set})
			if err != nil {
				return err
			}
			*name = converted
		}
	}
	return nil
}

// isASCII reports whether a name surely is what it reads as: characters of wide
// sets have bytes of zero or beyond ASCII.
func isASCII(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r == 0 || r >= utf8.RuneSelf })
}

// whereTable finds a table in information_schema. The names are as servers have
// them, whatever the session's character set and sql_mode.
func whereTable(t rewriter.Name) string {
	return fmt.Sprintf(" WHERE TABLE_SCHEMA=_utf8mb4 X'%x' AND TABLE_NAME=_utf8mb4 X'%x'", t.Schema, t.Table)
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
	table     *rule.Table
	keyed     bool              // some column belongs to a primary key
	shape     [sha256.Size]byte // of all that was said of the columns
	statement uint32            // to close; 0: none
}

// readColumns reads the reply to a PREPARE of a SELECT of columns.
func (c *conversation) readColumns(packets []byte) (d described, err error) {
	first, rest, err := wire.NextPayload(packets)
	if err != nil {
		return d, err
	}
	if first[0] == wire.ErrByte {
		return d, wire.ParseERR(first)
	}
	p, ok := wire.ParsePrepared(first)
	if !ok || !p.Definitions {
		return d, fmt.Errorf("server sent no column definitions (resultset_metadata=NONE?)")
	}
	d.statement = p.ID
	extended := c.caps&wire.MariaDBExtendedMetadata != 0
	t, shape := &rule.Table{}, sha256.New()
	for len(t.Columns) < int(p.Columns) {
		var payload []byte
		if payload, rest, err = wire.NextPayload(rest); err != nil {
			return d, err
		}
		shape.Write(payload)
		col, ok := wire.ParseColumn(payload, extended)
		if !ok {
			return d, fmt.Errorf("column definition %d is malformed", len(t.Columns)+1)
		}
		d.keyed = d.keyed || col.Flags&mysql.PRI_KEY_FLAG != 0
		t.Columns = append(t.Columns, rule.Column{
			Name:          col.Name,
			AutoIncrement: col.Flags&mysql.AUTO_INCREMENT_FLAG != 0,
			Max:           maxID(col),
			Unsigned:      col.Flags&mysql.UNSIGNED_FLAG != 0,
			Text:          wire.IsText(col.Type),
			Bytes:         col.Collation == wire.BinaryCollation,
			Length:        charLength(col),
			Padded:        col.Type == mysql.MYSQL_TYPE_STRING,
			UUID:          isUUID(col),
			Default:       col.Flags&mysql.NOT_NULL_FLAG == 0 || col.Flags&noDefaultValue == 0,
			NotNull:       col.Flags&mysql.NOT_NULL_FLAG != 0,
			Primary:       col.Flags&mysql.PRI_KEY_FLAG != 0,
			Key:           col.Flags&(mysql.PRI_KEY_FLAG|mysql.UNIQUE_KEY_FLAG|multipleKey) != 0,
		})
		last := &t.Columns[len(t.Columns)-1]
		last.Type = typeName(col, last)
	}
	d.table = t
	shape.Sum(d.shape[:0])
	return d, nil
}

// multipleKey is the flag of a column that a key begins with which is not unique.
const multipleKey = 8

// noDefaultValue is the flag of a column without DEFAULT and AUTO_INCREMENT.
// MySQL also sets it where DROP DEFAULT took a column's NULL away.
const noDefaultValue = 4096

// GreatestQuery returns the question for the greatest id in a column: a number,
// or NULL. Ids above 2^64-1, which no source gives, do not count, and neither
// does text that is no number: text compares as text, where '9' is above '10'.
//
// The names are in UTF-8, and so is the connection's character set.
func GreatestQuery(schema, table string, column rule.Column) string {
	quoted := func(name string) string { return string(rewriter.AppendQuoted(nil, name, rewriter.Mode{})) }
	return greatestQuery(quoted(column.Name), quoted(schema)+"."+quoted(table), column)
}

// greatestQuery is GreatestQuery with the names as SQL.
func greatestQuery(id, from string, column rule.Column) string {
	if !column.Text { // an index answers this at once
		return "SELECT CAST(MAX(" + id + ") AS DECIMAL(65)) FROM " + from + " WHERE " + id + "<=18446744073709551615"
	}
	number := "CAST(" + id + " AS DECIMAL(65))"
	return "SELECT MAX(" + number + ") FROM " + from + " WHERE CONVERT(" + id + " USING utf8mb4) REGEXP _utf8mb4'^ *[0-9]+[^0-9A-Za-z]*$' AND " +
		number + "<=18446744073709551615"
}
