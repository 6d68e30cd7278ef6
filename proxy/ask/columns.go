package ask

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/facts"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// columns asks what SELECT list FROM a table shows, by a prepared statement
// that is never executed.
func (a *Asker) columns(list string, t rewriter.Name) (*described, error) {
	sql, err := a.AppendTable([]byte("SELECT "+list+" FROM "), t)
	if err != nil {
		return nil, err
	}
	if a.Plain {
		return a.plainColumns(string(sql), t)
	}
	reply, err := a.Prepare(sql)
	d, err := readColumns(&reply, err)
	if reply.ID != 0 {
		if err := a.Close(reply.ID); err != nil {
			return nil, err
		}
	}
	if err == nil {
		err = a.decodeNames(d.table.Columns)
	}
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", facts.TableName(t), err)
	}
	return &d, nil
}

// decodeNames reads the names of columns that arrive in a character set of
// results in which ASCII is not ASCII. Definitions do not say which that is: a
// table of numbers has none.
func (a *Asker) decodeNames(columns []rule.Column) error {
	if !slices.ContainsFunc(columns, func(c rule.Column) bool { return !isASCII(c.Name) }) {
		return nil
	}
	results, err := a.Row("SELECT @@character_set_results", 1)
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
			converted, err := a.convert(facts.Spelling{Name: *name, Charset: set})
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

// described is what the reply to a PREPARE of a SELECT says.
type described struct {
	table *rule.Table
	keyed bool              // some column belongs to a primary key
	shape [sha256.Size]byte // of all that was said of the columns
}

// readColumns reads the reply to a PREPARE of a SELECT of columns. failed is what is wrong
// with that.
func readColumns(reply *wire.PrepareReply, failed error) (d described, err error) {
	switch {
	case errors.Is(failed, wire.ErrPlainOK), failed == nil && reply.Columns == 0 && len(reply.Shown.Payloads) == 0:
		return d, fmt.Errorf("server sent no column definitions: %w", ErrForeign)
	case failed == nil && !reply.Definitions:
		return d, errors.New("server sent no column definitions (resultset_metadata=NONE?)")
	case failed != nil:
		return d, failed
	}
	return readDefinitions(&reply.Shown)
}

// readDefinitions reads the definitions of columns.
func readDefinitions(shown *wire.Definitions) (d described, err error) {
	t, shape := &rule.Table{}, sha256.New()
	for i, payload := range shown.Payloads {
		shape.Write(payload)
		col, ok := shown.Column(i)
		if !ok {
			return d, fmt.Errorf("column definition %d is malformed", i+1)
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
