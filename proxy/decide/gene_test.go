package decide

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

func number(kind byte, unsigned bool, v uint64) wire.Parameter {
	size := map[byte]int{mysql.MYSQL_TYPE_TINY: 1, mysql.MYSQL_TYPE_SHORT: 2, mysql.MYSQL_TYPE_LONG: 4, mysql.MYSQL_TYPE_LONGLONG: 8, mysql.MYSQL_TYPE_FLOAT: 4, mysql.MYSQL_TYPE_DOUBLE: 8}[kind]
	p := wire.Parameter{Type: uint16(kind), Value: binary.LittleEndian.AppendUint64(nil, v)[:size]}
	if unsigned {
		p.Type |= wire.Unsigned
	}
	return p
}

func text(kind byte, v string) wire.Parameter {
	return wire.Parameter{Type: uint16(kind), Value: mysql.PutLengthEncodedString([]byte(v))}
}

func TestGeneOfParameter(t *testing.T) {
	mod, crc := &rule.Gene{Column: "k", Bits: 16}, &rule.Gene{Column: "k", Bits: 16, CRC32: true}
	const refused = -1
	sum := func(s string) int { return int(crc32.ChecksumIEEE([]byte(s)) & 0xffff) }
	for name, tt := range map[string]struct {
		in       wire.Parameter
		mod, crc int
	}{
		"NULL by its flag":   {wire.Parameter{Type: uint16(mysql.MYSQL_TYPE_LONGLONG), Null: true}, refused, refused},
		"NULL by its type":   {wire.Parameter{Type: uint16(mysql.MYSQL_TYPE_NULL)}, refused, refused},
		"TINYINT":            {number(mysql.MYSQL_TYPE_TINY, false, 7), 7, refused},
		"TINYINT below zero": {number(mysql.MYSQL_TYPE_TINY, false, 255), refused, refused},
		"unsigned TINYINT":   {number(mysql.MYSQL_TYPE_TINY, true, 255), 255, refused},
		"SMALLINT":           {number(mysql.MYSQL_TYPE_SHORT, false, 300), 300, refused},
		"INT":                {number(mysql.MYSQL_TYPE_LONG, false, 65536+3), 3, refused},
		"INT below zero":     {number(mysql.MYSQL_TYPE_LONG, false, 0xffffffff), refused, refused},
		"BIGINT":             {number(mysql.MYSQL_TYPE_LONGLONG, false, 1<<62+9), 9, refused},
		"too large":          {number(mysql.MYSQL_TYPE_LONGLONG, true, 1<<63), refused, refused},
		"DOUBLE":             {number(mysql.MYSQL_TYPE_DOUBLE, false, math.Float64bits(70000)), 4464, refused},
		"DOUBLE, not whole":  {number(mysql.MYSQL_TYPE_DOUBLE, false, math.Float64bits(7.4)), refused, refused},
		"DOUBLE below zero":  {number(mysql.MYSQL_TYPE_DOUBLE, false, math.Float64bits(-7)), refused, refused},
		"DOUBLE, not exact":  {number(mysql.MYSQL_TYPE_DOUBLE, false, math.Float64bits(1e17)), refused, refused},
		"NaN":                {number(mysql.MYSQL_TYPE_DOUBLE, false, math.Float64bits(math.NaN())), refused, refused},
		"infinite":           {number(mysql.MYSQL_TYPE_DOUBLE, false, math.Float64bits(math.Inf(1))), refused, refused},
		"FLOAT":              {number(mysql.MYSQL_TYPE_FLOAT, false, uint64(math.Float32bits(7))), 7, refused},
		"DECIMAL":            {text(mysql.MYSQL_TYPE_NEWDECIMAL, "300"), 300, refused},
		"DECIMAL, not whole": {text(mysql.MYSQL_TYPE_NEWDECIMAL, "300.0"), refused, refused},
		"text":               {text(mysql.MYSQL_TYPE_VAR_STRING, "x"), refused, sum("x")},
		"text of digits":     {text(mysql.MYSQL_TYPE_STRING, "007"), 7, sum("007")},
		"text with a blank":  {text(mysql.MYSQL_TYPE_STRING, "7 "), refused, sum("7 ")},
		"no text":            {text(mysql.MYSQL_TYPE_STRING, ""), refused, refused},
		"BLOB":               {text(mysql.MYSQL_TYPE_BLOB, "grün"), refused, sum("grün")},
		"ENUM":               {text(mysql.MYSQL_TYPE_ENUM, "7"), refused, refused},
		"JSON":               {text(mysql.MYSQL_TYPE_JSON, "7"), refused, refused},
		"DATE":               {wire.Parameter{Type: uint16(mysql.MYSQL_TYPE_DATE), Value: []byte("\x04\xe6\x07\x01\x01")}, refused, refused},
	} {
		for _, one := range []struct {
			g    *rule.Gene
			key  rule.Column
			want int
		}{
			{mod, rule.Column{Type: "BIGINT", Max: math.MaxInt64}, tt.mod},
			{crc, rule.Column{Text: true, Length: 9, Charset: "utf8mb4"}, tt.crc},
		} {
			in := tt.in
			gene, why := geneOf(one.g, one.key, &in, 4)
			if (why != "") != (one.want == refused) || why == "" && int(gene) != one.want {
				t.Errorf("%s, %v: %d, %q; want %d", name, one.g, gene, why, one.want)
			}
		}
	}
}

// geneStatement prepares an INSERT whose ids have genes of column k.
func geneStatement(t *testing.T, sql string) *protocol.Stmt {
	t.Helper()
	rules := []*rule.Rule{{Schema: "shop", Table: "t", Column: "id", Source: "s", Gene: &rule.Gene{Column: "k", Bits: 8}}}
	table := &rule.Table{Columns: []rule.Column{{Name: "id", Max: math.MaxInt64}, {Name: "k", Type: "BIGINT", Max: math.MaxInt64}, {Name: "a"}}}
	var plan rewriter.Plan
	s := &rewriter.Statement{Text: []byte(sql), Rules: rules, Table: table, Prepared: true, Bulk: true}
	if err := plan.Read(s); err != nil {
		t.Fatal(err)
	}
	made, err := plan.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	return withIDs(&filler{
		Plan: made, rules: rules, columns: table.Columns[:1], bound: boundIDs(made.Parameters),
		keyed: keyParams(made.Genes), keys: keyColumns(table, rules),
	})
}

// genesOf decides on an execution.
func genesOf(e *protocol.Stmt, payload []byte, s *protocol.Vars) ([]uint16, error) {
	st := heldExecution(e, payload)
	if err := st.Execution.read(&st.Command, &protocol.Snapshot{}, &Findings{}); err != nil {
		return nil, err
	}
	if err := st.Execution.judge(s, &Part{Facts: &catalog.Table{}}); err != nil {
		return nil, err
	}
	var plan rewriter.Plan
	FillerOf(e).Plan.Bind(&plan, st.Execution.values, st.Execution.rows, FillerOf(e).columns)
	if err := st.Execution.genes(&plan, s); err != nil {
		return nil, err
	}
	if len(plan.Genes[0]) != plan.Columns[0].Generated {
		return plan.Genes[0], errors.New("as many genes as ids are needed")
	}
	return plan.Genes[0], nil
}

func TestGenesOfExecutions(t *testing.T) {
	known := &protocol.Vars{Known: protocol.KnowAll, Strict: true, UTF8: 4}
	execute := func(nulls byte, values ...byte) []byte { // of TINYINT parameters
		payload := append([]byte{mysql.COM_STMT_EXECUTE}, "\x01\x00\x00\x00\x00\x01\x00\x00\x00"...)
		payload = append(payload, nulls, 1)
		for range values {
			payload = append(payload, mysql.MYSQL_TYPE_TINY, 0)
		}
		for i, v := range values {
			if nulls>>i&1 == 0 {
				payload = append(payload, v)
			}
		}
		return payload
	}
	bulk := func(params int, values ...byte) []byte { // of pairs: an indicator, and a value where that is 0
		payload := append([]byte{protocol.ComBulkExecute}, "\x01\x00\x00\x00\x80\x00"...)
		for range params {
			payload = append(payload, mysql.MYSQL_TYPE_TINY, 0)
		}
		for i := 0; i < len(values); i += 2 {
			if payload = append(payload, values[i]); values[i] == wire.IndicatorNone {
				payload = append(payload, values[i+1])
			}
		}
		return payload
	}
	const null, dflt = wire.IndicatorNull, wire.IndicatorDefault
	for _, tt := range []struct {
		name, sql string
		payload   []byte
		want      []uint16
		fails     string
	}{
		{name: "keys of two rows", sql: "INSERT INTO t (a,k) VALUES (?,?),(?,9)", payload: execute(0, 1, 7, 2), want: []uint16{7, 9}},
		{name: "NULL", sql: "INSERT INTO t (a,k) VALUES (?,?)", payload: execute(2, 1, 0), fails: "NULL, DEFAULT or the like in column k, the gene of the id"},
		{name: "below zero", sql: "INSERT INTO t (k) VALUES (?)", payload: execute(0, 0xff), fails: "a number below zero in column k"},
		{name: "an explicit id", sql: "INSERT INTO t (id,k) VALUES (?,?),(?,8)", payload: execute(2, 5, 0, 0), want: []uint16{8}},
		{name: "ids that generate", sql: "INSERT INTO t (id,k) VALUES (?,?),(?,?),(5,?)", payload: execute(1, 0, 7, 0, 8, 9), want: []uint16{7, 8}},
		{name: "in bulk", sql: "INSERT INTO t (a,k) VALUES (?,?)", payload: bulk(2, null, 0, 0, 7, 0, 1, 0, 8), want: []uint16{7, 8}},
		{name: "in bulk, with ids", sql: "INSERT INTO t (id,k) VALUES (?,?)", payload: bulk(2, null, 0, 0, 7, 0, 5, null, 0, dflt, 0, 0, 9), want: []uint16{7, 9}},
		{name: "in bulk, of two tuples", sql: "INSERT INTO t (k) VALUES (?),(3)", payload: bulk(1, 0, 7, 0, 8), want: []uint16{7, 3, 8, 3}},
		{name: "in bulk, NULL", sql: "INSERT INTO t (k) VALUES (?)", payload: bulk(1, 0, 7, null, 0), fails: "NULL, DEFAULT or the like"},
		{name: "in bulk, DEFAULT", sql: "INSERT INTO t (k) VALUES (?)", payload: bulk(1, 0, 7, dflt, 0), fails: "NULL, DEFAULT or the like"},
	} {
		got, err := genesOf(geneStatement(t, tt.sql), tt.payload, known)
		switch {
		case tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
			t.Errorf("%s: %v, %v; want %q", tt.name, got, err, tt.fails)
		case tt.fails == "" && (err != nil || !slices.Equal(got, tt.want)):
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
	long := geneStatement(t, "INSERT INTO t (a,k) VALUES (?,?)")
	long.Long.AtServer(1)
	if _, err := genesOf(long, execute(0, 1, 7), known); err == nil || !strings.Contains(err.Error(), "long data") {
		t.Errorf("a key that is long data: %v", err)
	}
	byText := geneStatement(t, "INSERT INTO t (a,k) VALUES (?,?)")
	FillerOf(byText).rules[0].Gene.CRC32 = true
	if _, err := genesOf(byText, execute(0, 1, 7), &protocol.Vars{Known: protocol.KnowAll &^ protocol.KnowUTF8}); !errors.Is(err, NeedProbe{}) {
		t.Errorf("a text in a character set that is not known: %v", err)
	}
}

func TestAskForGenes(t *testing.T) {
	g := &rule.Gene{Bits: 3}
	ids := []uint64{100, 115, 119}
	p := Part{Rules: []*rule.Rule{{Column: "id", Gene: g}}, Name: rewriter.Name{Schema: []byte("shop"), Table: []byte("t")}, ids: [][]uint64{ids}, columns: make([]rule.Column, 1)}
	e := protocol.Expect{First: 100, Last: 119, Generated: 3}
	if got, want := storedSQL(&e, &p, []byte("`shop`.`t`"), []byte("`id`")), "SELECT MIN(`id`) FROM `shop`.`t` WHERE `id` IN (100,115,119)"; got != want {
		t.Errorf("asks %s, want %s", got, want)
	}
}

// FuzzGenes: whatever an execution brings, each id it gets has a gene, or it is refused.
func FuzzGenes(f *testing.F) {
	texts := []string{
		"INSERT INTO t (a,k) VALUES (?,?)", "INSERT INTO t (id,k) VALUES (?,?),(NULL,?),(5,?)", "INSERT INTO t (k) VALUES (?),(3)", "INSERT INTO t (k,id) VALUES (?,?)",
		"INSERT IGNORE INTO t VALUES (?,?,?)",
	}
	for i := range texts {
		f.Add(uint8(i), false, []byte("\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x01\x00\x01\x00\x07\x08"))
		f.Add(uint8(i), true, []byte("\x01\x00\x00\x00\x80\x00\x08\x00\xfd\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x0212\x01\x00\x013"))
		f.Add(uint8(i), false, []byte("\x01\x00\x00\x00\x00\x01\x00\x00\x00\x02\x01\x05\x00\x06\x00\x00\x00\x00\x00\x00\x00\x1c\x40"))
	}
	f.Fuzz(func(t *testing.T, n uint8, bulk bool, body []byte) {
		command := mysql.COM_STMT_EXECUTE
		if bulk {
			command = protocol.ComBulkExecute
		}
		e := geneStatement(t, texts[int(n)%len(texts)])
		FillerOf(e).rules[0].Gene.CRC32 = n&128 != 0
		FillerOf(e).keys[0].Length, FillerOf(e).keys[0].Charset = 9, "utf8mb4"
		genes, err := genesOf(e, append([]byte{byte(command)}, body...), &protocol.Vars{Known: protocol.KnowAll, UTF8: 4})
		if err != nil && strings.Contains(err.Error(), "as many genes as ids") {
			t.Fatalf("%v: %v", genes, err)
		}
		for _, gene := range genes {
			if gene > 255 {
				t.Fatalf("gene %d of 8 bits", gene)
			}
		}
	})
}
