package grammar

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"

	"idproxy/integration/assert"
	"idproxy/rewriter"
	"idproxy/rule"
)

// session makes what a statement is read by from a number: the mode, the rules, what the table is
// and what the server says of expressions.
type session struct {
	mode    rewriter.Mode
	rules   []*rule.Rule
	columns int
	seed    int

	prepared, bulk bool
}

func sessionOf(n uint16) session {
	bit := func(i int) bool { return n>>i&1 != 0 }
	s := session{seed: int(n >> 8), columns: int(n >> 10), prepared: bit(9), bulk: bit(8)}
	s.mode = rewriter.Mode{ANSIQuotes: bit(0), NoBackslashEscapes: bit(1), NoAutoValueOnZero: bit(2), MariaDB: bit(3), Version: 90704}
	if s.mode.MariaDB {
		s.mode.Version = 101119
	}
	if bit(4) && bit(5) {
		s.mode.Charset = rewriter.Charset(n>>12) % 5
	}
	s.rules = []*rule.Rule{{Schema: "*", Table: "*", Column: "id", Packet: bit(6) && bit(7)}}
	if bit(7) {
		s.rules = append(s.rules, &rule.Rule{Schema: "*", Table: "*", Column: "uid"})
	}
	if bit(4) != bit(5) { // as Match orders them: the last, or all
		s.rules[len(s.rules)-1].IDs = rule.UUID
		if bit(4) {
			s.rules[0].IDs = rule.UUID
		}
	}
	return s
}

// table returns one that fits the statement, if TiDB can read it.
func (s session) table(stmt *ast.InsertStmt) *rule.Table {
	n := s.columns%5 + 1
	if stmt != nil && len(stmt.Lists) > 0 && len(stmt.Lists[0]) > 0 && s.columns%7 > 0 {
		n = len(stmt.Lists[0])
	}
	t := &rule.Table{}
	for i := range n {
		t.Columns = append(t.Columns, rule.Column{Name: "c" + strings.Repeat("x", i), Max: 1<<63 - 1})
	}
	t.Columns[s.seed%n].Name = "ID"
	if i := (s.seed + 1) % n; n > 1 && len(s.rules) > 1 {
		t.Columns[i] = rule.Column{Name: "uid", Text: s.seed&1 != 0, Max: 1<<64 - 1}
	} else {
		t.Invisible = []rule.Column{{Name: "uid", Max: 1<<64 - 1}}
	}
	for _, columns := range [][]rule.Column{t.Columns, t.Invisible} {
		for i := range columns {
			if slices.ContainsFunc(s.rules, func(r *rule.Rule) bool { return r.IDs.Wide() && strings.EqualFold(r.Column, columns[i].Name) }) {
				columns[i].Text, columns[i].Bytes, columns[i].Length = true, s.seed&2 != 0, 40
			}
		}
	}
	return t
}

func (s session) values(n int) []rewriter.Value {
	values := make([]rewriter.Value, n)
	for i := range values {
		values[i] = rewriter.Value{Generate: s.seed>>(i%8)&1 != 0, Known: true, Number: uint64(i)}
	}
	return values
}

// FuzzReaders: whatever both the scanner and TiDB's parser take for an INSERT they read alike.
func FuzzReaders(f *testing.F) {
	for i, text := range corpus {
		f.Add([]byte(text), uint16(0))
		f.Add([]byte(text), uint16(i*7919))
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint16) { checkReaders(t, text, sessionOf(n)) })
}

// FuzzEdits is FuzzReaders for statements of the corpus with random edits: four bytes each, for
// what to do, where, how much and by what.
func FuzzEdits(f *testing.F) {
	for i := range corpus {
		f.Add(uint8(i), []byte{0, byte(i * 3), 1, byte(i), 1, byte(i * 5), 0, byte(i * 11)}, uint16(i*7919))
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte, n uint16) {
		checkReaders(t, edited(corpus[int(which)%len(corpus)], edits), sessionOf(n))
	})
}

func edited(statement string, edits []byte) []byte {
	text := []byte(statement)
	for ; len(edits) >= 4 && len(text) > 0 && len(text) < 4096; edits = edits[4:] {
		at := int(edits[1]) * len(text) / 256
		end := min(at+int(edits[2]%16), len(text))
		what := []byte(fragments[int(edits[3])%len(fragments)])
		switch edits[0] % 5 {
		case 0: // put in
			text = slices.Insert(text, at, what...)
		case 1: // put in as a word
			text = slices.Insert(text, at, []byte(" "+string(what)+" ")...)
		case 2:
			text = slices.Replace(text, at, end, what...)
		case 3:
			text = slices.Delete(text, at, end)
		case 4: // twice
			text = slices.Insert(text, at, slices.Clone(text[at:end])...)
		}
	}
	return text
}

// slips are texts that TiDB's lexer misreads and both servers refuse: it passes @@ without a name,
// reads the byte behind it twice, and takes it for the end of the text when it is there.
var slips = regexp.MustCompile("(?i)@@(global\\.|session\\.|local\\.)?([^\\w$.'\"`\\x80-\\x{10FFFF}]|$)")

func checkReaders(t *testing.T, text []byte, se session) {
	s := &rewriter.Statement{Text: text, Mode: se.mode, Rules: se.rules, Prepared: se.prepared, Bulk: se.bulk}
	var before *ast.InsertStmt
	if slips.Match(text) {
		return
	}
	whole := plainText(s)
	if whole {
		before, _ = parse(string(text), s.Mode)
		checkHead(t, s)
	}
	var p rewriter.Plan
	err := p.Read(s)
	if errors.Is(err, rewriter.ErrNeedTable) {
		s.Table = se.table(before)
		err = p.Read(s)
	}
	if errors.Is(err, rewriter.ErrNeedValues) {
		s.Values = se.values(len(p.Questions))
		err = p.Read(s)
	}
	if err != nil {
		checkRefusal(t, s, err, before)
		return
	}
	read := before != nil
	if whole {
		err := compareWhole(s, &p)
		if err != nil && !errors.Is(err, errUnread) {
			t.Fatalf("%v\n %q\n gives %q\n mode %+v", err, text, rewritten(s, &p), s.Mode)
		}
		read = read && err == nil // a query may be read where it stands, and not inside another
	}
	checkReduced(t, s, &p, read)
	if s.Prepared && before != nil {
		checkPrepared(t, s, &p, before)
	}
}

// checkPrepared compares the parameters of a statement to prepare with those that TiDB's parser
// finds.
func checkPrepared(t *testing.T, s *rewriter.Statement, p *rewriter.Plan, before *ast.InsertStmt) {
	made, err := p.Prepare(s)
	if err != nil {
		return
	}
	after, err := parse(string(made.Text), s.Mode)
	if err != nil {
		t.Fatalf("%v\n %q\n gives %q", err, s.Text, made.Text)
	}
	own, all := parameters(before), parameters(after)
	assert.True(t, own == made.Client && all == len(made.Parameters), "%d parameters of %d, not %d of %d\n %q\n gives %q", own, all, made.Client, len(made.Parameters), s.Text, made.Text)
}

// parameters counts those of a statement.
func parameters(s *ast.InsertStmt) int {
	var c counter
	s.Accept(&c)
	return c.n
}

type counter struct{ n int }

func (c *counter) Enter(n ast.Node) (ast.Node, bool) {
	if _, ok := n.(ast.ParamMarkerExpr); ok {
		c.n++
	}
	return n, false
}

func (*counter) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// checkReduced: a reduced statement has the shapes of the whole one, and is read wherever that is.
func checkReduced(t *testing.T, s *rewriter.Statement, p *rewriter.Plan, read bool) {
	short := p.Reduce(s)
	var q rewriter.Plan
	if err := q.Read(short); err != nil {
		t.Fatalf("%v\n %q\n reduced %q", err, s.Text, short.Text)
	}
	if a, b := p.Shapes(nil), q.Shapes(nil); len(a) != len(b) || read && !slices.Equal(a, b) && !renamed(s) {
		t.Fatalf("shapes %x and %x\n %q\n reduced %q", a, b, s.Text, short.Text)
	}
	err := compareWhole(short, &q)
	if err != nil && (read || !errors.Is(err, errUnread)) {
		t.Fatalf("%v\n %q\n reduced %q\n gives %q", err, s.Text, short.Text, rewritten(short, &q))
	}
}

// renamed reports whether Reduce may have put other names for those of s.
func renamed(s *rewriter.Statement) bool {
	return !utf8.Valid(s.Text) || s.Mode.ANSIQuotes && bytes.IndexByte(s.Text, '\\') >= 0 || s.Mode.Charset != rewriter.SingleByte && hasHigh(s.Text)
}

func rewritten(s *rewriter.Statement, p *rewriter.Plan) []byte {
	ids := make([][]uint64, len(p.Columns))
	for i := range ids {
		for n := range s.Rules[i].IDs.Words(p.Columns[i].Generated) {
			ids[i] = append(ids[i], uint64(1000*i+77+n))
		}
	}
	return p.Append(nil, s.Text, ids)
}

// checkHead: what TiDB takes for an INSERT must not pass as anything else, nor as one into another
// table.
func checkHead(t *testing.T, s *rewriter.Statement) {
	stmt := anyInsert(s)
	if stmt == nil {
		return
	}
	want, name := rewriter.Insert, tableName(stmt).Name.O
	if stmt.IsReplace {
		want = rewriter.Replace
	}
	m := s.Mode
	m.MultiStatements = true
	for _, span := range rewriter.Split(nil, s.Text, m) { // TiDB reads empty statements in front and behind
		h, _ := rewriter.ReadHead(s.Text[span.Start:span.End], s.Mode)
		if h.Kind == rewriter.Compound || h.Kind == want && (h.Target.Table == nil || string(h.Target.Table) == name) || span.Doubt {
			return
		}
	}
	h, _ := rewriter.ReadHead(s.Text, s.Mode)
	t.Fatalf("%q: TiDB reads INSERT into %s, ReadHead %+v", s.Text, name, h)
}

// anyInsert returns the INSERT that the text is to TiDB, also one with a query; nil when it is
// none.
func anyInsert(s *rewriter.Statement) (stmt *ast.InsertStmt) {
	defer func() {
		if recover() != nil {
			stmt = nil
		}
	}()
	p := parser.New()
	p.SetSQLMode(sqlMode(s.Mode))
	stmts, _, err := p.Parse(string(s.Text), "", "")
	if err != nil || len(stmts) != 1 {
		return nil
	}
	stmt, _ = stmts[0].(*ast.InsertStmt)
	return stmt
}

// checkRefusal: ErrRefusedByServer stands only for rows of other lengths and a column named twice.
func checkRefusal(t *testing.T, s *rewriter.Statement, err error, stmt *ast.InsertStmt) {
	if stmt == nil || !errors.Is(err, rewriter.ErrRefusedByServer) {
		return
	}
	names := map[string]bool{}
	for _, c := range stmt.Columns {
		names[c.Name.L] = true
	}
	width := len(stmt.Columns)
	if width == 0 && s.Table != nil {
		width = len(s.Table.Columns)
	}
	for _, l := range stmt.Lists {
		if len(l) != width {
			return
		}
	}
	assert.MustTrue(t, len(names) != len(stmt.Columns), "%q: %v, but TiDB finds nothing wrong", s.Text, err)
}

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
