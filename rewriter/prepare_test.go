package rewriter

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// preparedRules are a table with two generated columns, of which the first feeds the last insert
// id.
var preparedRules = []*rule.Rule{{Column: "id"}, {Column: "id2"}}

// roles writes parameters as a word: v and b of the client, i, f and o hidden.
func roles(params []Parameter) string {
	var b strings.Builder
	for _, p := range params {
		b.WriteByte("vbifo"[p.Role])
		if p.Column > 0 {
			fmt.Fprint(&b, p.Column)
		}
	}
	return b.String()
}

func TestPrepare(t *testing.T) {
	table := &rule.Table{Columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}, {Name: "a"}, {Name: "b"}}}
	for _, tt := range []struct {
		rules     int
		in        string
		bulk      bool
		out, want string
	}{
		{1, "INSERT INTO t (a) VALUES (?)", false, "INSERT INTO t (a,`id`) VALUES (?,LAST_INSERT_ID(?))", "vf"},
		{1, "INSERT INTO t (a) VALUES (?)", true, "INSERT INTO t (a,`id`) VALUES (?,LAST_INSERT_ID(?)+?)", "vfo"},
		{1, "INSERT INTO t (a) VALUES (1)", false, "INSERT INTO t (a,`id`) VALUES (1,LAST_INSERT_ID(?))", "f"},
		{1, "INSERT INTO t (a) VALUES (?),('?'),(?)", false, "INSERT INTO t (a,`id`) VALUES (?,?),('?',?),(?,LAST_INSERT_ID(?)+?)", "viivfo"},
		{1, "INSERT INTO t (id,a) VALUES (NULL,?),(0,/*?*/?)", false, "INSERT INTO t (id,a) VALUES (?,?),(LAST_INSERT_ID(?)+?,/*?*/?)", "ivfov"},
		{1, "INSERT INTO t (id,a) VALUES (?,?),(?,?)", false, "INSERT INTO t (id,a) VALUES (?,?),(?,?)", "bvbv"},
		{1, "INSERT INTO t (id,a) VALUES (?,?),(NULL,?),(7,?)", true, "INSERT INTO t (id,a) VALUES (?,?),(?,?),(7,?)", "bvivv"},
		{1, "INSERT INTO t VALUES (?,?,?)", false, "INSERT INTO t VALUES (?,?,?)", "bvv"},
		{1, "INSERT INTO t SET a=?", false, "INSERT INTO t SET a=?,`id`=LAST_INSERT_ID(?)", "vf"},
		{1, "INSERT INTO t SET id=?,a=?", false, "INSERT INTO t SET id=?,a=?", "bv"},
		{1, "INSERT INTO t () VALUES ()", false, "INSERT INTO t (`id`) VALUES (LAST_INSERT_ID(?))", "f"},
		{
			1, "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE b=?", false,
			"INSERT INTO t (a,`id`) VALUES (?,?) ON DUPLICATE KEY UPDATE b=?,`t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`)", "viv",
		},
		{1, "INSERT IGNORE INTO t (a) VALUES (?)", true, "INSERT IGNORE INTO t (a,`id`) VALUES (?,?)", "vi"},
		{
			1, "INSERT INTO t (id,a) VALUES (NULL,LAST_INSERT_ID()),(900,?)", false,
			"INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),?),(?,900+0*LAST_INSERT_ID(?*(`id`<=>`id`)))", "ivf",
		},
		{1, "INSERT INTO t (a) VALUES (LAST_INSERT_ID())", true, "INSERT INTO t (a,`id`) VALUES (LAST_INSERT_ID(),?)", "i"},
		{2, "INSERT INTO t (a) VALUES (?),(?)", false, "INSERT INTO t (a,`id2`,`id`) VALUES (?,?,?),(?,?,LAST_INSERT_ID(?)+?)", "vi1ivi1fo"},
		{2, "INSERT INTO t (id2,a) VALUES (?,?)", false, "INSERT INTO t (id2,a,`id`) VALUES (?,?,LAST_INSERT_ID(?))", "b1vf"},
		{1, "INSERT INTO t (a) VALUES (?) RETURNING id", false, "INSERT INTO t (a,`id`) VALUES (?,LAST_INSERT_ID(?)) RETURNING id", "vf"},
	} {
		t.Run(tt.in, func(t *testing.T) {
			var p Plan
			s := &Statement{Text: []byte(tt.in), Rules: preparedRules[:tt.rules], Table: table, Prepared: true, Bulk: tt.bulk}
			assert.Must(t, p.Read(s))
			got := assert.Of(p.Prepare(s)).Must(t)
			assert.True(t, string(got.Text) == tt.out && roles(got.Parameters) == tt.want, "got  %s with %s\nwant %s with %s", got.Text, roles(got.Parameters), tt.out, tt.want)
			assert.Equal(t, "parameters of the client", got.Client, strings.Count(tt.want, "v")+strings.Count(tt.want, "b"))
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"INSERT INTO t (id,a) VALUES (?+1,2)":  "expression for column id",
		"INSERT INTO t (id,a) VALUES (@x,?)":   "variable for a generated column in a prepared statement",
		"INSERT INTO t (id,a) VALUES (?,id+1)": "value that reads a generated column before it",
		"INSERT INTO t (id,a) VALUES ((?),2)":  "expression for column id",
		"INSERT INTO t (id,a) VALUES (? ?,2)":  "expression for column id",
		"INSERT INTO t (id,a) SELECT ?, f(a)":  "INSERT ... SELECT that calls a function which may do more than read",
	} {
		var p Plan
		s := &Statement{Text: []byte(in), Rules: preparedRules[:1], Prepared: true}
		err := p.Read(s)
		if errors.Is(err, ErrNeedValues) {
			s.Values = make([]Value, len(p.Questions))
			err = p.Read(s)
		}
		form, ok := errors.AsType[*Unsupported](err)
		assert.True(t, ok && form.Form == want, "%s: %v, want %q", in, err, want)
	}
	var p Plan
	many := "INSERT INTO t (a) VALUES (?)" + strings.Repeat(",(?)", 40_000)
	s := &Statement{Text: []byte(many), Rules: preparedRules[:1], Prepared: true}
	assert.Must(t, p.Read(s))
	assert.Of(p.Prepare(s)).ErrorIs(t, "80,003 parameters", ErrTooManyParameters)
}

// What a literal stands for may depend on NO_AUTO_VALUE_ON_ZERO, which may change until the
// execution.
func TestPrepareZeroDoubt(t *testing.T) {
	for text, want := range map[string]bool{"0": true, "DEFAULT": true, "'0.4'": true, "7": false, "NULL": false, "?": false} {
		var p Plan
		s := &Statement{Text: []byte("INSERT INTO t (id) VALUES (" + text + ")"), Rules: preparedRules[:1], Prepared: true, Values: []Value{{Known: true}}}
		assert.Must(t, p.Read(s))
		made, err := p.Prepare(s)
		assert.True(t, err == nil && made.ZeroDoubt == want, "%s: %+v, %v", text, made, err)
	}
}

func TestBind(t *testing.T) {
	column := []rule.Column{{Name: "id", Max: 1<<63 - 1}, {Name: "id2", Max: 1<<63 - 1}}
	made, five, below, odd := Value{Generate: true}, Value{Known: true, Number: 5}, Value{Known: true, Number: 1<<64 - 5}, Value{}
	for _, tt := range []struct {
		in     string
		values []Value
		sets   int
		want   []Filled
	}{
		{"INSERT INTO t (id,a) VALUES (?,?)", []Value{made}, 1, []Filled{{Generated: 1, Bound: 1}}},
		{"INSERT INTO t (id,a) VALUES (?,?)", []Value{five}, 1, []Filled{{Explicit: 1, Bound: 1, Last: 5, HasLast: true, Greatest: 5}}},
		{"INSERT INTO t (id,a) VALUES (?,?)", []Value{below}, 1, []Filled{{Explicit: 1, Bound: 1, Last: 1<<64 - 5, HasLast: true, BelowZero: true}}},
		{"INSERT INTO t (id,a) VALUES (?,?)", []Value{odd}, 1, []Filled{{Explicit: 1, Bound: 1, GreatestUnknown: true}}},
		{"INSERT INTO t (id,a) VALUES (?,?),(NULL,?),(9,?)", []Value{five}, 1, []Filled{{Generated: 1, Explicit: 2, Bound: 1, Last: 9, HasLast: true, Greatest: 9}}},
		{"INSERT INTO t (id,a) VALUES (?,?),(?,?)", []Value{five, made}, 1, []Filled{{Generated: 1, Explicit: 1, Bound: 2, Greatest: 5}}},
		{"INSERT INTO t (id,a) VALUES (?,?)", []Value{five, made, made}, 3, []Filled{{Generated: 2, Explicit: 1, Bound: 1, Greatest: 5}}},
		{"INSERT INTO t (a) VALUES (?)", nil, 3, []Filled{{Generated: 3}}},
		{"INSERT INTO t (a,id2) VALUES (?,?)", []Value{five}, 1, []Filled{{Generated: 1}, {Explicit: 1, Bound: 1, Last: 5, HasLast: true, Greatest: 5}}},
	} {
		var p, bound Plan
		s := &Statement{Text: []byte(tt.in), Rules: preparedRules[:len(tt.want)], Prepared: true}
		assert.Must(t, p.Read(s))
		prepared := assert.Of(p.Prepare(s)).Must(t)
		for range 2 { // again, in the same memory
			prepared.Bind(&bound, tt.values, tt.sets, column)
			assert.True(t, reflect.DeepEqual(bound.Columns, tt.want) && bound.Rows == p.Rows*tt.sets,
				"%s with %+v: %d rows, %+v, want %+v", tt.in, tt.values, bound.Rows, bound.Columns, tt.want)
		}
	}
}

func TestDecimal(t *testing.T) {
	var d decimal
	for _, from := range []uint64{0, 1, 95, 999_990, 1<<63 - 5, 9_999_999_999_999_999_990, math.MaxUint64 - 3, 7, 7, 5} {
		for id := from; id >= from && id < from+30; id++ {
			assert.MustEqual(t, fmt.Sprintf("%d becomes", id), string(d.append([]byte("x"), id)), "x"+strconv.FormatUint(id, 10))
		}
	}
}
