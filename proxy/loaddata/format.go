package loaddata

import (
	"bytes"
	"errors"
	"slices"
)

// Format is how a statement has the server read its file.
type Format struct {
	FieldTerm []byte // FIELDS TERMINATED BY, not empty
	LineStart []byte // LINES STARTING BY
	LineTerm  []byte // LINES TERMINATED BY
	Enclosed  int    // FIELDS ENCLOSED BY: a byte, or None
	Escape    int    // FIELDS ESCAPED BY: a byte, or None
	Skip      uint64 // IGNORE n LINES
	Fields    int    // how many fields of a line the statement reads
	// Bytes says of each field that it goes into a variable, or a column without a character set:
	// MariaDB reads those byte by byte. nil: none does.
	Bytes   []bool
	Charset Charset
	MariaDB bool // the server is MariaDB, not MySQL
	// Strict: the server takes what does not convert to a number for an error, not for a warning.
	// Such an id is left as it is.
	Strict bool
	// StrictFirst: it does so in the first row alone.
	StrictFirst bool
	// KeepZero: sql_mode NO_AUTO_VALUE_ON_ZERO: only NULL and a missing id generate.
	KeepZero bool
	Columns  []Column
}

// None stands for an ENCLOSED BY or ESCAPED BY that is empty.
const None = -1

// Column is one column that gets ids.
type Column struct {
	// Field is the place of its field among those of the file. Absent: the file has none, and the
	// id goes in front of the line, in the order of the columns: the statement must be given those
	// columns in front of its list.
	Field    int
	Text     bool // it holds text: what is no number is an id of the application's
	Unsigned bool // a number below zero becomes zero, and generates
}

// Absent is the Field of a column that the file does not have.
const Absent = -1

// Check says why ids cannot be put in with certainty into files of the format; nil when they can.
func (f *Format) Check() error {
	for _, check := range [...]func(*Format) error{(*Format).checkFields, (*Format).checkLines, (*Format).checkBytes} {
		if err := check(f); err != nil {
			return err
		}
	}
	return nil
}

func (f *Format) checkFields() error {
	switch {
	case len(f.FieldTerm) == 0 && f.Enclosed == None:
		return errors.New("rows of a fixed size (FIELDS TERMINATED BY '' ENCLOSED BY '')")
	case len(f.FieldTerm) == 0:
		return errors.New("FIELDS TERMINATED BY ''")
	case f.hasDigit():
		return errors.New("a digit that separates fields or lines")
	case int(f.FieldTerm[0]) == f.Escape:
		return errors.New("FIELDS ESCAPED BY what they are terminated by")
	case int(f.FieldTerm[0]) == f.Enclosed:
		return errors.New("FIELDS ENCLOSED BY what they are terminated by")
	}
	return nil
}

// hasDigit reports whether a separator or an escape begins with a digit.
func (f *Format) hasDigit() bool {
	first := []int{int(f.FieldTerm[0]), f.Enclosed, f.Escape}
	if len(f.LineTerm) > 0 {
		first = append(first, int(f.LineTerm[0]))
	}
	return slices.ContainsFunc(first, func(c int) bool { return c >= '0' && c <= '9' })
}

func (f *Format) checkLines() error {
	if len(f.LineTerm) == 0 {
		return nil
	}
	alike := bytes.HasPrefix(f.LineTerm, f.FieldTerm) || bytes.HasPrefix(f.FieldTerm, f.LineTerm)
	switch {
	case alike && !bytes.Equal(f.LineTerm, f.FieldTerm):
		return errors.New("LINES TERMINATED BY what begins as fields are terminated")
	case int(f.LineTerm[0]) == f.Escape:
		return errors.New("LINES TERMINATED BY what fields are escaped by")
	}
	return nil
}

func (f *Format) checkBytes() error {
	if len(f.FieldTerm)+len(f.LineTerm)+len(f.LineStart) > maxSeparators {
		return errors.New("separators of more than 1024 bytes")
	}
	single := []byte{byte(max(f.Enclosed, 0)), byte(max(f.Escape, 0))}
	for _, b := range [...][]byte{f.FieldTerm, f.LineStart, f.LineTerm, single} {
		if slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 }) {
			return errors.New("separators beyond ASCII")
		}
	}
	return nil
}

const maxSeparators = 1024
