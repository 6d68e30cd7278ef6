package rewriter

import (
	"fmt"
	"strings"
	"testing"
)

// bulk returns an INSERT of rows as an application of a shop sends it.
func bulk(rows int, id bool) []byte {
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
		for _, id := range []bool{false, true} {
			b.Run(fmt.Sprintf("rows=%d/null=%v", rows, id), func(b *testing.B) {
				text, ids, p := bulk(rows, id), [][]uint64{ids(rows)}, new(Plan)
				s := statement(text)
				var out []byte
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if err := p.Read(s); err != nil {
						b.Fatal(err)
					}
					out = p.Append(out[:0], text, ids)
				}
			})
		}
	}
}

func BenchmarkPlanBlob(b *testing.B) {
	text := []byte("INSERT INTO t (a) VALUES ('" + strings.Repeat("blob of plain text, quoted once. ", 32<<10) + "')")
	p, s := new(Plan), statement(text)
	var out []byte
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := p.Read(s); err != nil {
			b.Fatal(err)
		}
		out = p.Append(out[:0], text, [][]uint64{{77}})
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
	text := append(bulk(1000, true), "; SELECT 1"...)
	var spans []Span
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		spans = Split(spans[:0], text, Mode{MultiStatements: true})
	}
}

func BenchmarkDoubts(b *testing.B) {
	text := bulk(1000, true)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		DoubtsOf(text)
	}
}

func BenchmarkMentionsLastID(b *testing.B) {
	text := bulk(1000, true)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		MentionsLastID(text)
	}
}

func BenchmarkMatch(b *testing.B) {
	rules := NewRules([]Rule{{Schema: "shop_*", Table: "events_*", Column: "id"}, {Schema: "shop", Table: "orders", Column: "id"}})
	b.ReportAllocs()
	for b.Loop() {
		rules.Match([]byte("shop"), []byte("orders"), true)
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	text, ids, p := bulk(100, true), [][]uint64{ids(100)}, new(Plan)
	absent := bulk(100, false)
	withNull, withoutID := statement(text), statement(absent)
	var out []byte
	var spans []Span
	rules := NewRules([]Rule{{Schema: "shop", Table: "orders", Column: "id"}})
	multi := Mode{MultiStatements: true}
	for name, f := range map[string]func(){
		"Plan with NULL": func() {
			if err := p.Read(withNull); err != nil {
				t.Fatal(err)
			}
			out = p.Append(out[:0], text, ids)
		},
		"Plan with the column absent": func() {
			if err := p.Read(withoutID); err != nil {
				t.Fatal(err)
			}
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
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
