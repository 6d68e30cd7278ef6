package loaddata

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// IDs is what the data is given ids by.
type IDs interface {
	// Next returns the next id of a column, an index of Format.Columns.
	Next(column int) (uint64, error)
	// Explicit is told of an id that the file brings, as the server will read it.
	Explicit(column int, id Explicit) error
}

// Explicit is an id that a file brings.
type Explicit struct {
	Number   uint64 // without its sign; 2^64-1: that or more
	Negative bool
	Known    bool // it is a number
}

// Edit copies the data of a file from src to dst and puts in the ids of its rows. It returns the
// errors of src, dst and ids as they are, and those above. After an error dst has only a part of
// the file. f.Check must have found nothing.
func Edit(dst io.Writer, src io.Reader, f *Format, ids IDs) error {
	return newEditor(dst, src, f, ids).edit()
}

func newEditor(dst io.Writer, src io.Reader, f *Format, ids IDs) *editor {
	e := &editor{reader: newReader(f, src), dst: dst, ids: ids, held: -1, at: make([]int, f.Fields)}
	e.discard = func(upTo int64) int64 {
		e.flush(upTo)
		return min(e.from, upTo)
	}
	for i := range e.at {
		e.at[i] = Absent
	}
	for k, c := range f.Columns {
		if c.Field == Absent {
			e.front++
		} else {
			e.at[c.Field] = k
		}
	}
	return e
}

func (e *editor) edit() error {
	err := e.lines()
	switch {
	case e.failed != nil:
		return e.failed
	case err != nil:
		return err
	}
	e.flush(e.base + int64(len(e.buf)))
	return e.write()
}

type editor struct {
	*reader
	dst   io.Writer
	ids   IDs
	at    []int // by field: the column, or Absent
	front int   // columns in front of each line
	from  int64 // place up to which the file was copied
	held  int64 // place of an id whose field is being read; -1: none
	later bool  // the first row was read
	out   []byte
	err   error // of dst
}

// strict reports whether the server refuses what does not convert in the row that is read.
func (e *editor) strict() bool { return e.Strict || e.StrictFirst && !e.later }

// flush copies the file up to a place.
func (e *editor) flush(upTo int64) {
	if e.held >= 0 {
		upTo = min(upTo, e.held)
	}
	if upTo > e.from {
		e.out = append(e.out, e.buf[e.from-e.base:upTo-e.base]...)
		e.from = upTo
	}
	if len(e.out) >= chunk/2 {
		e.err = errors.Join(e.err, e.write())
	}
}

func (e *editor) write() error {
	if len(e.out) == 0 || e.err != nil {
		return e.err
	}
	_, err := e.dst.Write(e.out)
	e.out = e.out[:0]
	return err
}

// lines goes through the file.
func (e *editor) lines() error {
	skip, more := e.skipLines()
	for more {
		n, err := e.row(skip > 0)
		switch {
		case err != nil:
			return err
		case e.stopped():
			return e.stop()
		case n == 0:
			return nil
		case skip > 0: // there is no next line for the server to go on to
			skip--
			continue
		}
		if err := e.missing(n); err != nil {
			return err
		}
		e.later = true
		more = e.nextLine()
	}
	return e.brokenRest()
}

// skipLines passes the lines that IGNORE n LINES names, and returns how many of them have no end to
// be found by. more is false at the end of the file.
func (e *editor) skipLines() (left uint64, more bool) {
	if len(e.LineTerm) == 0 {
		return e.Skip, true
	}
	for range e.Skip {
		if !e.nextLine() {
			return 0, false
		}
	}
	return 0, true
}

// stopped reports whether no more of the file is to be read.
func (e *editor) stopped() bool { return e.refused || e.failed != nil || e.err != nil }

// stop ends a file of which no more is to be read.
func (e *editor) stop() error {
	if e.failed != nil || e.err != nil {
		return errors.Join(e.failed, e.err)
	}
	if e.Charset == GB18030 { // the server looks further ahead than can be told
		return ErrBroken
	}
	e.drop()
	return nil
}

// brokenRest is what to say of a line behind which there is none.
func (e *editor) brokenRest() error {
	if e.refused {
		return ErrBroken
	}
	return nil
}

// drop keeps back what is left of a file that the server refuses, so that it can take none of it
// for anything else. A character's length further is what the server may have looked ahead.
func (e *editor) drop() {
	for range 8 {
		e.get()
	}
	e.flush(e.base + int64(e.pos))
	if e.eof {
		e.from = e.base + int64(len(e.buf))
		return
	}
	_, err := io.Copy(io.Discard, e.src)
	e.failed = errors.Join(e.failed, err)
	e.from = e.base + int64(len(e.buf))
}

// row reads the fields of one row, puts in its ids, and returns the number of fields that were
// there. A row to be skipped is read like any other, and its fields thrown away.
func (e *editor) row(skip bool) (n int, err error) {
	for n < e.Fields && e.begin() {
		if n == 0 && e.front > 0 {
			if err := e.inFront(skip); err != nil {
				return n, err
			}
		}
		e.single = e.readsBytes(n)
		if k := e.at[n]; k == Absent || skip {
			e.field()
		} else if err := e.own(k); err != nil {
			return n, err
		}
		if n++; e.stopped() {
			return n, nil
		}
	}
	return n, nil
}

// readsBytes reports whether the n-th field is read byte by byte, whatever the characters.
func (e *editor) readsBytes(n int) bool {
	return e.Charset == Single || e.MariaDB && n < len(e.Bytes) && e.Bytes[n]
}

// inFront puts the ids of columns that the file does not have in front of the row.
func (e *editor) inFront(skip bool) error {
	e.flush(e.fieldStart)
	for k, c := range e.Columns {
		if c.Field != Absent {
			continue
		}
		id := uint64(0)
		if !skip {
			var err error
			if id, err = e.ids.Next(k); err != nil {
				return err
			}
		}
		e.out = strconv.AppendUint(e.out, id, 10)
		e.out = append(e.out, e.FieldTerm...)
	}
	return nil
}

// own reads the field of an id, and puts an id into it if it generates one.
func (e *editor) own(k int) error {
	e.flush(e.fieldStart)
	e.held, e.keep = e.fieldStart, true
	e.field()
	e.held, e.keep = -1, false
	switch v := e.fieldValue(); {
	case e.stopped():
		return nil
	case e.length > maxWanted && e.Columns[k].Text:
		return e.ids.Explicit(k, Explicit{})
	case e.length > maxWanted:
		return ErrLongID
	case e.isNull(v):
		return e.generate(k, e.fieldStart, e.fieldEnd)
	default:
		return e.ownNumber(k, v)
	}
}

// isNull reports whether the field, whose value is v, is NULL.
func (e *editor) isNull(v []byte) bool {
	return e.length == 1 && e.null || !e.enclosed && e.Enclosed != None && string(v) == "NULL"
}

// ownNumber is own for a field with the value v. A number that is not zero is the application's,
// and so is a text of a column of text; what the server makes a zero of generates.
func (e *editor) ownNumber(k int, v []byte) error {
	n, c := parseNumber(v, e.MariaDB), &e.Columns[k]
	if c.Text && n.end < max(len(v), 1) {
		return e.ids.Explicit(k, Explicit{Number: n.value, Negative: n.negative, Known: n.end > 0})
	}
	clipped := n.clippedIn(c)
	if n.value > 0 && !clipped {
		return e.ids.Explicit(k, Explicit{Number: n.value, Negative: n.negative, Known: n.end > 0})
	}
	if e.KeepZero {
		return e.ids.Explicit(k, Explicit{Known: n.end > 0})
	}
	whole := n.end > 0 && !clipped
	if e.strict() && !(whole && blank(v[n.end:])) { // the server says why not
		return nil
	}
	if whole && e.simple && (n.end == len(v) || !joins(v[n.end])) {
		// what stands behind the number stays
		return e.generate(k, e.fieldStart, e.valueStart()+int64(n.end))
	}
	return e.generate(k, e.fieldStart, e.fieldEnd)
}

// clippedIn reports whether the server makes a zero of n in column c.
func (n number) clippedIn(c *Column) bool { return c.Unsigned && n.negative && n.value > 0 }

// valueStart returns the place where the value of a field begins whose bytes are those of the
// value.
func (e *editor) valueStart() int64 {
	if e.enclosed {
		return e.fieldStart + 1
	}
	return e.fieldStart
}

// fieldValue returns the value of the field, without what stands in it for the closing quote.
func (e *editor) fieldValue() []byte {
	// the quote was never closed, and is part of the value
	if e.quote != None && !e.enclosed && e.lineDone {
		return append([]byte{byte(e.Enclosed)}, e.value...)
	}
	return e.value
}

func blank(b []byte) bool {
	for _, c := range b {
		if c != ' ' {
			return false
		}
	}
	return true
}

// joins reports whether a byte right behind a whole number may go on it.
func joins(c byte) bool { return c == '.' || c|0x20 == 'e' || c-'0' <= 9 }

// generate puts an id in the place of bytes of the field, which keeps its quotes.
func (e *editor) generate(k int, from, to int64) error {
	if e.odd {
		return ErrBroken
	}
	id, err := e.ids.Next(k)
	if err != nil {
		return err
	}
	if e.enclosed {
		from++
		to = min(to, e.fieldEnd-1)
	}
	e.flush(from)
	e.out = strconv.AppendUint(e.out, id, 10)
	e.from = to
	return nil
}

// merges reports whether the end of the field read last and a terminator behind it would be read as
// a terminator that begins earlier.
func (e *editor) merges() bool {
	tail := e.buf[max(e.fieldStart, e.from, e.fieldEnd-maxSeparators)-e.base : e.fieldEnd-e.base]
	joined := append(append([]byte(nil), tail...), e.FieldTerm...)
	for i := range tail {
		rest := joined[i:]
		if bytes.HasPrefix(rest, e.FieldTerm) || len(e.lineTerm) > 0 && bytes.HasPrefix(rest, e.lineTerm) {
			return true
		}
	}
	return false
}

// missing puts ids behind a row that has n fields and lacks the rest.
func (e *editor) missing(n int) error {
	next := n
	for field := n; field < e.Fields; field++ {
		k := e.at[field]
		if k == Absent || e.strict() { // in strict mode the server refuses the row
			continue
		}
		if field != next || e.ragged || e.odd || e.loose == e.fieldEnd || field == n && e.merges() {
			return ErrShortLine
		}
		next++
		id, err := e.ids.Next(k)
		if err != nil {
			return err
		}
		e.flush(e.fieldEnd)
		e.out = append(e.out, e.FieldTerm...)
		e.out = strconv.AppendUint(e.out, id, 10)
	}
	return nil
}
