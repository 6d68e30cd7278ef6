package decide

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// bindOwn adds the client's n-th parameter that is an id: its value, or the next id in the place of
// a value that generates. MySQL keeps a type for each parameter. For a value of another type it
// prepares the statement anew, under the sql_mode of then. So an id has the type of the value in
// whose place it stands; in the place of NULL, which fits any type, it has the one that is kept.
func (w *splicer) bindOwn(param rewriter.Parameter, v wire.Parameter, n int) {
	f := FillerOf(w.e)
	switch {
	case !w.x.values[n].Generate:
		w.x.params = append(w.x.params, v)
	case f.wide(param.Column), f.columns[param.Column].Text:
		w.bindNext(param)
	case v.Null:
		w.bindLike(param, mysql.MYSQL_TYPE_NULL, f.kept.of(f.bound[n].param))
	default:
		w.bindLike(param, byte(v.Type), valueAs(&v))
	}
}

// bindLike adds the next id in the place of a value of a kind. as is what the type counts as that
// fits there.
func (w *splicer) bindLike(param rewriter.Parameter, kind byte, as uint16) {
	const exact = 1 << 53 // up to which a DOUBLE has all whole numbers
	x, at, id := w.x, len(w.x.ids), w.next(param)
	t := uint16(kind)
	floating := kind == mysql.MYSQL_TYPE_FLOAT || kind == mysql.MYSQL_TYPE_DOUBLE
	switch {
	case floating && id < exact:
		t = uint16(mysql.MYSQL_TYPE_DOUBLE)
		x.ids = binary.LittleEndian.AppendUint64(x.ids, math.Float64bits(float64(id)))
	case floating, kind == mysql.MYSQL_TYPE_DECIMAL, kind == mysql.MYSQL_TYPE_NEWDECIMAL, wire.HoldsText(kind):
		if floating {
			t = uint16(mysql.MYSQL_TYPE_NEWDECIMAL)
		}
		x.ids = append(x.ids, mysql.PutLengthEncodedString(strconv.AppendUint(nil, id, 10))...)
	default:
		if t = as; t&^wire.Unsigned != integerType || id > math.MaxInt64 {
			t = w.derived(param, id)
		}
		x.ids = binary.LittleEndian.AppendUint64(x.ids, id)
	}
	x.params = append(x.params, wire.Parameter{Type: t, Value: x.ids[at:]})
}
