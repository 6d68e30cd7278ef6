package migrate

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
)

func TestBands(t *testing.T) {
	for _, tt := range []struct {
		definition string
		last       uint64
		shards     int
		want       []uint64 // where bands begin; nil: there is no room
	}{
		{"int NOT NULL", 999_999_999, 2, []uint64{1_000_000_000, 1_500_000_000}},
		{"int(10) unsigned", 1_999_999_999, 2, []uint64{2_000_000_000, 3_000_000_000}},
		{"bigint(20)", 1_999_999_999_999_999, 3, []uint64{2e15, 4e15, 6e15}},
		{"bigint unsigned", exact, 2, []uint64{exact + 1, exact + 1 + 5e18}},
		{"bigint", math.MaxInt64 - 10, 2, nil},
		{"mediumint unsigned", 10_000_000, 2, []uint64{10_000_001, 12_000_001}},
		{"smallint", 10_000, 2, nil},
		{"decimal(20,0)", 10, 2, nil},
		{"int", 2_147_483_000, 1, nil},
	} {
		holds := most(tt.definition)
		got, width, err := bands(holds, tt.last, tt.shards)
		assert.True(t, slices.Equal(got, tt.want) && (err == nil) == (tt.want != nil), "%s, last %d: %d, %v", tt.definition, tt.last, got, err)
		n := len(got)
		assert.True(t, n <= 0 || got[n-1] <= holds && holds-got[n-1] >= width-1 && got[0] > tt.last, "%s, last %d: bands of %d from %d do not fit into %d", tt.definition, tt.last, width, got, holds)
	}
}

// TestLast: above the last id of a source there is room for bands.
func TestLast(t *testing.T) {
	for definition, want := range map[string]uint64{"int": 999_999_999, "int unsigned": 1_999_999_999, "bigint": 1_999_999_999_999_999, "mediumint": 1_999_999, "smallint": 0} {
		assert.Equal(t, definition, Last(most(definition)), want)
	}
}

func TestPlain(t *testing.T) {
	for definition, want := range map[string]string{
		"int NOT NULL AUTO_INCREMENT": "int NOT NULL",
		"int NOT NULL":                "int NOT NULL",
		"int NOT NULL AUTO_INCREMENT COMMENT ' AUTO_INCREMENT'": "int NOT NULL COMMENT ' AUTO_INCREMENT'",
		"int COMMENT 'it''s AUTO_INCREMENT'":                    "int COMMENT 'it''s AUTO_INCREMENT'",
		`int COMMENT 'a\' AUTO_INCREMENT'`:                      `int COMMENT 'a\' AUTO_INCREMENT'`,
		"int NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */":     "int NOT NULL /*!80023 INVISIBLE */",
	} {
		assert.Equal(t, definition, plain(definition), want)
	}
}

// TestPlanFile: a plan is read as it was written; what is none is refused.
func TestPlanFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	assert.Of(readPlan(path)).Equal(t, "of no file", nil)
	p := &plan{Format: planFormat, Switch: "m", Proxies: []string{""}, Tables: []table{{Name: "t\"\n", Last: 9, Counter: []counter{{Definition: "int COMMENT '\\\\ é'", Band: 10, BandEnd: 19}, {Definition: "tinyint", Band: 20, BandEnd: 29, Reached: 25}}}}}
	for _, name := range stepNames() {
		p.Steps = append(p.Steps, record{Step: name, State: Pending})
	}
	assert.Must(t, p.write(path))
	assert.Must(t, os.Chmod(path, 0o600))
	assert.Must(t, p.write(path))
	assert.Equal(t, "the rights of the file", assert.Of(os.Stat(path)).Must(t).Mode().Perm(), 0o600)
	again, err := readPlan(path)
	assert.True(t, err == nil && again.Tables[0].Counter[0] == p.Tables[0].Counter[0] && again.Tables[0].Name == p.Tables[0].Name, "%+v, %v", again, err)
	files, err := os.ReadDir(filepath.Dir(path))
	assert.True(t, err == nil && len(files) == 1, "files %v, %v", files, err)
	data := assert.Of(os.ReadFile(path)).Must(t)
	for old, fresh := range map[string]string{`"format": 1`: `"format": 2`, `"pending"`: `"begun"`, `"observe"`: `"look"`, `"switch"`: `"password"`, "}": "", `"proxies": [
    ""
  ]`: `"proxies": []`, `"band": 10`: `"band": 9`, `"band_end": 19`: `"band_end": 20`, `"last": 9`: `"last": 10`, `"band_end": 29`: `"band_end": 128`, "\n}\n": "\n} {}"} {
		assert.Of(parsePlan("p", []byte(strings.Replace(string(data), old, fresh, 1)))).Fails(t, fresh+" in place of "+old+" is read", "")
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"format":1,"switch":"m","store":"s","proxies":[""],"tables":[],"steps":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePlan("p", data)
		assert.True(t, err != nil || len(p.Steps) == len(steps), "%+v of %q", p, data)
	})
}

func TestParseTable(t *testing.T) {
	const columns = "CREATE TABLE `t` (\n  `id``s` int NOT NULL AUTO_INCREMENT COMMENT 'a, AUTO_INCREMENT=7',\n  `id` bigint(20) DEFAULT 1,\n  PRIMARY KEY (`id``s`)\n"
	for _, tt := range []struct {
		end  string
		next uint64
	}{
		{") ENGINE=InnoDB AUTO_INCREMENT=11 DEFAULT CHARSET=utf8mb4 COMMENT='x AUTO_INCREMENT=99'", 11},
		{") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='x AUTO_INCREMENT=99'", 1},
		{") /*!50100 TABLESPACE `s` */ ENGINE=InnoDB AUTO_INCREMENT=18446744073709551615", 18446744073709551615},
	} {
		definition, next, err := parseTable(columns+tt.end, "id`s")
		want := "int NOT NULL AUTO_INCREMENT COMMENT 'a, AUTO_INCREMENT=7'"
		assert.True(t, definition == want && next == tt.next && err == nil, "%s: %q, %d, %v", tt.end, definition, next, err)
		definition, _, err = parseTable(columns+tt.end, "id")
		assert.True(t, definition == "bigint(20) DEFAULT 1" && err == nil, "%s: %q, %v", tt.end, definition, err)
	}
	for _, text := range []string{"", columns, columns + ") ENGINE=InnoDB AUTO_INCREMENT=99999999999999999999"} {
		_, _, err := parseTable(text, "gone")
		assert.True(t, err != nil, "%q has no such column", text)
	}
}

// TestLeads: a counter is that of the whole table where a key begins with its column.
func TestLeads(t *testing.T) {
	const columns = "CREATE TABLE `t` (\n  `g` int NOT NULL COMMENT 'KEY (`id`)',\n  `id` int NOT NULL AUTO_INCREMENT,\n"
	for keys, want := range map[string]bool{
		"  PRIMARY KEY (`id`)\n":                               true,
		"  PRIMARY KEY (`id`,`g`)\n":                           true,
		"  PRIMARY KEY (`g`,`id`)\n":                           false,
		"  PRIMARY KEY (`g`,`id`),\n  KEY `x` (`id`)\n":        true,
		"  UNIQUE KEY `a``(``id``` (`g`,`id`)\n":               false,
		"  UNIQUE KEY `a``(` (`id`)\n":                         true,
		"  PRIMARY KEY (`ids`)\n":                              false,
		"  KEY `(``id``` (`g`)\n":                              false,
		"  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `r`\n": false,
	} {
		assert.Equal(t, keys, leads(columns+keys+") ENGINE=MyISAM", "id"), want)
	}
}

func FuzzTable(f *testing.F) {
	f.Add("CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT COMMENT 'it''s',\n) ENGINE=InnoDB AUTO_INCREMENT=11")
	f.Fuzz(func(t *testing.T, text string) {
		definition, _, err := parseTable(text, "id")
		without := plain(definition)
		assert.True(t, err != nil || len(without) <= len(definition) && !strings.Contains(definition, "\n"), "%q is %q, without AUTO_INCREMENT %q", text, definition, without)
	})
}

// TestForgets: which servers begin at the greatest id again when they are restarted.
func TestForgets(t *testing.T) {
	for version, want := range map[string]bool{
		"5.7.44-log": true, "8.0.36": false, "9.7.0": false, "10.2.3-MariaDB": true, "10.2.4-MariaDB": false, "11.8.2-MariaDB-log": false, "5.5.68-MariaDB": true, "": false,
	} {
		assert.Equal(t, version, forgets(version), want)
	}
}

// TestDivide: schemas on one server that are shards of one table have bands of their own, and so have two
// spellings of a name. Tables with other names share nothing.
func TestDivide(t *testing.T) {
	cfg, err := config.Parse("idproxy.yaml", []byte(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: "127.0.0.1:1", account: {user: u}}]
stores: {main: {file: {dir: ids}}}
sources: {ids: {segment: {store: main, key: "{table}", start: 1000, last: 999999999}}}
rules: [{table: "*.*", column: id, source: ids, mode: {switch: m}}]
`), nil)
	assert.Must(t, err)
	at := func(name string) *shard { return &shard{place: place{name: name}, places: []place{{name, ""}}} }
	m := &Migration{cfg: cfg, plan: &plan{}, shards: []*shard{at("a")}}
	of := func(schema, name string) *seen {
		f := &found{rule: &cfg.Rules[0], schema: schema, name: name, column: "id", definition: "int AUTO_INCREMENT", next: 7}
		return &seen{f, []*found{f}}
	}
	assert.Must(t, m.add([]*seen{of("shop_0", "orders"), of("shop_1", "orders"), of("shop_1", "items"), of("shop_1", "ORDERS")}))
	for i, want := range []uint64{1_000_000_000, 1_200_000_000, 1_000_000_000, 1_400_000_000} {
		c := m.plan.Tables[i].Counter[0]
		assert.True(t, c.Band == want && c.Before == 7, "%s: band %d, want %d", &m.plan.Tables[i], c.Band, want)
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
	n := len(orders.Counter)
	assert.True(t, n == 2 && orders.Counter[1].Shard == "b" && orders.Counter[1].Band == 1_600_000_000, "%+v", orders.Counter)
	if n := len(items.Counter); n != 1 { // it had all the room, for one shard
		t.Errorf("%+v", items.Counter)
	}
}
