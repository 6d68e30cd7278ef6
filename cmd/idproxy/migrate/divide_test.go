package migrate

import (
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
)

// TestDivide: schemas on one server that are shards of one table have bands of their own, and so have two
// spellings of a name. Tables with other names share nothing.
func TestDivide(t *testing.T) {
	cfg, err := config.Parse("idproxy.yaml", []byte(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: "127.0.0.1:1", account: {user: u}}]
stores: {main: {file: {dir: ids}}}
sources: {ids: {segment: {store: main, key: "{table}", start: 1000, last: 999999999}}}
rules: [{table: "*.*", column: id, source: ids, mode: {switch: m}}]
`), nil)
	assert.Must(t, err)
	at := func(name string) *shard {
		s := &shard{place: place{name: name}}
		s.leads(name, "", nil)
		return s
	}
	m := &Migration{cfg: cfg, plan: &plan{}, shards: []*shard{at("a")}}
	of := func(schema, name string) *seen {
		f := &found{rule: &cfg.Rules[0], schema: schema, name: name, column: "id", definition: "int AUTO_INCREMENT", next: 7}
		return &seen{f, []*found{f}}
	}
	assert.Must(t, m.add([]*seen{of("shop_0", "orders"), of("shop_1", "orders"), of("shop_1", "items"), of("shop_1", "ORDERS")}))
	for i, want := range []uint64{1_000_000_000, 1_200_000_000, 1_000_000_000, 1_400_000_000} {
		if c := m.plan.Tables[i].Counter[0]; c.Band != want || c.Before != 7 {
			t.Errorf("%s: band %d, want %d", &m.plan.Tables[i], c.Band, want)
		}
	}
	assert.Fails(t, "a schema that comes later has a band of another", m.add([]*seen{of("shop_2", "orders")}), "")
	assert.NoError(t, m.add([]*seen{of("shop_2", "parts")}))
	// A table that comes to another shard later has a band there, as long as there is room.
	m.shards = append(m.shards, at("b"))
	later := func(schema, name string) *seen {
		s := of(schema, name)
		return &seen{s.of, []*found{s.of, s.of}}
	}
	orders, items := &m.plan.Tables[0], &m.plan.Tables[2]
	m.follow(orders, later("shop_0", "orders"))
	m.follow(items, later("shop_1", "items"))
	if n := len(orders.Counter); n != 2 || orders.Counter[1].Shard != "b" || orders.Counter[1].Band != 1_600_000_000 {
		t.Errorf("%+v", orders.Counter)
	}
	if n := len(items.Counter); n != 1 { // it had all the room, for one shard
		t.Errorf("%+v", items.Counter)
	}
}
