package rewriter

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// named says whether an INSERT names the column of ids.
type named bool

const (
	withID    named = true
	withoutID named = false
)

// bulk returns an INSERT of rows as an application of a shop sends it.
func bulk(rows int, id named) []byte {
	var b strings.Builder
	b.WriteString("INSERT INTO orders (")
	if id {
		b.WriteString("id, ")
	}
	b.WriteString("customer, amount, note, created) VALUES ")
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(")
		if id {
			b.WriteString("NULL, ")
		}
		fmt.Fprintf(&b, "%d, %d.%02d, 'Gift wrapped; the customer\\'s note number %d', '2026-11-21 03:%02d:00')", 1000+i, i, i%100, i, i%60)
	}
	return []byte(b.String())
}

func BenchmarkPlan(b *testing.B) {
	for _, rows := range []int{1, 100, 1000} {
		for _, id := range []named{withoutID, withID} {
			b.Run(fmt.Sprintf("rows=%d/null=%v", rows, id), func(b *testing.B) { benchmarkPlan(b, bulk(rows, id), rows) })
		}
	}
}

// kinds are rows as applications send them, of random lengths, for processors guess the even ones
// right.
var kinds = []struct {
	name, columns string
	row           func(r *rand.Rand) string
}{
	{"short", "a,b,c,d,e", func(r *rand.Rand) string {
		return fmt.Sprintf("%d,'%s',NULL,%d,'2026-01-%02d'", r.Intn(1e6), wordsOf(r, 1), r.Intn(10), 1+r.Intn(28))
	}},
	{"numbers", "a,b,c,d,e", func(r *rand.Rand) string {
		return fmt.Sprintf("%d,%d,%d.%02d,-%d,%d", r.Intn(1e9), r.Intn(10), r.Intn(1e5), r.Intn(100), r.Intn(1000), r.Intn(1000))
	}},
	{"mixed", "a,b,c,d,e,f", func(r *rand.Rand) string {
		mail := "NULL"
		if r.Intn(2) == 0 {
			mail = "'" + wordsOf(r, 1) + "@example.com'"
		}
		return fmt.Sprintf("%d, %d.%02d, %s, '%s', '2026-11-21 03:%02d:00', %d",
			r.Intn(1e6), r.Intn(1000), r.Intn(100), mail, wordsOf(r, r.Intn(8)), r.Intn(60), r.Intn(2))
	}},
	{"json", "a,b", func(r *rand.Rand) string {
		return fmt.Sprintf(`%d,'{\"user_id\":%d,\"event_name\":\"page_view\",\"ip\":\"10.0.%d.%d\",\"tags\":[\"a\",\"b\"]}'`,
			r.Intn(1e6), r.Intn(1e6), r.Intn(256), r.Intn(256))
	}},
	{"hex", "a,b", func(r *rand.Rand) string {
		return fmt.Sprintf("x'%016x%016x',0x%x", r.Uint64(), r.Uint64(), r.Uint64())
	}},
	{"calls", "a,b,c", func(r *rand.Rand) string { return fmt.Sprintf("%d,NOW(),UNHEX('%016x')", r.Intn(1e6), r.Uint64()) }},
}

var vocabulary = strings.Fields(`lorem ipsum dolor sit amet the customer quantity of street gift wrapped and delivered on Monday by o\'clock it''s`)

func wordsOf(r *rand.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = vocabulary[r.Intn(len(vocabulary))]
	}
	return strings.Join(words, " ")
}

func BenchmarkRows(b *testing.B) {
	for _, kind := range kinds {
		for _, rows := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, rows), func(b *testing.B) {
				r := rand.New(rand.NewSource(1))
				text := []byte("INSERT INTO t (" + kind.columns + ") VALUES ")
				text = fmt.Appendf(text, "(%s)", kind.row(r))
				for range rows - 1 {
					text = fmt.Appendf(text, ",(%s)", kind.row(r))
				}
				benchmarkPlan(b, text, rows)
			})
		}
	}
}

func BenchmarkPlanBlob(b *testing.B) {
	for name, part := range map[string]string{
		"text": "blob of plain text, quoted once. ", "lines": "blob of plain text, in lines\\n", "binary": "\\0\x01\\'\xFF\xD8\x80\\Z\x7F!",
	} {
		b.Run(name, func(b *testing.B) {
			benchmarkPlan(b, []byte("INSERT INTO t (a) VALUES ('"+strings.Repeat(part, 1<<20/len(part))+"')"), 1)
		})
	}
}

func benchmarkPlan(b *testing.B, text []byte, rows int) {
	ids, p, s := [][]uint64{ids(rows)}, new(Plan), statement(text)
	for i := range ids[0] {
		ids[0][i] += 7_301_234_567_890_123_456
	}
	var out []byte
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		assert.Must(b, p.Read(s))
		out = p.Append(out[:0], text, ids)
	}
}

func BenchmarkReadHead(b *testing.B) {
	for _, text := range []string{"SELECT * FROM orders WHERE id = 5", "INSERT INTO shop.orders (a) VALUES (1)", "COMMIT"} {
		b.Run(strings.Fields(text)[0], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ReadHead([]byte(text), Mode{})
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	text := append(bulk(1000, withID), "; SELECT 1"...)
	var spans []Span
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		spans = Split(spans[:0], text, Mode{MultiStatements: true})
	}
}

func BenchmarkDoubts(b *testing.B) {
	text := bulk(1000, withID)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		DoubtsOf(text)
	}
}

func BenchmarkMentionsLastID(b *testing.B) {
	text := bulk(1000, withID)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		MentionsLastID(text)
	}
}

func BenchmarkMatch(b *testing.B) {
	rules := rule.NewList([]rule.Rule{{Schema: "shop_*", Table: "events_*", Column: "id"}, {Schema: "shop", Table: "orders", Column: "id"}})
	b.ReportAllocs()
	for b.Loop() {
		rules.Match([]byte("shop"), []byte("orders"), true)
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	text, ids, p := bulk(100, withID), [][]uint64{ids(100)}, new(Plan)
	absent := bulk(100, withoutID)
	withNull, withoutID := statement(text), statement(absent)
	var out []byte
	var spans []Span
	rules := rule.NewList([]rule.Rule{{Schema: "shop", Table: "orders", Column: "id"}})
	multi := Mode{MultiStatements: true}
	for name, f := range map[string]func(){
		"Plan with NULL": func() {
			assert.Must(t, p.Read(withNull))
			out = p.Append(out[:0], text, ids)
		},
		"Plan with the column absent": func() {
			assert.Must(t, p.Read(withoutID))
			out = p.Append(out[:0], absent, ids)
		},
		"ReadHead": func() { ReadHead(text, Mode{}) },
		"Split":    func() { spans = Split(spans[:0], text, multi) },
		"Match":    func() { rules.Match([]byte("shop"), []byte("orders"), true) },
		"MayMatch": func() { rules.MayMatch([]byte("orders"), false) },
		"Mentions": func() { _ = MentionsLastID(text) || MentionsInsertID(text) || MentionsDiagnostics(text) },
		"DoubtsOf": func() { DoubtsOf(text) },
	} {
		f()
		assert.Equal(t, name+": allocations", testing.AllocsPerRun(100, f), 0)
	}
}
