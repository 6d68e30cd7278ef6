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
}
