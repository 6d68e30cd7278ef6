package rule

import (
	"bytes"
	"math"
	"strings"

	"idproxy/ascii"
)

// Define notes what the text of SHOW CREATE TABLE says of the table's columns. Each has a line of
// its own, of which only what stands before COMMENT and CHECK is read: names, words and one value,
// the same in every sql_mode but for the quotes of names.
func (t *Table) Define(create []byte) {
	for line := range bytes.Lines(create) {
		line = bytes.TrimSpace(line)
		name, rest := lineName(line)
		if c := t.Find(name); name != "" && c != nil {
			c.define(rest)
		}
	}
}

// lineName cuts the name off the line of a column.
func lineName(line []byte) (name string, rest []byte) {
	if len(line) == 0 {
		return "", nil
	}
	quote := line[0]
	if quote != '`' && quote != '"' { // sql_quote_show_create=0
		bare, rest, _ := bytes.Cut(line, []byte{' '})
		return string(bare), rest
	}
	for i := 1; i < len(line); i++ {
		if line[i] != quote {
			continue
		}
		if i+1 < len(line) && line[i+1] == quote {
			i++
			continue
		}
		q := string(quote)
		return strings.ReplaceAll(string(line[1:i]), q+q, q), line[i+1:]
	}
	return "", nil
}

// define reads the line of a column behind its name.
func (c *Column) define(line []byte) {
	word, line := attribute(line)
	if _, size, ok := bytes.Cut(word, []byte{'('}); ok {
		c.Shorten(string(bytes.TrimSuffix(size, []byte{')'})))
	}
	for len(line) > 0 {
		switch word, line = attribute(line); {
		case ascii.EqualFold(word, "generated"), ascii.EqualFold(word, "as"):
			c.Generated = true
			return
		case ascii.EqualFold(word, "default"):
			word, _ = attribute(line)
			c.setDefault(string(word))
			return
		case ascii.EqualFold(word, "comment"), ascii.EqualFold(word, "check"):
			return
		}
	}
}

// Integer returns the column of an integer type by what information_schema.COLUMNS says of it in
// DATA_TYPE and COLUMN_TYPE. ok is false for any other type.
func Integer(name, dataType, columnType string) (c Column, ok bool) {
	c = Column{Name: name, Type: strings.ToUpper(dataType), Unsigned: strings.Contains(strings.ToLower(columnType), "unsigned")}
	bits := map[string]int{"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}[c.Type]
	if bits == 0 {
		return Column{}, false
	}
	c.Max = math.MaxUint64 >> (65 - bits)
	if c.Unsigned {
		c.Type, c.Max = "UNSIGNED "+c.Type, math.MaxUint64>>(64-bits)
	}
	return c, true
}

// Schema notes what information_schema.COLUMNS says of the column in COLUMN_DEFAULT, nil for NULL,
// and EXTRA.
func (c *Column) Schema(value []byte, extra string, mariaDB bool) {
	extra = strings.ToUpper(extra)
	expression := strings.Contains(extra, "DEFAULT_GENERATED")
	c.Generated = strings.Contains(extra, "GENERATED") && !expression
	switch {
	case value == nil:
	case mariaDB || expression:
		c.setDefault(string(value))
	default: // MySQL leaves the quotes out
		c.Own = "'" + string(value) + "'"
	}
}

// setDefault notes the default of a column, as SHOW CREATE TABLE writes it.
func (c *Column) setDefault(text string) {
	if !strings.EqualFold(text, "null") {
		c.Own = text
	}
}

// attribute cuts off what stands up to the next blank or comma outside of quotes and parentheses.
func attribute(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " ")
	depth, quote := 0, byte(0)
	for i, b := range line {
		switch {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '\'' || b == '`' || b == '"':
			quote = b
		case b == '(':
			depth++
		case b == ')':
			depth--
		case depth <= 0 && b == ' ', depth <= 0 && b == ',':
			return line[:i], line[i+1:]
		}
	}
	return line, nil
}
