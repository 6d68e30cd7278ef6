package grammar

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser/ast"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"

	"idproxy/integration/assert"
	"idproxy/rewriter"
	"idproxy/rule"
)

// geneSeeds are statements whose keys, the values of column a, are read.
var geneSeeds = []string{
	"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (b,a) VALUES ('x',7),(f(1,2),'300'),(',',18446744073709551615)", "INSERT INTO t SET b=1,a='x'",
	"INSERT INTO t VALUES (NULL,'it''s',(1,2)),(0,'a\\'\\\\b\\n\\%',\"x\"\"y\")", "INSERT INTO t (`a`) VALUES ('日本'),(\"x\"),('\\0\\Z\\x')",
	"REPLACE INTO t (id,a) VALUES (NULL,'a' 'b'),(DEFAULT,_utf8'x'),(0,N'x'),('0',x'41'),(NULL,-7),(NULL,+7),(NULL,7.0)",
	"INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE a=8", "INSERT INTO t (b,a)/*a*/VALUES(1/*,9*/,/*,8*/7)-- x", "INSERT INTO t (a) VALUES ('7') AS n",
}

// keyOf returns what TiDB reads for column a in each row, nil for what is no literal.
func keysOf(s *ast.InsertStmt, columns int) (keys []*driver.ValueExpr) {
	at := 1
	if len(s.Columns) > 0 {
		at = -1
		for i, c := range s.Columns {
			if c.Name.L == "a" {
				at = i
			}
		}
		columns = len(s.Columns)
	}
	for _, row := range s.Lists {
		var key *driver.ValueExpr
		if at >= 0 && len(row) == columns {
			key, _ = row[at].(*driver.ValueExpr)
		}
		keys = append(keys, key)
	}
	return keys
}

// checkGenes reads a statement, and reports whether its genes are those of the keys that TiDB
// reads.
func checkGenes(t *testing.T, text []byte, mode rewriter.Mode, crc bool) bool {
	t.Helper()
	if !utf8.Valid(text) {
		return false
	}
	r := &rule.Rule{Schema: "*", Table: "*", Column: "id", Gene: &rule.Gene{Column: "a", Bits: 16, CRC32: crc}}
	table := &rule.Table{Columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}, {Name: "a", Type: "UNSIGNED BIGINT", Max: 1<<64 - 1}, {Name: "b"}}}
	if crc {
		table.Columns[1] = rule.Column{Name: "a", Type: "VARCHAR", Text: true, Length: 1 << 20, Charset: "utf8mb4"}
	}
	var p rewriter.Plan
	s := &rewriter.Statement{Text: text, Mode: mode, Rules: []*rule.Rule{r}, Table: table, UTF8: 4}
	if p.Read(s) != nil || !plainText(s) || p.Columns[0].Generated != p.Rows { // which rows generate is FuzzReaders' matter
		return false
	}
	read, err := parse(string(text), mode)
	if err != nil || errors.Is(err, errUnread) || read.Select != nil {
		return false
	}
	keys := keysOf(read, len(table.Columns))
	assert.MustTrue(t, len(keys) == p.Rows, "%q: %d rows, and %d keys", text, p.Rows, len(keys))
	for i, key := range keys {
		assert.MustTrue(t, key != nil, "%q: row %d has a gene, and TiDB reads no literal", text, i)
		var want uint16
		var why string
		switch key.Kind() {
		case driver.KindInt64, driver.KindUint64:
			want, why = r.Gene.OfNumber(key.GetUint64(), table.Columns[1])
		case driver.KindString:
			want, why = r.Gene.OfText([]byte(key.GetString()), table.Columns[1], 4)
		default:
			why = "neither number nor text"
		}
		if why != "" || p.Genes[0][i] != want {
			t.Fatalf("%q: row %d has gene %d; TiDB reads %v: %d %s", text, i, p.Genes[0][i], key.GetValue(), want, why)
		}
	}
	return true
}

// FuzzGenes: the key that a gene is of is the one that TiDB's parser reads.
func FuzzGenes(f *testing.F) {
	for i, text := range append(geneSeeds, corpus...) {
		f.Add([]byte(text), uint8(i))
		f.Add([]byte(text), uint8(16|i))
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		mode := rewriter.Mode{ANSIQuotes: n&1 != 0, NoBackslashEscapes: n&2 != 0, MariaDB: n&4 != 0, Version: 90704}
		if mode.MariaDB {
			mode.Version = 101119
		}
		checkGenes(t, text, mode, n&16 != 0)
	})
}

// Most of the seeds are compared, or the fuzz target would show nothing.
func TestGenesAreCompared(t *testing.T) {
	compared := 0
	for _, text := range geneSeeds {
		for _, crc := range []bool{false, true} {
			if checkGenes(t, []byte(text), rewriter.Mode{Version: 90704}, crc) {
				compared++
			}
		}
	}
	assert.True(t, compared >= 7, "only %d of %d were", compared, 2*len(geneSeeds))
}
