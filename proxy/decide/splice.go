package decide

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

func (x *execution) Write(s Carrier, st *Command) (payload []byte, made bool, err error) {
	s.Conversation().Addressed(x.e, st.Payload())
	if f := FillerOf(x.e); !s.Conversation().MariaDB && !x.bulk && len(f.bound) > 0 {
		f.kept.learn(x.e.Hidden.Derived(), f.Plan.Client)
		f.kept.take(x.One.Parameters)
	}
	payload, err = x.splice(st, s.Conversation().Caps)
	return payload, true, err
}

func (x *execution) Begin(Carrier, *Command) error {
	x.e.Long = protocol.LongData{}
	return nil
}

func (x *execution) ReplyHandler(st *Command, expected []protocol.Expect) protocol.ReplyHandler {
	if x.units != nil {
		x.units.Expects(expected, &x.plans[0])
	}
	st.reply = protocol.NewInsertReply(expected, st.Seq)
	st.reply.Units = x.units
	return st.reply
}

// splice writes the execution with its ids.
func (x *execution) splice(st *Command, caps uint64) ([]byte, error) {
	e := x.e
	w := splicer{x: x, e: e, ids: x.Parts[0].ids}
	out := append(slices.Grow(st.Out[:0], len(st.Prefix)+st.End+64), 0, 0, 0, 0)
	if x.bulk {
		types, err := w.types()
		if err != nil {
			return nil, err
		}
		w.dst = x.many.AppendHead(out, types)
		w.rows(types)
		st.Out = w.dst
		return st.Out[wire.HeaderLen:], nil
	}
	x.params, x.ids = x.params[:0], slices.Grow(x.ids[:0], 8*len(FillerOf(e).Plan.Parameters))
	client, bound := 0, 0
	for _, param := range FillerOf(e).Plan.Parameters {
		if param.Role.Hidden() {
			w.bindNext(param)
			continue
		}
		v := x.One.Parameters[client]
		if data, long := e.Long.IDs[client]; long {
			v = FillerOf(e).longID(param.Column, v.Type, data)
		}
		client++
		if param.Role == rewriter.RoleBound {
			w.bindOwn(param, v, bound)
			bound++
			continue
		}
		x.params = append(x.params, v)
	}
	x.params = append(x.params, x.One.Parameters[client:]...)
	st.Out = x.One.AppendExecute(out, caps, x.params)
	return st.Out[wire.HeaderLen:], nil
}

// splicer puts ids among the values of an execution.
type splicer struct {
	x    *execution
	e    *protocol.Stmt
	ids  [][]uint64 // by column
	used [rewriter.MaxColumns]int
	dst  []byte
}

// next returns the id that a parameter is.
func (w *splicer) next(param rewriter.Parameter) uint64 {
	ids := w.ids[param.Column]
	if param.Role == rewriter.RoleFirst {
		return ids[0]
	}
	id := ids[w.used[param.Column]]
	w.used[param.Column]++
	if param.Role == rewriter.RoleOffset {
		return id - ids[0]
	}
	return id
}

// bind adds the next id to the parameters of an execution.
func (w *splicer) bind(param rewriter.Parameter) {
	x := w.x
	at, id := len(x.ids), w.next(param)
	x.ids = binary.LittleEndian.AppendUint64(x.ids, id)
	x.params = append(x.params, wire.Parameter{Type: w.derived(param, id), Value: x.ids[at:]})
}

// derived returns the type that MySQL has given the parameter of an id at its PREPARE: for
// another one it prepares the statement anew, at each execution and under the sql_mode of then.
func (w *splicer) derived(param rewriter.Parameter, id uint64) uint16 {
	unsigned := param.Role == rewriter.RoleOffset || // beside LAST_INSERT_ID(), which is unsigned, while its argument is not
		param.Role != rewriter.RoleFirst && FillerOf(w.e).columns[param.Column].Unsigned
	if unsigned || id > math.MaxInt64 {
		return idType
	}
	return idType &^ wire.Unsigned
}

// types returns those of the parameters of a bulk execution, which are the same
// for all its rows: an id that some rows generate and others bring needs one for
// both.
func (w *splicer) types() ([]uint16, error) {
	x, f := w.x, FillerOf(w.e)
	types := make([]uint16, 0, len(f.Plan.Parameters))
	client, bound := 0, 0
	for _, param := range f.Plan.Parameters {
		if param.Role.Hidden() {
			types = append(types, f.idType(param.Column))
			continue
		}
		t := x.many.Types[client]
		client++
		if param.Role == rewriter.RoleBound {
			var err error
			shared := w.shared
			if f.wide(param.Column) {
				shared = w.sharedWide
			}
			if t, err = shared(t, bound, param.Column); err != nil {
				return nil, err
			}
			bound++
		}
		types = append(types, t)
	}
	return types, nil
}

// shared returns the type for all values of a bound id, the n-th of a row.
func (w *splicer) shared(t uint16, n int, column uint8) (uint16, error) {
	made, given := w.mixed(n)
	switch {
	case !made && byte(t) != mysql.MYSQL_TYPE_NULL:
		return t, nil
	case !given:
		return idType, nil
	}
	if isTime(byte(t)) { // NULL in some rows, DEFAULT in others
		return uint16(mysql.MYSQL_TYPE_VAR_STRING), nil
	}
	switch byte(t) {
	case mysql.MYSQL_TYPE_NULL, mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_YEAR, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONGLONG:
		if t&wire.Unsigned != 0 || slices.Max(w.ids[column]) <= math.MaxInt64 {
			return uint16(mysql.MYSQL_TYPE_LONGLONG) | t&wire.Unsigned, nil
		}
		return uint16(mysql.MYSQL_TYPE_VAR_STRING), nil
	case mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE:
		f := FillerOf(w.e)
		return 0, clienterr.Unsupported(f.rules[column], f.name, "ids of a floating-point type in a bulk execution of which other rows generate theirs")
	}
	return t, nil // a text, in which ids are digits
}

// mixed reports whether rows generate the n-th bound id of a row, and whether
// others bring it.
func (w *splicer) mixed(n int) (made, given bool) {
	for i := n; i < len(w.x.values); i += len(FillerOf(w.e).bound) {
		made, given = made || w.x.values[i].Generate, given || !w.x.values[i].Generate
	}
	return made, given
}

// rows writes the rows of a bulk execution.
func (w *splicer) rows(types []uint16) {
	x, params := w.x, FillerOf(w.e).Plan.Parameters
	at, bound, last := 0, 0, len(x.many.Types)-1
	hidden := func() {
		for ; at < len(params) && params[at].Role.Hidden(); at++ {
			w.valueNext(types[at], params[at])
		}
	}
	x.many.Walk(func(_, client int, indicator byte, value []byte) {
		hidden()
		param, t := params[at], types[at]
		at++
		switch {
		case param.Role != rewriter.RoleBound:
			w.dst = append(append(w.dst, indicator), value...)
		default:
			w.boundValue(param, t, x.values[bound], given{x.many.Types[client], indicator, value})
			bound++
		}
		if client == last {
			hidden()
			at = 0
			w.unit()
		}
	})
}

// unit notes the id that the result for the row just written shows: the last one
// generated in it.
func (w *splicer) unit() {
	u := w.x.units
	if u == nil {
		return
	}
	id := uint64(0)
	if n := w.used[0]; n > u.Used && !FillerOf(w.e).Plan.NoLastID {
		id, u.Used = w.ids[0][n-1], n
	}
	u.IDs = append(u.IDs, id)
}

// given is a value as the client's packet has it.
type given struct {
	kind      uint16
	indicator byte
	value     []byte
}

// boundValue writes an id that is bound, as type t.
func (w *splicer) boundValue(param rewriter.Parameter, t uint16, v rewriter.Value, g given) {
	switch {
	case v.Generate:
		w.valueNext(t, param)
	case g.indicator >= wire.IndicatorDefault: // under NO_AUTO_VALUE_ON_ZERO
		w.dst = append(append(w.dst, wire.IndicatorNone), wire.Zero(byte(t))...)
	case t == g.kind:
		w.dst = append(append(w.dst, g.indicator), g.value...)
	default:
		number, _ := (&wire.Parameter{Type: g.kind, Value: g.value}).Integer()
		if byte(t) == mysql.MYSQL_TYPE_LONGLONG {
			w.value(t, number)
			return
		}
		text := strconv.AppendInt(nil, int64(number), 10)
		w.dst = append(append(w.dst, wire.IndicatorNone), mysql.PutLengthEncodedString(text)...)
	}
}

// value writes a number as type t.
func (w *splicer) value(t uint16, number uint64) {
	w.dst = append(w.dst, wire.IndicatorNone)
	if byte(t) == mysql.MYSQL_TYPE_LONGLONG {
		w.dst = binary.LittleEndian.AppendUint64(w.dst, number)
		return
	}
	w.dst = append(w.dst, mysql.PutLengthEncodedString(strconv.AppendUint(nil, number, 10))...)
}
