package decide

import (
	"testing"

	"idproxy/proxy/relay"
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
	e := relay.Expect{Generated: 2, First: 77, Last: 78, Explicit: 1<<64 - 5, HasExplicit: true}
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
