package decide

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// What is asked behind a statement names its table, its column and its ids.
func TestStoredSQL(t *testing.T) {
	p := Part{
		Name:    rewriter.Name{Schema: []byte("shop"), Table: []byte("or`ders")},
		Rules:   []*rule.Rule{{Column: "id"}},
		columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}},
	}
	e := protocol.Expect{Generated: 2, First: 77, Last: 78, Explicit: 1<<64 - 5, HasExplicit: true}
	want := "SELECT COALESCE(MIN(CASE WHEN `id` BETWEEN 77 AND 78 THEN `id` END),MIN(`id`)) FROM `shop`.`or``ders` WHERE `id` BETWEEN 77 AND 78 OR `id`=-5"
	if got := storedSQL(&e, &p, []byte("`shop`.`or``ders`"), []byte("`id`")); got != want {
		t.Errorf("%s; want %s", got, want)
	}
	p.columns[0].Max = 1<<64 - 1
	e.Generated = 0
	if got, want := storedSQL(&e, &p, []byte("`shop`.`or``ders`"), []byte("`id`")), "SELECT MIN(`id`) FROM `shop`.`or``ders` WHERE `id`=18446744073709551611"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	e.Generated, e.HasExplicit = 2, false
	if got, want := storedSQL(&e, &p, []byte("`shop`.`or``ders`"), []byte("`id`")), "SELECT MIN(`id`) FROM `shop`.`or``ders` WHERE `id` BETWEEN 77 AND 78"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	// Others' ids may stand between those that are not one run.
	for _, tt := range []struct {
		ids  []uint64
		want string
	}{
		{[]uint64{77, 78}, "BETWEEN 77 AND 78"},
		{[]uint64{77, 87, 97}, "BETWEEN 77 AND 97"},
		{[]uint64{77, 87, 98}, "IN (77,87,98)"},
		{[]uint64{77, 1 << 52}, "IN (77,4503599627370496)"},
	} {
		p.ids, e.First, e.Last = [][]uint64{tt.ids}, tt.ids[0], tt.ids[len(tt.ids)-1]
		if got, want := storedSQL(&e, &p, []byte("`t`"), []byte("`id`")), "SELECT MIN(`id`) FROM `t` WHERE `id` "+tt.want; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// TestStoredSQLOfMany: however many rows a statement has, the question fits max_allowed_packet, and names no
// others' ids where its own are in long runs.
func TestStoredSQLOfMany(t *testing.T) {
	for _, tt := range []struct {
		name       string
		apart, run uint64 // one run behind the other
		exact      bool
	}{
		{"4096 in a millisecond", 1 << 22, 4096, true},
		{"one by one", 7919, 1, false},
	} {
		ids := make([]uint64, 800_000)
		for i := range ids {
			n := uint64(i)
			ids[i] = 1<<50 + n/tt.run*tt.apart + n%tt.run
		}
		ids[0]-- // no even distances
		p := Part{Rules: []*rule.Rule{{Column: "id"}}, columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}}, ids: [][]uint64{ids}}
		e := protocol.Expect{Generated: len(ids), First: ids[0], Last: ids[len(ids)-1], Explicit: 7, HasExplicit: true}
		sql := storedSQL(&e, &p, []byte("`t`"), []byte("`id`"))
		if len(sql) > 4<<20-1 {
			t.Errorf("%s: a question of %d bytes", tt.name, len(sql))
		}
		whole := fmt.Sprintf("`id` BETWEEN %d AND %d", e.First, e.Last)
		if strings.Contains(sql, whole) == tt.exact {
			t.Errorf("%s: %.200s", tt.name, sql)
		}
	}
}

// TestAppendAmong: long runs by their ends, others one by one.
func TestAppendAmong(t *testing.T) {
	ids := []uint64{5}
	for n := range uint64(leastRun) {
		ids = append(ids, 100+n)
	}
	ids = append(ids, 900, 901)
	got := string(appendAmong(nil, []byte("`id`"), ids))
	if want := "`id` BETWEEN 100 AND 163 OR `id` IN (5,900,901)"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
