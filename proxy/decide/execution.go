package decide

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// execution is the execution of a prepared INSERT that gets ids: one row of
// parameters, or, by COM_STMT_BULK_EXECUTE, several.
type execution struct {
	*filled
	e      *protocol.Stmt
	One    wire.Execute
	many   wire.Bulk
	bulk   bool
	rows   int              // of parameters
	size   int              // of a bulk execution with its ids, at most
	values []rewriter.Value // of bound ids, row by row
	keys   []wire.Parameter // that genes come from, row by row
	params []wire.Parameter // what is sent
	ids    []byte           // the values of ids in it
	units  *protocol.Units  // what the results for each row must show; nil: there are none
}

// idType is the type that ids are bound with, unsigned but for what [splicer.derived] says. Text
// would not do: MySQL takes LAST_INSERT_ID('9223372036854775814') for too large.
const idType = uint16(mysql.MYSQL_TYPE_LONGLONG) | wire.Unsigned

// read takes the packet apart.
func (x *execution) read(held *Command, now *protocol.Snapshot, found *Findings) error {
	x.bulk, x.rows, x.units = held.Prefix[0] == protocol.ComBulkExecute, 1, nil
	if x.bulk {
		return x.readBulk(held.Payload(), now, found)
	}
	e := x.e
	f := FillerOf(e)
	if err := x.One.Parse(held.Payload(), now.Caps, wire.Bound{Parameters: f.Plan.Client, Types: e.Types, Long: e.Long.Has}); err != nil {
		return clienterr.Packet(err, now.Mode.MariaDB, "mysqld_stmt_execute")
	}
	found.gives(e, &x.One, f.Plan.Client)
	for _, data := range e.Long.IDs {
		if len(data) > protocol.MaxLongID {
			return clienterr.LongID(f.rules[0], protocol.MaxLongID)
		}
	}
	return nil
}

// readBulk takes the packet of a bulk execution apart.
func (x *execution) readBulk(payload []byte, now *protocol.Snapshot, found *Findings) error {
	const command = "mysqld_stmt_bulk_execute"
	e := x.e
	n := FillerOf(e).Plan.Client
	switch {
	case n == 0:
		return clienterr.NoBulk()
	case e.Long.IDs != nil || e.Long.Sent != nil:
		return clienterr.Arguments(command)
	}
	err := x.many.Parse(payload, n, e.Types)
	switch {
	case x.many.Flags&^(wire.BulkTypes|wire.BulkUnitResults) != 0:
		return clienterr.NoBulk()
	case err != nil:
		return clienterr.Packet(err, now.Mode.MariaDB, command)
	}
	if x.many.Flags&wire.BulkUnitResults != 0 {
		x.units = &protocol.Units{}
	}
	if x.many.Typed {
		found.executed, found.typed, found.types = e, true, append(found.types[:0], x.many.Types...)
	}
	return x.countRows(len(payload), command)
}

// countRows counts the rows of a bulk execution whose packet has size bytes, and how large it is
// with its ids at most.
func (x *execution) countRows(size int, command string) error {
	f := FillerOf(x.e)
	id := 9 // bytes of an id, with its indicator
	if f.anyWide() {
		id = 1 + rule.LongestLiteral
	}
	nulls := 0
	rows, ok := x.many.Walk(func(_, param int, indicator byte, _ []byte) {
		if _, bound := f.boundID(param); bound && indicator != wire.IndicatorNone {
			nulls++
		}
	})
	if x.rows = rows; !ok || rows == 0 {
		return clienterr.Arguments(command)
	}
	x.size = size + id*(nulls+rows*(len(f.Plan.Parameters)-f.Plan.Client))
	return nil
}

// fits refuses a bulk execution that its ids make larger than the server takes,
// before any are drawn: a row may be one byte.
func (x *execution) fits(s *protocol.Vars) error {
	switch {
	case !x.bulk:
	case s.Known&protocol.KnowNumbers == 0:
		return NeedProbe{}
	case uint64(x.size) > s.MaxPacket:
		return clienterr.TooLarge(x.size, "max_allowed_packet", s.MaxPacket)
	}
	return nil
}

// judge finds out which of the bound ids of a part generate.
func (x *execution) judge(s *protocol.Vars, p *Part) error {
	f := FillerOf(x.e)
	x.values = x.values[:0]
	if len(f.bound) == 0 {
		return nil
	}
	doubt := false
	var refused error
	x.eachParameter(func(row, param int, v wire.Parameter) {
		b, ok := f.boundID(param)
		if !ok {
			return
		}
		if data, long := x.e.Long.IDs[param]; long {
			v = longID(data)
		}
		if isTime(byte(v.Type)) && !v.Null && !f.wide(b.column) {
			refused = clienterr.Unsupported(f.rules[b.column], f.name, "id of a date or time type")
			return
		}
		value, certain, ask := f.valueOf(b.column, &v, s, p, b.later || row > 0)
		if ask {
			refused = p.lacksEngine()
		}
		doubt = doubt || !certain
		x.values = append(x.values, value)
	})
	if doubt {
		return NeedProbe{}
	}
	return refused
}

// eachParameter calls take for each parameter of the client, row by row.
func (x *execution) eachParameter(take func(row, param int, v wire.Parameter)) {
	f := FillerOf(x.e)
	if !x.bulk {
		for i, v := range x.One.Parameters[:f.Plan.Client] {
			take(0, i, v)
		}
		return
	}
	x.many.Walk(func(row, param int, indicator byte, value []byte) {
		v := wire.Parameter{Type: x.many.Types[param], Null: indicator == wire.IndicatorNull, Value: value}
		if indicator >= wire.IndicatorDefault { // stores 0, which generates or not
			v.Type, v.Value = uint16(mysql.MYSQL_TYPE_TINY), []byte{0}
			b, ok := f.boundID(param)
			v.Null = ok && f.wide(b.column) // or generates in any case
		}
		take(row, param, v)
	})
}

// valueOf says what a bound id of a column is worth; later: it is of another row than the first.
// certain: it is known what that depends on. ask: but for the engine of the part's table.
func (f *filler) valueOf(column uint8, v *wire.Parameter, s *protocol.Vars, p *Part, later bool) (value rewriter.Value, certain, ask bool) {
	if f.wide(column) { // NULL alone generates
		return rewriter.Value{Generate: v.Null || byte(v.Type) == mysql.MYSQL_TYPE_NULL}, true, false
	}
	const settings = protocol.KnowZero | protocol.KnowStrict
	strict, ask := refusesText(s, p.Facts, f.Plan.Ignore, later)
	value, certain = idOf(v, f.columns[column], s, strict)
	if ask {
		other, _ := idOf(v, f.columns[column], s, !strict)
		ask = other != value
	}
	return value, certain || s.Known&settings == settings, ask
}

// isTime reports whether a type is one of dates or times. MySQL goes on to take
// a parameter for a date that was bound as one, also an id.
func isTime(kind byte) bool {
	return kind == mysql.MYSQL_TYPE_DATE || kind == mysql.MYSQL_TYPE_DATETIME || kind == mysql.MYSQL_TYPE_TIMESTAMP || kind == mysql.MYSQL_TYPE_TIME
}

// longID is an id that was sent as long data.
func longID(data []byte) wire.Parameter {
	return wire.Parameter{Type: uint16(mysql.MYSQL_TYPE_VAR_STRING), Value: mysql.PutLengthEncodedString(data)}
}

// idOf says what an AUTO_INCREMENT column makes of a bound value. strict: the server refuses text
// that is no number. certain: it does so in every sql_mode.
func idOf(p *wire.Parameter, column rule.Column, s *protocol.Vars, strict bool) (v rewriter.Value, certain bool) {
	kind := byte(p.Type)
	if p.Null || kind == mysql.MYSQL_TYPE_NULL {
		return rewriter.Value{Generate: true}, true
	}
	c := Cell{Value: catalog.Value{Kind: kind}, Column: column, Strict: strict}
	if number, ok := p.Integer(); ok {
		if number != 0 && (number <= math.MaxInt64 || p.Type&wire.Unsigned != 0) {
			return rewriter.Value{Known: true, Number: number}, true
		}
		c.Text = strconv.AppendInt(nil, int64(number), 10)
		return c.ID(s), false
	}
	inner, _ := p.Inner()
	switch kind {
	case mysql.MYSQL_TYPE_FLOAT:
		f := math.Float32frombits(binary.LittleEndian.Uint32(p.Value))
		c.Text = strconv.AppendFloat(nil, float64(f), 'g', -1, 64)
	case mysql.MYSQL_TYPE_DOUBLE:
		f := math.Float64frombits(binary.LittleEndian.Uint64(p.Value))
		c.Text = strconv.AppendFloat(nil, f, 'g', -1, 64)
	case mysql.MYSQL_TYPE_DECIMAL, mysql.MYSQL_TYPE_NEWDECIMAL:
		// Servers take the number in front, in every sql_mode.
		c.Kind, c.Text, c.Strict = mysql.MYSQL_TYPE_VAR_STRING, inner, false
	default:
		c.Kind, c.Text = mysql.MYSQL_TYPE_VAR_STRING, inner
	}
	if c.Text == nil {
		c.Text = []byte{}
	}
	return c.ID(s), false
}
