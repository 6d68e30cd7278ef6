package decide

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"idproxy/proxy/protocol"
)

// values are what rows hold, some 250 bytes each, of lengths that vary as an application's do.
var values = []struct {
	name string
	row  func(r *rand.Rand) string
}{
	{"digits", func(r *rand.Rand) string { // as sysbench
		groups := make([]string, 15)
		for i := range groups {
			groups[i] = fmt.Sprintf("%011d", r.Int63n(1e11))
		}
		return fmt.Sprintf("%d, '%s', '%s'", r.Intn(1e6), strings.Join(groups[:10], "-"), strings.Join(groups[10:], "-"))
	}},
	{"letters", func(r *rand.Rand) string { return quoted(r, "lorem ipsum dolor sit amet ", 230) }},
	{"numbers", func(r *rand.Rand) string {
		numbers := make([]string, 30)
		for i := range numbers {
			numbers[i] = fmt.Sprint(r.Intn(1e8))
		}
		return strings.Join(numbers, ",")
	}},
	{"words", func(r *rand.Rand) string { // many short texts
		words := make([]string, 20)
		for i := range words {
			words[i] = "'" + strings.Repeat("w", 3+r.Intn(12)) + "'"
		}
		return strings.Join(words, ",")
	}},
	{"semicolons", func(r *rand.Rand) string { return quoted(r, "lorem ipsum; dolor sit amet ", 230) }},
	{"backslashes", func(r *rand.Rand) string { return quoted(r, `{\"user\":\"lorem ipsum\",\"n\":1}`, 230) }},
	{"quotes", func(r *rand.Rand) string { return quoted(r, "it''s o''clock, said the customer ", 230) }},
	{"multibyte", func(r *rand.Rand) string { return quoted(r, "größer als 日本語 und ", 230) }},
}

// quoted returns a number and about size bytes of text in quotes.
func quoted(r *rand.Rand, part string, size int) string {
	return fmt.Sprintf("%d,'%s'", r.Intn(1e6), strings.Repeat(part, 1+(size-20+r.Intn(40))/len(part)))
}

// insertOf returns an INSERT of rows.
func insertOf(table string, row func(r *rand.Rand) string, rows int) string {
	r := rand.New(rand.NewSource(1))
	var b strings.Builder
	first := row(r)
	fmt.Fprintf(&b, "INSERT INTO %s (a", table)
	for i := range columns(first) - 1 {
		fmt.Fprintf(&b, ",c%d", i)
	}
	fmt.Fprintf(&b, ") VALUES (%s)", first)
	for range rows - 1 {
		fmt.Fprintf(&b, ",(%s)", row(r))
	}
	return b.String()
}

// columns counts the values of a row.
func columns(row string) int {
	n := 1
	for i, quoted := 0, false; i < len(row); i++ {
		switch {
		case row[i] == '\\':
			i++
		case row[i] == '\'':
			quoted = !quoted
		case row[i] == ',' && !quoted:
			n++
		}
	}
	return n
}

// each runs a benchmark for each kind of values, number of rows, and with multi-statements off and
// on.
func each(b *testing.B, table string, run func(b *testing.B, text string, multi bool)) {
	for _, multi := range []string{"one", "multi"} {
		for _, kind := range values {
			for _, rows := range []int{1, 100, 1000} {
				b.Run(fmt.Sprintf("%s/%s/%d", multi, kind.name, rows), func(b *testing.B) {
					run(b, insertOf(table, kind.row, rows), multi == "multi")
				})
			}
		}
	}
}

// What an INSERT costs between its arrival and its departure, without the network.
func BenchmarkInjected(b *testing.B) {
	each(b, "orders", func(b *testing.B, text string, multi bool) {
		x, m, command := sending(text, multi)
		b.SetBytes(int64(len(command)))
		b.ReportAllocs()
		for b.Loop() {
			n, _ := m.Next(command)
			x.st.Read(command[:n], m.Arrival(command[:n]))
			if n, err := x.decide(); err != nil || n != nil || len(x.st.Filled.Parts) != 1 {
				b.Fatal(n, err)
			}
			p, plan := &x.st.Filled.Parts[0], &x.st.Filled.plans[0]
			for len(p.ids) < len(p.Rules) {
				p.ids = append(p.ids, make([]uint64, plan.Rows))
			}
			p.ids[0] = p.ids[0][:plan.Columns[0].Generated]
			x.st.reply = &protocol.InsertReply{Inserts: []protocol.Expect{p.expect(plan, false)}}
			sqlText{&x.st.Filled}.rewrite(&x.st.Command)
		}
	})
}

// And one that no rule concerns.
func BenchmarkForwarded(b *testing.B) {
	each(b, "other", func(b *testing.B, text string, multi bool) {
		x, m, command := sending(text, multi)
		b.SetBytes(int64(len(command)))
		b.ReportAllocs()
		for b.Loop() {
			n, act := m.Next(command)
			if act == protocol.ActForward {
				m.Left = 0
				x.answer()
				continue
			}
			x.st.Read(command[:n], m.Arrival(command[:n]))
			if n, err := x.decide(); err != nil || n != nil || len(x.st.Filled.Parts) != 0 {
				b.Fatal(n, err)
			}
		}
	})
}
