package decide

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// wideTexts are INSERTs into columns of wide ids and, in u, also of numbers.
var wideTexts = []string{
	"INSERT INTO t (a) VALUES (?)",
	"INSERT INTO t (pid, a) VALUES (?, ?), (NULL, 3), (f(?), ?)",
	"INSERT INTO u (a, pid) VALUES (?, ?), (?, NULL)",
	"INSERT INTO t (a) VALUES (1), (2)",
}

// preparedWide prepares one of wideTexts, for a column of text or of bytes.
func preparedWide(t testing.TB, text int, bytes, bulk bool) *protocol.Stmt {
	t.Helper()
	column := rule.Column{Name: "pid", Text: true, Length: 36}
	if bytes {
		column = rule.Column{Name: "pid", Text: true, Bytes: true, Length: 16, Padded: true}
	}
	rules, columns := []*rule.Rule{{Column: "pid", IDs: rule.UUID}}, []rule.Column{column}
	if text == 2 {
		number := rule.Column{Name: "id", Max: 1<<63 - 1}
		rules, columns = []*rule.Rule{{Column: "id"}, rules[0]}, []rule.Column{number, column}
	}
	var plan rewriter.Plan
	s := &rewriter.Statement{Text: []byte(wideTexts[text]), Rules: rules, Table: &rule.Table{Columns: append(columns, rule.Column{Name: "a"})}, Prepared: true, Bulk: bulk}
	if err := plan.Read(s); err != nil {
		t.Fatal(err)
	}
	made, err := plan.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	return withIDs(&filler{Plan: made, rules: rules, columns: columns, bound: boundIDs(made.Parameters)})
}

// wideValue is what the n-th id of a column is stored as in tests.
func wideValue(f *filler, column uint8, n int) []byte {
	return f.form(column).AppendValue(nil, [2]uint64{uint64(n + 1), uint64(n + 2)})
}

// spliceWide is splicing for such statements.
func spliceWide(t testing.TB, e *protocol.Stmt, payload []byte) (st *Statement, out []byte, err error) {
	t.Helper()
	st = heldExecution(e, payload)
	if err := st.Execution.read(&st.Command, &protocol.Snapshot{}, &Findings{}); err != nil {
		return st, nil, err
	}
	if err := st.Execution.judge(&protocol.Vars{Known: protocol.KnowAll}, &Part{}); err != nil {
		return st, nil, err
	}
	FillerOf(e).Plan.Bind(&st.Filled.plans[0], st.Execution.values, st.Execution.rows, FillerOf(e).columns)
	p := Part{}
	for k, rule := range FillerOf(e).rules {
		var ids []uint64
		for n := range st.Filled.plans[0].Columns[k].Generated {
			if ids = append(ids, uint64(n+1)); rule.IDs.Wide() {
				ids = append(ids, uint64(n+2))
			}
		}
		p.ids = append(p.ids, ids)
	}
	st.Filled.Parts = []Part{p}
	out, err = st.Execution.splice(&st.Command, 0)
	return st, out, err
}

// FuzzWideExecute: what an execution says of the client's own parameters arrives, and in the place
// of the others each id once, with the type that its column needs.
func FuzzWideExecute(f *testing.F) {
	head := "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	f.Add([]byte(head+"\x00\x01\xfd\x00\x01x"), byte(0), false)
	f.Add([]byte(head+"\x01\x01\xfd\x00\xfd\x00\xfd\x00\xfd\x00\x01x\x01y\x01z"), byte(1), true)
	f.Add([]byte(head+"\x00\x01\xfd\x00\xfc\x00\x03\x00\x01x\x01y\x01\x00\x00\x00"), byte(2), true)
	f.Fuzz(func(t *testing.T, payload []byte, text byte, columnOfBytes bool) {
		if len(payload) == 0 {
			return
		}
		payload[0] = mysql.COM_STMT_EXECUTE
		e := preparedWide(t, int(text)%len(wideTexts), columnOfBytes, false)
		st, out, err := spliceWide(t, e, bytes.Clone(payload))
		if err != nil {
			return
		}
		var got wire.Execute
		if err := got.Parse(out, 0, wire.Bound{Parameters: len(FillerOf(e).Plan.Parameters)}); err != nil {
			t.Fatalf("%x became %x, which is malformed", payload, out)
		}
		client, used := 0, 0
		for i, param := range FillerOf(e).Plan.Parameters {
			v, generated := got.Parameters[i], param.Role.Hidden()
			if !generated {
				own := st.Execution.One.Parameters[client]
				client++
				if param.Role == rewriter.RoleBound {
					generated = own.Null || byte(own.Type) == mysql.MYSQL_TYPE_NULL
				}
				if !generated {
					same(t, own, v)
				}
			}
			if generated && FillerOf(e).wide(param.Column) && param.Role != rewriter.RoleFirst && param.Role != rewriter.RoleOffset {
				checkWideID(t, FillerOf(e), param.Column, used, v)
				used++
			}
		}
		if last := len(FillerOf(e).rules) - 1; used != st.Filled.plans[0].Columns[last].Generated {
			t.Errorf("%d ids used of %d", used, st.Filled.plans[0].Columns[last].Generated)
		}
	})
}

func checkWideID(t *testing.T, f *filler, column uint8, n int, v wire.Parameter) {
	t.Helper()
	want := mysql.PutLengthEncodedString(wideValue(f, column, n))
	if v.Null || v.Type != f.idType(column) && !wire.IsText(byte(v.Type)) || !bytes.Equal(v.Value, want) || (v.Type == bytesType) != f.form(column).Binary() {
		t.Errorf("id %d is %+v, want %x", n, v, want)
	}
}

// FuzzWideBulk: the same of bulk executions, whose rows share the types of their parameters.
func FuzzWideBulk(f *testing.F) {
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\xfd\x00\x00\x01x\x01\x02\x03"), byte(0), false)
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\xfc\x00\xfd\x00\xfd\x00\xfd\x00\x00\x01x\x00\x01a\x00\x01b\x00\x01c\x01\x00\x01a\x00\x01b\x00\x01c"), byte(1), true)
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\xfd\x00\xfd\x00\xfd\x00\x00\x01x\x02\x00\x01y"), byte(2), false)
	f.Fuzz(func(t *testing.T, payload []byte, text byte, columnOfBytes bool) {
		if len(payload) == 0 {
			return
		}
		payload[0] = protocol.ComBulkExecute
		e := preparedWide(t, int(text)%len(wideTexts), columnOfBytes, true)
		st, out, err := spliceWide(t, e, bytes.Clone(payload))
		if err != nil {
			return
		}
		var got wire.Bulk
		if err := got.Parse(out, len(FillerOf(e).Plan.Parameters), nil); err != nil {
			t.Fatalf("%x became %x, which is malformed", payload, out)
		}
		var own []given
		st.Execution.many.Walk(func(_, param int, indicator byte, value []byte) {
			own = append(own, given{st.Execution.many.Types[param], indicator, value})
		})
		next, used := 0, 0
		rows, ok := got.Walk(func(_, i int, indicator byte, value []byte) {
			param := FillerOf(e).Plan.Parameters[i]
			generated := param.Role.Hidden()
			if !generated {
				generated = param.Role == rewriter.RoleBound && own[next].indicator != wire.IndicatorNone
				if !generated && (own[next].indicator != indicator || !bytes.Equal(own[next].value, value) || got.Types[i] != own[next].kind) {
					t.Errorf("value %+v became %x of type %d", own[next], value, got.Types[i])
				}
				next++
			}
			if generated && FillerOf(e).wide(param.Column) && param.Role != rewriter.RoleFirst && param.Role != rewriter.RoleOffset {
				kind := got.Types[i]
				if wire.IsBlob(byte(kind)) {
					kind = bytesType
				}
				checkWideID(t, FillerOf(e), param.Column, used, wire.Parameter{Type: kind, Null: indicator != 0, Value: value})
				used++
			}
		})
		if !ok || rows != st.Execution.rows || next != len(own) || used != st.Filled.plans[0].Columns[len(FillerOf(e).rules)-1].Generated {
			t.Errorf("%d rows, %v, of %d; %d ids", rows, ok, st.Execution.rows, used)
		}
	})
}

// TestWideSpliceTypes: a column of bytes gets no VAR_STRING, and rows that cannot share a type are
// refused.
func TestWideSpliceTypes(t *testing.T) {
	bulkHead := "\xfa\x01\x00\x00\x00\x80\x00"
	for _, tt := range []struct {
		kind    byte
		bytes   bool
		refused bool
	}{
		{mysql.MYSQL_TYPE_VAR_STRING, false, false},
		{mysql.MYSQL_TYPE_STRING, false, false},
		{mysql.MYSQL_TYPE_BLOB, false, true},
		{mysql.MYSQL_TYPE_VAR_STRING, true, true},
		{mysql.MYSQL_TYPE_BLOB, true, false},
		{mysql.MYSQL_TYPE_LONG_BLOB, true, false},
	} {
		e := preparedWide(t, 1, tt.bytes, true)
		types := fmt.Sprintf("%c\x00\xfd\x00\xfd\x00\xfd\x00", 'T')
		payload := []byte(bulkHead + types + "\x00\x01x\x00\x01a\x00\x01b\x00\x01c" + "\x01\x00\x01a\x00\x01b\x00\x01c")
		payload[len(bulkHead)] = tt.kind
		if _, _, err := spliceWide(t, e, payload); (err != nil) != tt.refused || err != nil && clienterr.From(err).Code != mysql.ER_NOT_SUPPORTED_YET {
			t.Errorf("type %d, bytes %v: %v", tt.kind, tt.bytes, err)
		}
	}
}
