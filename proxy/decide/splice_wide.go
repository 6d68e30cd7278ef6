package decide

import (
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// Ids that are no numbers are bound as text, which the server converts to the
// column's character set, or as BLOB, whose bytes it takes as they are: a
// VAR_STRING into a BINARY column would be converted to character_set_connection.
const (
	textType  = uint16(mysql.MYSQL_TYPE_VAR_STRING)
	bytesType = uint16(mysql.MYSQL_TYPE_BLOB)
)

// idType is the type that the ids of a column are bound with.
func (f *filler) idType(column uint8) uint16 {
	switch form := f.form(column); {
	case form.Binary():
		return bytesType
	case form.Wide():
		return textType
	}
	return idType
}

// longID is an id that was sent as long data, for a parameter of type t.
func (f *filler) longID(column uint8, t uint16, data []byte) wire.Parameter {
	v := longID(data)
	if f.wide(column) && (wire.IsText(byte(t)) || wire.IsBlob(byte(t))) {
		v.Type = t
	}
	return v
}

// appendNext appends the next id of a column that has wide ones, as the column
// stores it.
func (w *splicer) appendNext(dst []byte, column uint8) []byte {
	return FillerOf(w.e).form(column).AppendValue(dst, w.nextWide(column))
}

func (w *splicer) nextWide(column uint8) [2]uint64 {
	n := w.used[column]
	w.used[column]++
	return [2]uint64(w.ids[column][2*n : 2*n+2])
}

// appendSQL appends the next id as a literal.
func (w *splicer) appendSQL(dst []byte, param rewriter.Parameter) []byte {
	if !FillerOf(w.e).wide(param.Column) {
		return strconv.AppendUint(dst, w.next(param), 10)
	}
	return FillerOf(w.e).form(param.Column).AppendLiteral(dst, w.nextWide(param.Column))
}

// bindNext adds the next id to the parameters of an execution.
func (w *splicer) bindNext(param rewriter.Parameter) {
	if !FillerOf(w.e).wide(param.Column) {
		w.bind(param)
		return
	}
	var room [36]byte
	x, at, id := w.x, len(w.x.ids), w.appendNext(room[:0], param.Column)
	x.ids = append(append(x.ids, byte(len(id))), id...) // its length is below 251, which takes one byte
	x.params = append(x.params, wire.Parameter{Type: FillerOf(w.e).idType(param.Column), Value: x.ids[at:]})
}

// valueNext writes the next id of a row of a bulk execution, as type t.
func (w *splicer) valueNext(t uint16, param rewriter.Parameter) {
	if !FillerOf(w.e).wide(param.Column) {
		w.value(t, w.next(param))
		return
	}
	w.dst = append(w.dst, wire.IndicatorNone, 0)
	at := len(w.dst)
	w.dst = w.appendNext(w.dst, param.Column)
	w.dst[at-1] = byte(len(w.dst) - at)
}

// sharedWide is shared for ids that are no numbers. Those that rows bring must be
// of a type in which the server takes the generated ones for what they are.
func (w *splicer) sharedWide(t uint16, n int, column uint8) (uint16, error) {
	made, given := w.mixed(n)
	f := FillerOf(w.e)
	switch fits := wire.IsText(byte(t)); {
	case !made && byte(t) != mysql.MYSQL_TYPE_NULL:
		return t, nil
	case !given:
		return f.idType(column), nil
	case f.form(column).Binary() && wire.IsBlob(byte(t)), !f.form(column).Binary() && fits:
		return t, nil
	}
	return 0, clienterr.Unsupported(f.rules[column], f.name, "ids of this type in a bulk execution of which other rows generate theirs")
}
