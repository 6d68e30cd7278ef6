package decide

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// spliceTexts are INSERTs whose executions are spliced in tests; table t has columns id, a, id2, b.
var spliceTexts = []string{
	"INSERT INTO t (a) VALUES (?)",
	"INSERT INTO t (a, b) VALUES (?, 1), (?, ?), (3, ?)",
	"INSERT INTO t (id, a) VALUES (?, ?)",
	"INSERT INTO t (id, a) VALUES (?, ?), (NULL, ?), (?, ?), (7, ?)",
	"INSERT INTO t (a, id2) VALUES (?, ?), (?, 0)",
	"INSERT INTO t VALUES (?, ?, ?, ?)",
	"INSERT INTO t () VALUES ()",
	"INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = ?, b = ?",
	"INSERT IGNORE INTO t SET b = ?, id = ?",
	"INSERT INTO t (a) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
}

// preparedText prepares one of spliceTexts, for a session that executes in bulk or not.
func preparedText(t testing.TB, n int, bulk bool) *protocol.Stmt {
	t.Helper()
	rules := []*rule.Rule{{Schema: "shop", Table: "t", Column: "id", Source: "s"}, {Schema: "shop", Table: "t", Column: "id2", Source: "s"}}
	whole := rule.Column{Max: 1<<63 - 1}
	table := &rule.Table{}
	for _, name := range []string{"id", "a", "id2", "b"} {
		whole.Name = name
		table.Columns = append(table.Columns, whole)
	}
	var plan rewriter.Plan
	s := &rewriter.Statement{Text: []byte(spliceTexts[n]), Rules: rules, Table: table, Prepared: true, Bulk: bulk}
	if err := plan.Read(s); err != nil {
		t.Fatal(err)
	}
	made, err := plan.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	return withIDs(&filler{Plan: made, rules: rules, columns: []rule.Column{whole, whole}, bound: boundIDs(made.Parameters)})
}

// heldExecution is an execution of e that is decided on.
func heldExecution(e *protocol.Stmt, payload []byte) *Statement {
	st := &Statement{Command: Command{whole: payload, Prefix: payload[:1], Text: payload[1:]}}
	st.End, st.Filled.plans = len(payload)-1, make([]rewriter.Plan, 1)
	st.Execution.filled, st.Execution.e = &st.Filled, e
	return st
}

// splicing splices an execution of e, with ids from 7<<32 on in the first column and 8<<32 in the
// second. The error is what the client would get.
func splicing(t testing.TB, e *protocol.Stmt, payload []byte, caps uint64) (st *Statement, out []byte, err error) {
	t.Helper()
	st = heldExecution(e, payload)
	var found Findings
	if err := st.Execution.read(&st.Command, &protocol.Snapshot{Caps: caps}, &found); err != nil {
		return st, nil, err
	}
	found.Note(&protocol.Conn{})
	if err := st.Execution.judge(&protocol.Vars{Known: protocol.KnowAll}, &Part{}); err != nil {
		return st, nil, err
	}
	plan := &st.Filled.plans[0]
	FillerOf(e).Plan.Bind(plan, st.Execution.values, st.Execution.rows, FillerOf(e).columns)
	ids := make([][]uint64, 2)
	for k := range ids {
		for i := range plan.Columns[k].Generated {
			ids[k] = append(ids[k], uint64(7+k)<<32+uint64(i))
		}
	}
	st.Filled.Parts = []Part{{ids: ids}}
	out, err = st.Execution.splice(&st.Command, caps)
	return st, out, err
}

// le returns a number of n bytes as the protocol has it.
func le(v uint64, n int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:n] }

// typed returns the bytes of types.
func typed(types ...uint16) (b []byte) {
	for _, t := range types {
		b = binary.LittleEndian.AppendUint16(b, t)
	}
	return b
}

const (
	typeLong   = uint16(mysql.MYSQL_TYPE_LONG)
	typeString = uint16(mysql.MYSQL_TYPE_VAR_STRING)
	typeNull   = uint16(mysql.MYSQL_TYPE_NULL)
	signedType = idType &^ wire.Unsigned
)

func TestSplice(t *testing.T) {
	head, bulkHead := []byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"), []byte("\xfa\x01\x00\x00\x00\x80\x00")
	id := func(column, row uint64) []byte { return le((7+column)<<32+row, 8) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	withTypes := typed(typeString)
	attributes := uint64(mysql.CLIENT_QUERY_ATTRIBUTES)
	for _, tt := range []struct {
		name     string
		text     int
		caps     uint64
		in, want []byte
	}{
		{
			"id behind the client's value", 0, 0,
			join(head, []byte{0, 1}, withTypes, []byte("\x01x")),
			join(head, []byte{0, 1}, typed(typeString, signedType, signedType), []byte("\x01x"), id(1, 0), id(0, 0)),
		},
		{
			"NULL", 0, 0,
			join(head, []byte{1, 1}, withTypes),
			join(head, []byte{1, 1}, typed(typeString, signedType, signedType), id(1, 0), id(0, 0)),
		},
		{
			"attributes stay behind", 0, attributes,
			join(head, []byte{2, 2, 1}, typed(typeString), []byte{0}, typed(typeLong), []byte("\x01n"), []byte("\x01x")),
			join(head, []byte{4, 8, 1}, typed(typeString), []byte{0}, typed(signedType), []byte{0}, typed(signedType), []byte{0}, typed(typeLong), []byte("\x01n"), []byte("\x01x"), id(1, 0), id(0, 0)),
		},
		{
			"bound NULL and what is behind it", 2, 0,
			join(head, []byte{1, 1}, typed(typeNull, typeString), []byte("\x01x")),
			join(head, []byte{0, 1}, typed(signedType, typeString, signedType), id(0, 0), []byte("\x01x"), id(1, 0)),
		},
		{
			"bound 0", 2, 0,
			join(head, []byte{0, 1}, typed(typeLong, typeString), le(0, 4), []byte("\x01x")),
			join(head, []byte{0, 1}, typed(signedType, typeString, signedType), id(0, 0), []byte("\x01x"), id(1, 0)),
		},
		{
			"bound 0 of an unsigned type", 2, 0,
			join(head, []byte{0, 1}, typed(typeLong|wire.Unsigned, typeString), le(0, 4), []byte("\x01x")),
			join(head, []byte{0, 1}, typed(idType, typeString, signedType), id(0, 0), []byte("\x01x"), id(1, 0)),
		},
		{
			"bound 0 as text", 2, 0,
			join(head, []byte{0, 1}, typed(typeString, typeString), []byte("\x010\x01x")),
			join(head, []byte{0, 1}, typed(typeString, typeString, signedType), []byte("\x0b30064771072\x01x"), id(1, 0)),
		},
		{
			"bound 0 of a floating-point type", 2, 0,
			join(head, []byte{0, 1}, typed(uint16(mysql.MYSQL_TYPE_FLOAT), typeString), le(0, 4), []byte("\x01x")),
			join(head, []byte{0, 1}, typed(uint16(mysql.MYSQL_TYPE_DOUBLE), typeString, signedType), le(math.Float64bits(7<<32), 8), []byte("\x01x"), id(1, 0)),
		},
		{
			"bound 5", 2, 0,
			join(head, []byte{0, 1}, typed(typeLong, typeString), le(5, 4), []byte("\x01x")),
			join(head, []byte{0, 1}, typed(typeLong, typeString, signedType), le(5, 4), []byte("\x01x"), id(1, 0)),
		},
		{"nothing of the client's", 6, 0, head, join(head, []byte{0, 1}, typed(signedType, signedType), id(1, 0), id(0, 0))},
		{
			"nothing of the client's, with attributes", 6, attributes, head,
			join(head, []byte{2, 0, 1}, typed(signedType), []byte{0}, typed(signedType), []byte{0}, id(1, 0), id(0, 0)),
		},
		{
			"bulk of two rows", 0, wire.MariaDBStmtBulkOperations,
			join(bulkHead, withTypes, []byte("\x00\x01x"), []byte{wire.IndicatorDefault}),
			join(bulkHead, typed(typeString, idType, idType, idType),
				[]byte("\x00\x01x"), []byte{0}, id(1, 0), []byte{0}, id(0, 0), []byte{0}, le(0, 8),
				[]byte{wire.IndicatorDefault}, []byte{0}, id(1, 1), []byte{0}, id(0, 0), []byte{0}, le(1, 8)),
		},
		{
			"bulk with ids of both kinds", 2, wire.MariaDBStmtBulkOperations,
			join(bulkHead, typed(typeLong, typeString), []byte{0}, le(5, 4), []byte{1}, []byte{wire.IndicatorNull}, []byte{1}),
			join(bulkHead, typed(uint16(mysql.MYSQL_TYPE_LONGLONG), typeString, idType),
				[]byte{0}, le(5, 8), []byte{1}, []byte{0}, id(1, 0), []byte{0}, id(0, 0), []byte{1}, []byte{0}, id(1, 1)),
		},
		{
			"bulk with ids of both kinds as text", 2, wire.MariaDBStmtBulkOperations,
			join(bulkHead, typed(typeString, typeString), []byte("\x00\x015"), []byte{1}, []byte("\x00\x010"), []byte{1}),
			join(bulkHead, typed(typeString, typeString, idType),
				[]byte("\x00\x015"), []byte{1}, []byte{0}, id(1, 0), []byte("\x00\x0b30064771072"), []byte{1}, []byte{0}, id(1, 1)),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got, err := splicing(t, preparedText(t, tt.text, tt.caps&wire.MariaDBStmtBulkOperations != 0), tt.in, tt.caps)
			if err != nil || !bytes.Equal(got, tt.want) {
				t.Errorf("%v\ngot  %x\nwant %x", err, got, tt.want)
			}
		})
	}
}

// DEFAULT for an id stores 0 under NO_AUTO_VALUE_ON_ZERO: a 0 of the type that the rows have.
func TestSpliceDefaultOfEveryType(t *testing.T) {
	for kind, zero := range map[byte]string{
		mysql.MYSQL_TYPE_TINY: "\x00", mysql.MYSQL_TYPE_SHORT: "\x00\x00", mysql.MYSQL_TYPE_LONG: "\x00\x00\x00\x00",
		mysql.MYSQL_TYPE_DOUBLE: "\x00\x00\x00\x00\x00\x00\x00\x00", mysql.MYSQL_TYPE_DATETIME: "\x00", mysql.MYSQL_TYPE_STRING: "\x010",
	} {
		e := preparedText(t, 2, true)
		st := heldExecution(e, []byte("\xfa\x01\x00\x00\x00\x80\x00"+string(typed(uint16(kind), typeNull))+"\x02\x01"))
		st.Filled.Parts = []Part{{ids: make([][]uint64, 2)}}
		if err := st.Execution.read(&st.Command, &protocol.Snapshot{Caps: wire.MariaDBStmtBulkOperations}, &Findings{}); err != nil {
			t.Fatal(err)
		}
		if err := st.Execution.judge(&protocol.Vars{Known: protocol.KnowAll, Mode: rewriter.Mode{NoAutoValueOnZero: true}}, &Part{}); err != nil {
			t.Fatal(err)
		}
		st.Filled.Parts[0].ids[1] = []uint64{7}
		got, err := st.Execution.splice(&st.Command, wire.MariaDBStmtBulkOperations)
		want := string(typed(uint16(kind), typeNull, idType)) + "\x00" + zero + "\x01" + "\x00\x07\x00\x00\x00\x00\x00\x00\x00"
		if err != nil || string(got[7:]) != want {
			t.Errorf("type %d: %v\ngot  %x\nwant %x", kind, err, got[7:], want)
		}
	}
}

// Types that an execution does not bring are those of the one before.
func TestSpliceRemembersTypes(t *testing.T) {
	e := preparedText(t, 0, false)
	head := "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	if _, _, err := splicing(t, e, []byte(head+"\x00\x00\x01x"), 0); err == nil {
		t.Error("a value without a type was taken")
	}
	if _, _, err := splicing(t, e, []byte(head+"\x01\x00"), 0); err != nil {
		t.Errorf("NULL without a type: %v", err)
	}
	if _, _, err := splicing(t, e, []byte(head+"\x00\x01\xfd\x00\x01x"), 0); err != nil {
		t.Fatal(err)
	}
	_, got, err := splicing(t, e, []byte(head+"\x00\x00\x02yz"), 0)
	if err != nil || !bytes.Contains(got, []byte("\xfd\x00\x08\x00\x08\x00\x02yz")) {
		t.Errorf("%v: %x", err, got)
	}
}

// An id beyond what a DOUBLE holds is a DECIMAL in its place. NULL has the type of integers that is
// kept.
func TestBindLike(t *testing.T) {
	const double = uint16(mysql.MYSQL_TYPE_DOUBLE)
	for _, tt := range []struct {
		bound, integer uint16
		id             uint64
		kind           uint16
		value          string
	}{
		{double, 0, 1<<53 - 1, double, string(le(math.Float64bits(1<<53-1), 8))},
		{double, 0, 1<<53 + 1, uint16(mysql.MYSQL_TYPE_NEWDECIMAL), "\x109007199254740993"},
		{typeNull, 0, 9, signedType, string(le(9, 8))},
		{typeNull, idType, 9, idType, string(le(9, 8))},
		{typeNull, signedType, 1 << 63, idType, string(le(1<<63, 8))},
		{uint16(mysql.MYSQL_TYPE_JSON), 0, 9, signedType, string(le(9, 8))},
	} {
		x := &execution{}
		w := splicer{x: x, e: preparedText(t, 2, false), ids: [][]uint64{{tt.id}}}
		w.bindLike(rewriter.Parameter{Role: rewriter.RoleBound}, byte(tt.bound), tt.integer)
		if v := x.params[0]; v.Type != tt.kind || string(v.Value) != tt.value {
			t.Errorf("%+v: %+v", tt, v)
		}
	}
}

// FuzzExecute: whatever an execution says of the client's own parameters and attributes arrives,
// and ids nowhere else than in theirs.
func FuzzExecute(f *testing.F) {
	head := "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	f.Add([]byte(head+"\x00\x01\xfd\x00\x01x"), byte(0), false)
	f.Add([]byte(head+"\x00\x01\x08\x00\x06\x00\x01\x00\x00\x00\x00\x00\x00\x00"), byte(2), false)
	f.Add([]byte(head+"\x01\x00\x01\xfd\x00\x00\x01x"), byte(0), true)
	f.Add([]byte(head+"\x00\x01\x05\x00\x0c\x00\x0b\x00\xf6\x00"+"12345678"+"\x04\xe9\x07\x01\x02\x00\x0212"), byte(5), false)
	f.Fuzz(func(t *testing.T, payload []byte, text byte, attributes bool) {
		if len(payload) == 0 {
			return
		}
		payload[0] = mysql.COM_STMT_EXECUTE
		caps := uint64(0)
		if attributes {
			caps = uint64(mysql.CLIENT_QUERY_ATTRIBUTES)
		}
		e := preparedText(t, int(text)%len(spliceTexts), false)
		st, out, err := splicing(t, e, bytes.Clone(payload), caps)
		if err != nil {
			return
		}
		var got wire.Execute
		if err := got.Parse(out, caps, wire.Bound{Parameters: len(FillerOf(e).Plan.Parameters)}); err != nil {
			t.Fatalf("%x became %x, which is malformed", payload, out)
		}
		before, ids := st.Execution.One, st.Filled.Parts[0].ids
		if !bytes.Equal(before.Head, got.Head) || !bytes.Equal(before.Tail, got.Tail) {
			t.Errorf("%x: head or tail changed: %x", payload, out)
		}
		client, bound, used := 0, 0, [2]int{}
		for i, param := range FillerOf(e).Plan.Parameters {
			v := got.Parameters[i]
			if param.Role.Hidden() {
				checkID(t, param, v, ids, &used)
				continue
			}
			own := before.Parameters[client]
			client++
			if param.Role == rewriter.RoleBound {
				bound++
			}
			if param.Role != rewriter.RoleBound || !st.Execution.values[bound-1].Generate {
				same(t, own, v)
				continue
			}
			checkBound(t, rewriter.Value{Generate: true}, given{}, given{kind: v.Type, value: v.Value}, ids[param.Column], &used[param.Column])
		}
		for i, own := range before.Parameters[client:] {
			same(t, own, got.Parameters[len(FillerOf(e).Plan.Parameters)+i])
		}
		if used[0] < len(ids[0]) && FillerOf(e).Plan.Parameters[len(FillerOf(e).Plan.Parameters)-1].Role != rewriter.RoleFirst || used[1] != len(ids[1]) {
			t.Errorf("%x: %v of %v ids used", payload, used, ids)
		}
	})
}

func same(t *testing.T, own, v wire.Parameter) {
	t.Helper()
	if own.Type != v.Type || own.Null != v.Null || !bytes.Equal(own.Value, v.Value) || len(own.Name) > 1 && !bytes.Equal(own.Name, v.Name) {
		t.Errorf("parameter %+v became %+v", own, v)
	}
}

// checkID checks a parameter that is an id, the next of its column.
func checkID(t *testing.T, param rewriter.Parameter, v wire.Parameter, ids [][]uint64, used *[2]int) {
	t.Helper()
	k := param.Column
	var want uint64
	switch param.Role {
	case rewriter.RoleFirst:
		want = ids[0][0]
	case rewriter.RoleOffset:
		want = ids[0][used[0]] - ids[0][0]
		used[0]++
	default:
		want = ids[k][used[k]]
		used[k]++
	}
	if v.Null || v.Type&^wire.Unsigned != signedType || !bytes.Equal(v.Value, le(want, 8)) {
		t.Errorf("id %d is %+v", want, v)
	}
}

// FuzzBulk: the same of bulk executions.
func FuzzBulk(f *testing.F) {
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\xfd\x00\x00\x01x\x01\x02\x03"), byte(0))
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\x08\x00\xfd\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01\x01\x01\x02\x03"), byte(2))
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\x03\x80\xfd\x00\x00\x05\x00\x00\x00\x01\x01\x01"), byte(2))
	f.Fuzz(func(t *testing.T, payload []byte, text byte) {
		if len(payload) == 0 {
			return
		}
		payload[0] = protocol.ComBulkExecute
		e := preparedText(t, int(text)%len(spliceTexts), true)
		st, out, err := splicing(t, e, bytes.Clone(payload), 0)
		if err != nil {
			return
		}
		var got wire.Bulk
		if err := got.Parse(out, len(FillerOf(e).Plan.Parameters), nil); err != nil {
			t.Fatalf("%x became %x, which is malformed", payload, out)
		}
		x := &st.Execution
		var own []given
		x.many.Walk(func(_, param int, indicator byte, value []byte) {
			own = append(own, given{x.many.Types[param], indicator, value})
		})
		used := [2]int{}
		next, bound := 0, 0
		rows, ok := got.Walk(func(_, i int, indicator byte, value []byte) {
			param, v := FillerOf(e).Plan.Parameters[i], given{got.Types[i], indicator, value}
			switch {
			case param.Role.Hidden():
				checkID(t, param, wire.Parameter{Type: v.kind, Null: indicator != 0, Value: value}, st.Filled.Parts[0].ids, &used)
				return
			case param.Role == rewriter.RoleValue:
				if v.kind != own[next].kind || v.indicator != own[next].indicator || !bytes.Equal(v.value, own[next].value) {
					t.Errorf("value %+v became %+v", own[next], v)
				}
			default:
				checkBound(t, x.values[bound], own[next], v, st.Filled.Parts[0].ids[param.Column], &used[param.Column])
				bound++
			}
			next++
		})
		if !ok || rows != x.rows || next != len(own) {
			t.Errorf("%d rows, %v, of %d", rows, ok, x.rows)
		}
	})
}

// checkBound checks a bound id of a bulk execution, which may have another type than the client
// gave it.
func checkBound(t *testing.T, value rewriter.Value, own, v given, ids []uint64, used *int) {
	t.Helper()
	number := func(g given) (rewriter.Value, bool) {
		p := wire.Parameter{Type: g.kind, Null: g.indicator == wire.IndicatorNull, Value: g.value}
		return idOf(&p, rule.Column{Max: 1<<63 - 1}, &protocol.Vars{Known: protocol.KnowAll, Mode: rewriter.Mode{NoAutoValueOnZero: true}}, true)
	}
	got, _ := number(v)
	if value.Generate {
		want := rewriter.Value{Known: true, Number: ids[*used]}
		*used++
		if got != want {
			t.Errorf("id is %+v (%+v), want %+v", got, v, want)
		}
		return
	}
	if was, _ := number(own); was != got {
		t.Errorf("bound id %+v became %+v", own, v)
	}
}

// A text that is no number generates where the server makes 0 of it: strict modes refuse it, but
// not under IGNORE, and not in a DECIMAL.
func TestJudgeStrict(t *testing.T) {
	const decimal = uint16(mysql.MYSQL_TYPE_NEWDECIMAL)
	for _, tt := range []struct {
		text int
		kind uint16
		want bool
	}{
		{2, typeString, false},
		{8, typeString, true},
		{2, decimal, true},
	} {
		e := preparedText(t, tt.text, false)
		x := &execution{e: e, rows: 1}
		x.One.Parameters = []wire.Parameter{{Type: tt.kind, Value: []byte("\x02x0")}, {Type: tt.kind, Value: []byte("\x02x0")}}
		if err := x.judge(&protocol.Vars{Known: protocol.KnowAll, Strict: true}, &Part{}); err != nil {
			t.Fatal(err)
		}
		if got := x.values[0].Generate; got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// An execution that is refused keeps nothing of its packet.
func TestExecutionErrors(t *testing.T) {
	malformed := clienterr.Packet(wire.ErrMalformed, false, "")
	for in, want := range map[string]error{
		"\x17\x01\x00": malformed,
		"\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00":                      malformed,
		"\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\xfd\x00\x09x": malformed,
		"\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01x":         clienterr.Arguments("mysqld_stmt_execute"),
		"\xfa\x01\x00\x00\x00\x80":                                      malformed,
		"\xfa\x01\x00\x00\x00\x80\x00\xfd":                              malformed,
		"\xfa\x01\x00\x00\x00\x80\x00\xfd\x00":                          clienterr.Arguments("mysqld_stmt_bulk_execute"),
		"\xfa\x01\x00\x00\x00\x80\x00\xfd\x00\x00\x01x\x04":             clienterr.Arguments("mysqld_stmt_bulk_execute"),
		"\xfa\x01\x00\x00\x00\x00\x00\x00\x01x":                         clienterr.Arguments("mysqld_stmt_bulk_execute"),
		"\xfa\x01\x00\x00\x00\x81\x00\xfd\x00\x00\x01x":                 clienterr.NoBulk(),
	} {
		_, _, err := splicing(t, preparedText(t, 0, true), []byte(in), 0)
		got, ok := errors.AsType[*mysql.MyError](err)
		if w := want.(*mysql.MyError); !ok || *got != *w {
			t.Errorf("%x: %v, want %v", in, err, want)
		}
	}
	dated := []byte("\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x0a\x00\xfd\x00\x04\xe8\x07\x01\x01\x01x")
	if _, _, err := splicing(t, preparedText(t, 2, false), dated, 0); clienterr.From(err).Code != mysql.ER_NOT_SUPPORTED_YET {
		t.Errorf("a date for an id: %v", err)
	}
	if _, _, err := splicing(t, preparedText(t, 6, true), []byte("\xfa\x01\x00\x00\x00\x80\x00"), 0); clienterr.From(err).Code != mysql.ER_UNSUPPORTED_PS {
		t.Errorf("bulk without parameters: %v", err)
	}
}

// The packets of a reply to PREPARE that the client must not see are those of hidden parameters.
func TestPrepareReplyHidden(t *testing.T) {
	for _, tt := range []struct {
		text           int
		defined, ended bool
		packets        int
		want           []int // hidden ones
	}{
		{0, true, true, 5, []int{1, 2}}, // 3 parameters, EOF, and one of a column
		{6, true, true, 4, []int{0, 1, 2}},
		{6, true, false, 4, []int{0, 1}}, // 2 parameters and those of columns
		{6, false, true, 2, []int{0}},
		{0, false, true, 2, nil},
		{2, true, true, 4, []int{2}},
	} {
		h := preparedText(t, tt.text, false).Hidden
		var got []int
		for n := range tt.packets {
			if h.Hides(n, tt.defined, tt.ended) {
				got = append(got, n)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", spliceTexts[tt.text], got, tt.want)
		}
	}
}
