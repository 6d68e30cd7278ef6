package rewriter

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

var (
	byMod     = &rule.Rule{Schema: "shop", Table: "*", Column: "id", Gene: &rule.Gene{Column: "k", Bits: 8}}
	byCRC32   = &rule.Rule{Schema: "shop", Table: "*", Column: "id", Gene: &rule.Gene{Column: "k", Bits: 16, CRC32: true}}
	numberKey = &rule.Table{Columns: []rule.Column{{Name: "id"}, {Name: "k", Type: "BIGINT", Max: 1<<63 - 1}, {Name: "a"}}}
	textKey   = &rule.Table{Columns: []rule.Column{{Name: "id"}, {Name: "k", Type: "VARCHAR(20)", Text: true, Length: 20, Charset: "utf8mb4"}, {Name: "a"}}}
)

func crc(text string) uint16 { return uint16(crc32.ChecksumIEEE([]byte(text))) }

// readGenes returns the genes of the first column, or the error.
func readGenes(in string, m Mode, r *rule.Rule, table *rule.Table) ([]uint16, error) {
	var p Plan
	s := &Statement{Text: []byte(in), Mode: m, Rules: []*rule.Rule{r}, Table: table, UTF8: 4}
	if err := p.Read(s); err != nil {
		return nil, err
	}
	if n := p.Columns[0].Generated; len(p.Genes[0]) != n {
		return nil, fmt.Errorf("%d genes for %d ids", len(p.Genes[0]), n)
	}
	// But for the genes it is the plan of a rule without one.
	plain := *r
	plain.Gene = nil
	without := Plan{}
	if err := without.Read(&Statement{Text: s.Text, Mode: m, Rules: []*rule.Rule{&plain}, Table: table}); err != nil {
		return nil, fmt.Errorf("without a gene: %w", err)
	}
	if a, b := string(p.Append(nil, s.Text, planIDs(&p))), string(without.Append(nil, s.Text, planIDs(&without))); a != b {
		return nil, fmt.Errorf("%s; without a gene: %s", a, b)
	}
	return p.Genes[0], nil
}

func TestGenes(t *testing.T) {
	for _, tt := range []struct {
		in   string
		rule *rule.Rule
		want []uint16
	}{
		{"INSERT INTO t (k) VALUES (7)", byMod, []uint16{7}},
		{"INSERT INTO t (a,K) VALUES (1,7),(2,256),(3,'511'),(4,\"0\"),(5,00000000000000000000000000009)", byMod, []uint16{7, 0, 255, 0, 9}},
		{"INSERT INTO t (k,a) VALUES (9223372036854775807,1)", byMod, []uint16{255}},
		{"INSERT INTO t (shop.t.k,a) VALUES /*(*/ (/*)*/ 7 /*,*/,f(1,(2))) # 8", byMod, []uint16{7}},
		{"INSERT INTO t (a,k,id) VALUES ('x',7,NULL),(f(1),8,5),('y',9,0),(1,10,'0')", byMod, []uint16{7, 9, 10}},
		{"INSERT INTO t (id,k,a) VALUES (DEFAULT,7,NULL),(5,k+1,1),(0,8,1)", byMod, []uint16{7, 8}},
		{"INSERT INTO t VALUES (NULL,7,'x'),(1,NULL,'y'),(0,8,'z')", byMod, []uint16{7, 8}},
		{"INSERT INTO t (id,k) VALUES (5,-1)", byMod, nil},
		{"INSERT INTO t (id) VALUES (5)", byMod, nil},
		{"INSERT INTO t (id,k) VALUES (NULL,7),(NULL,300)", byMod, []uint16{7, 44}},
		{"INSERT INTO t (id,k,a) VALUES (NULL,7,LAST_INSERT_ID()),(900,NULL,1),(NULL,8,1)", byMod, []uint16{7, 8}},
		{"INSERT INTO t SET k=7", byMod, []uint16{7}},
		{"INSERT INTO t SET a=f(1,2),k:='300' , id=NULL", byMod, []uint16{44}},
		{"INSERT INTO t SET id=0,k=7,a=LAST_INSERT_ID()", byMod, []uint16{7}},
		{"INSERT INTO t SET id=9,k=-7", byMod, nil},
		{"REPLACE INTO t (k) VALUES (7)", byMod, []uint16{7}},
		{"INSERT IGNORE INTO t (k) VALUES (7),(8)", byMod, []uint16{7, 8}},
		{"INSERT INTO t (k) VALUES (7) AS n ON DUPLICATE KEY UPDATE k=n.k+1", byMod, []uint16{7}},
		{"INSERT INTO t (k,a) VALUES (7,1) ON DUPLICATE KEY UPDATE k=NULL", byMod, []uint16{7}},
		{"INSERT INTO t (k,a/*! ,id*/) VALUES (7,1/*! ,0*/)", byMod, []uint16{7}},
		{"INSERT INTO t (a,k) VALUES (1,/*!7*/)", byMod, []uint16{7}},
		{"INSERT INTO t (a,k) VALUES (1,/*!99999 8,*/7)", byMod, []uint16{7}},
		{"INSERT INTO t (k) VALUES ('x'),('it''s'),('a\\tb\\\\'),(\"y\"),('日本')", byCRC32, []uint16{crc("x"), crc("it's"), crc("a\tb\\"), crc("y"), crc("日本")}},
		{"INSERT INTO t (k) VALUES ('12345678901234567890')", byCRC32, []uint16{crc("12345678901234567890")}},
		{"INSERT INTO t (k) VALUES ('日日日日日日日日日日日日日日日日日日日日')", byCRC32, []uint16{crc(strings.Repeat("日", 20))}},
		{"INSERT INTO t (k) VALUES ('x ')", byCRC32, []uint16{crc("x ")}},
	} {
		table := numberKey
		if tt.rule == byCRC32 {
			table = textKey
		}
		got, err := readGenes(tt.in, Mode{Version: 90704}, tt.rule, table)
		assert.True(t, err == nil && slices.Equal(got, tt.want), "%s: %v, %v; want %v", tt.in, got, err, tt.want)
	}
	got, err := readGenes(`INSERT INTO t (k) VALUES ('a\n')`, Mode{NoBackslashEscapes: true}, byCRC32, textKey)
	assert.True(t, err == nil && got[0] == crc(`a\n`), "under NO_BACKSLASH_ESCAPES: %v, %v", got, err)
}

// What the column may store otherwise than it reads has no gene.
func TestGenesRefused(t *testing.T) {
	const number, text = "what is no plain whole number in column k", "" // with a text in its place some are another syntax
	tests := []struct {
		in   string
		rule *rule.Rule
		want string
	}{
		{"INSERT INTO t (a) VALUES (1)", byMod, "a row without column k"},
		{"INSERT INTO t () VALUES ()", byMod, "a row without column k"},
		{"INSERT INTO t VALUES ()", byMod, "a row without column k"},
		{"INSERT INTO t SET a=1", byMod, "a row without column k"},
		{"INSERT INTO t (k) SELECT 1", byMod, "INSERT ... SELECT into a table whose ids have a gene"},
		{"REPLACE INTO t (k) TABLE x", byMod, "REPLACE ... TABLE into a table whose ids have a gene"},
		{"INSERT INTO t (k) VALUES ('x')", &rule.Rule{Column: "id", Gene: &rule.Gene{Column: "id2", Bits: 1}}, "gene of column id2, which the table does not have"},
		{"INSERT INTO t (k) VALUES ('x')", &rule.Rule{Column: "id", Gene: &rule.Gene{Column: "id", Bits: 1}}, "gene of column id, which is generated itself"},
		{"INSERT INTO t (k) VALUES ('x')", &rule.Rule{Column: "id", Gene: &rule.Gene{Column: "ä", Bits: 1}}, "column name beyond ASCII"},
		{"INSERT INTO t (k) VALUES ('x')", &rule.Rule{Column: "id", Gene: &rule.Gene{Column: "a", Bits: 1}}, "gene of column a, which is no integer"},
		{"INSERT INTO t (k) VALUES ('x')", &rule.Rule{Column: "id", Gene: &rule.Gene{Column: "a", Bits: 1, CRC32: true}}, "gene of column a, which is no CHAR"},
		{"INSERT INTO t (k) VALUES (9223372036854775808)", byMod, "a number above what the column holds"},
		{"INSERT INTO t (k) VALUES (99999999999999999999)", byMod, number},
		{"INSERT INTO t (k) VALUES (7),(8),('9 ')", byMod, "a text that is no plain whole number in column k"},
		{"INSERT INTO t (k) VALUES (7)", byCRC32, "a number for a gene by crc32"},
		{"INSERT INTO t (k) VALUES ('123456789012345678901')", byCRC32, "a text longer than the column holds"},
		{"INSERT INTO t (k) VALUES ('\xff')", byCRC32, "characters beyond ASCII that may be stored as other bytes"},
	}
	for _, value := range []string{
		"NULL", "DEFAULT", "DEFAULT(k)", "-7", "+7", "7.4", "7.", ".7", "7e1", "0x07", "x'07'", "b'1'", "TRUE", "(7)", "7+0", "1 DIV 1", "@x", "f(7)", "_utf8'7'", "N'7'", "'7' '8'",
		"'7' COLLATE utf8mb4_bin", "a", "`a`", "(SELECT 7)", "\\N", "VALUES(k)", "DATE'2020-01-01'", "CAST(7 AS SIGNED)", "7 /*! +1 */", "- 7", "!7", "-- x\n 7+1",
	} {
		for _, form := range []string{"INSERT INTO t (k,a) VALUES (%s,1)", "INSERT INTO t VALUES (NULL,%s,1)", "INSERT INTO t SET k=%s", "INSERT INTO t (id,k) VALUES (NULL,%s)"} {
			in := fmt.Sprintf(form, value)
			tests = append(tests, struct {
				in   string
				rule *rule.Rule
				want string
			}{in, byMod, number}, struct {
				in   string
				rule *rule.Rule
				want string
			}{strings.ReplaceAll(strings.ReplaceAll(in, "'7'", "'x'"), "7", "'x'"), byCRC32, text})
		}
	}
	for _, tt := range tests {
		table := numberKey
		if tt.rule == byCRC32 {
			table = textKey
		}
		assert.Of(readGenes(tt.in, Mode{Version: 70000}, tt.rule, table)).Fails(t, tt.in, tt.want)
	}
}

// Where rows are of one shard, ON DUPLICATE KEY UPDATE gives no other key than the row's own.
func TestShardOfUpdate(t *testing.T) {
	guarded := *byMod
	guarded.Gene = &rule.Gene{Column: "k", Bits: 8, Shard: &rule.Shard{Bits: 1, Value: 0}}
	other := &rule.Rule{Column: "id2"}
	table := &rule.Table{Columns: append(slices.Clone(numberKey.Columns), rule.Column{Name: "id2"})}
	mysql, mariadb := Mode{Version: 90704}, Mode{Version: 101100, MariaDB: true}
	const insert, kept, changed = "INSERT INTO t (k,a) VALUES (8,1)", true, false
	for _, tt := range []struct {
		tail string
		mode Mode
		want bool
	}{
		{" ON DUPLICATE KEY UPDATE a=2", mysql, kept},
		{" ON DUPLICATE KEY UPDATE k=VALUES(k)", mysql, kept},
		{" ON DUPLICATE KEY UPDATE a=k+1, shop.t.`K` = values ( `t`.k ) ,a=3", mysql, kept},
		{" ON DUPLICATE KEY UPDATE k=VALUE(k)", mariadb, kept},
		{" ON DUPLICATE KEY UPDATE k=k", mysql, kept},
		{" AS n ON DUPLICATE KEY UPDATE k=n.k", mysql, kept},
		{" AS n(x,y) ON DUPLICATE KEY UPDATE k=VALUES(k);", mysql, kept},
		{" ON DUPLICATE KEY UPDATE k=VALUES(k) RETURNING id", mariadb, kept},
		{" ON DUPLICATE KEY UPDATE k=VALUE(k)", mysql, changed}, // a function that somebody stored
		{" ON DUPLICATE KEY UPDATE k=9", mysql, changed},
		{" ON DUPLICATE KEY UPDATE a=1,k=8", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=NULL", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=k+1", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=VALUES(k)+1", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=VALUES(k) /*!50000 +1*/", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=VALUES(a)", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=a", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=(k)", mysql, changed},
		{" ON DUPLICATE KEY UPDATE k=?", mysql, changed},
		{" AS n(a,k) ON DUPLICATE KEY UPDATE k=n.k", mysql, changed}, // what is to be a
		{" AS n(a,x) ON DUPLICATE KEY UPDATE k=k", mysql, changed},
	} {
		for name, rules := range map[string][]*rule.Rule{"guarded": {&guarded}, "behind another": {other, &guarded}, "unguarded": {byMod}} {
			var p Plan
			err := p.Read(&Statement{Text: []byte(insert + tt.tail), Mode: tt.mode, Rules: rules, Table: table, Prepared: true})
			want := tt.want || name == "unguarded"
			assert.True(t, (err == nil) == want && (err == nil || strings.Contains(err.Error(), "with a value for column k, which tells the shard")), "%s%s, %s: %v", insert, tt.tail, name, err)
		}
	}
}

func TestPreparedGenes(t *testing.T) {
	for _, tt := range []struct {
		in   string
		rule *rule.Rule
		want []RowGene
	}{
		{"INSERT INTO t (a,k) VALUES (?,?),(?,9),('?',?)", byMod, []RowGene{{ID: -1, Key: 1}, {ID: -1, Key: -1, Value: 9}, {ID: -1, Key: 3}}},
		{"INSERT INTO t (id,k) VALUES (?,?),(NULL,?),(5,?),(?,8)", byMod, []RowGene{{ID: 0, Key: 1}, {ID: -1, Key: 2}, {ID: 4, Key: -1, Value: 8}}},
		{"INSERT INTO t (k,id) VALUES (?,?)", byMod, []RowGene{{ID: 1, Key: 0}}},
		{"INSERT INTO t VALUES (NULL,?,?)", byMod, []RowGene{{ID: -1, Key: 0}}},
		{"INSERT INTO t SET a=?,k=?", byMod, []RowGene{{ID: -1, Key: 1}}},
		{"INSERT INTO t (k,a) VALUES ('x',?)", byCRC32, []RowGene{{ID: -1, Key: -1, Value: crc("x")}}},
		{"INSERT INTO t (k) VALUES (1),(?) ON DUPLICATE KEY UPDATE k=?", byMod, []RowGene{{ID: -1, Key: -1, Value: 1}, {ID: -1, Key: 0}}},
		{"INSERT INTO t (id,k) VALUES (5,?)", byMod, nil},
		{"INSERT INTO t (id,a) VALUES (5,?)", byMod, nil},
	} {
		table := numberKey
		if tt.rule == byCRC32 {
			table = textKey
		}
		var p Plan
		s := &Statement{Text: []byte(tt.in), Rules: []*rule.Rule{tt.rule}, Table: table, Prepared: true}
		assert.Must(t, p.Read(s), tt.in)
		made := assert.Of(p.Prepare(s)).Must(t, tt.in)
		for i := range made.Genes {
			made.Genes[i].mark, made.Genes[i].bound = 0, 0
		}
		assert.True(t, reflect.DeepEqual(made.Genes, tt.want), "%s: %+v, want %+v", tt.in, made.Genes, tt.want)
	}
	for _, in := range []string{"INSERT INTO t (k) VALUES (?+1)", "INSERT INTO t (k) VALUES (-?)", "INSERT INTO t (a) VALUES (?)", "INSERT INTO t (id,k) VALUES (?,NULL)", "INSERT INTO t (k) VALUES (:k)"} {
		var p Plan
		assert.Fails(t, in+" is prepared", p.Read(&Statement{Text: []byte(in), Rules: []*rule.Rule{byMod}, Table: numberKey, Prepared: true}), "")
	}
}

// Two rules may take their genes from one column, and a key may be a text of another rule's.
func TestGenesOfTwoRules(t *testing.T) {
	rules := []*rule.Rule{byMod, {Column: "id2", Gene: &rule.Gene{Column: "k", Bits: 2}}, {Column: "id3"}, {Column: "id4", Gene: &rule.Gene{Column: "name", Bits: 4, CRC32: true}}}
	table := &rule.Table{Columns: append(slices.Clone(numberKey.Columns), rule.Column{Name: "id2"}, rule.Column{Name: "id3"}, rule.Column{Name: "id4"}, rule.Column{Name: "name", Text: true, Length: 9, Charset: "ascii"})}
	var p Plan
	s := &Statement{Text: []byte("INSERT INTO t (name,id2,k) VALUES ('a',5,7),('b',NULL,9)"), Rules: rules, Table: table}
	assert.Must(t, p.Read(s))
	want := [][]uint16{{7, 9}, {1}, {}, {crc("a") & 15, crc("b") & 15}}
	assert.True(t, slices.EqualFunc(p.Genes, want, slices.Equal), "%v, want %v", p.Genes, want)
	if n := testing.AllocsPerRun(100, func() {
		assert.Must(t, p.Read(s))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
