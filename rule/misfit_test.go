package rule

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// TestDefine reads what MariaDB 10.11 and MySQL 9.7 show of tables, and says what is wrong with
// their column id.
func TestDefine(t *testing.T) {
	for _, tt := range []struct {
		line  string
		kind  IDKind
		wrong string // in the Misfit's text; "": nothing is
	}{
		{"`id` bigint(20) NOT NULL,", Number, ""},
		{"`id` int(11) NOT NULL DEFAULT 0,", Number, ""},
		{"`id` int NOT NULL DEFAULT '0' /*!80023 INVISIBLE */,", Number, ""},
		{"`id` int(11) NOT NULL INVISIBLE DEFAULT 0", Number, ""},
		{"`id` decimal(10,2) NOT NULL DEFAULT '0.00',", Number, ""},
		{"`id` int NOT NULL DEFAULT (0),", Number, ""},
		{"`id` int NOT NULL DEFAULT '0' COMMENT 'it''s DEFAULT 7'", Number, ""},
		{"`id` int NOT NULL COMMENT 'it''s GENERATED, DEFAULT 7',", Number, ""},
		{"`id` int NOT NULL CHECK (`id` <> default(`a`)),", Number, ""},
		{"`id` int(11) DEFAULT NULL,", Number, ""},
		{"`ID` int NOT NULL DEFAULT '7',", Number, "a default of its own, '7'"},
		{"\"id\" int NOT NULL DEFAULT 7,", Number, "a default of its own, 7"},
		{"id int NOT NULL DEFAULT 7,", Number, "a default of its own, 7"},
		{"`id` int(11) NOT NULL DEFAULT (1 + 1) COMMENT 'x'", Number, "a default of its own, (1 + 1)"},
		{"`id` int(11) NOT NULL DEFAULT nextval(`f, x`.`s`),", Number, "a default of its own, nextval(`f, x`.`s`)"},
		{"`id` decimal(5,1) NOT NULL DEFAULT '0.4',", Number, "a default of its own, '0.4'"},
		{"`id` bigint(20) GENERATED ALWAYS AS (`a` + 1) STORED,", Number, "is GENERATED"},
		{"`id` bigint(20) AS (`a` + 1) PERSISTENT,", Number, "is GENERATED"},
		{"`id` bigint(20) unsigned GENERATED ALWAYS AS ROW START,", Number, "is GENERATED"},
		{"`id` char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,", UUID, ""},
		{"`id` char(36) DEFAULT NULL,", UUID, ""},
		{"`id` char(36) NOT NULL DEFAULT '',", UUID, "a default of its own, ''"},
		{"`id` char(36) NOT NULL DEFAULT '0',", UUID, "a default of its own, '0'"},
		{"`id` char(36) NOT NULL DEFAULT (uuid()),", UUID, "a default of its own, (uuid())"},
		{"`i``d` int NOT NULL DEFAULT '7',", Number, ""},
		{"KEY `id` (`id`) COMMENT 'DEFAULT 7'", Number, ""},
	} {
		column := Column{Name: "id", Max: 1<<63 - 1, NotNull: true}
		if tt.kind == UUID {
			column = Column{Name: "id", Text: true, Length: 36}
		}
		table := Table{Columns: []Column{{Name: "a"}}, Invisible: []Column{column}}
		table.Define([]byte("CREATE TABLE `t` (\n  `a` int DEFAULT NULL COMMENT 'b\\n',\n  " + tt.line + "\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"))
		rule := &Rule{Table: "*", Column: "id", IDs: tt.kind}
		got := rule.Unfit(&table)
		assert.True(t, got.None() == (tt.wrong == "") && strings.Contains(got.String(), tt.wrong), "%s: %q; want %q", tt.line, got, tt.wrong)
	}
}

// TestSchema takes what information_schema.COLUMNS says for what SHOW CREATE TABLE does.
func TestSchema(t *testing.T) {
	text := func(s string) []byte { return []byte(s) }
	for _, tt := range []struct {
		value   []byte
		extra   string
		mariaDB bool
		want    Column
	}{
		{nil, "", false, Column{}},
		{nil, "", true, Column{}},
		{text("NULL"), "", true, Column{}},
		{nil, "auto_increment", false, Column{}},
		{text("0"), "", false, Column{Own: "'0'"}},
		{text(""), "", false, Column{Own: "''"}},
		{text("NULL"), "", false, Column{Own: "'NULL'"}},
		{text("uuid()"), "DEFAULT_GENERATED", false, Column{Own: "uuid()"}},
		{text("uuid()"), "", true, Column{Own: "uuid()"}},
		{text("''"), "", true, Column{Own: "''"}},
		{nil, "STORED GENERATED", false, Column{Generated: true}},
		{text("NULL"), "VIRTUAL GENERATED, INVISIBLE", true, Column{Generated: true}},
	} {
		var got Column
		got.Schema(tt.value, tt.extra, tt.mariaDB)
		assert.True(t, got == tt.want, "%q, %s: %+v; want %+v", tt.value, tt.extra, got, tt.want)
	}
}

// TestUnfit says what a wildcard makes of columns by their types, keys and NULL.
func TestUnfit(t *testing.T) {
	for _, tt := range []struct {
		column Column
		kind   IDKind
		wrong  string
	}{
		{Column{Name: "id", Type: "INT", Max: 9, AutoIncrement: true}, Number, ""},
		{Column{Name: "id", Type: "INT", Max: 9, NotNull: true}, Number, ""},
		{Column{Name: "ID", Type: "INT", Max: 9, Key: true}, Number, ""},
		{Column{Name: "id", Type: "INT", Max: 9}, Number, "column id may be NULL and is no key"},
		{Column{Name: "nr", Type: "INT", Max: 9, NotNull: true}, Number, "the table has no column id"},
		{Column{Name: "id", Type: "DATE", NotNull: true, Key: true}, Number, "column id has the type DATE, and ids of source s go into integers and DECIMAL"},
		{Column{Name: "id", Type: "CHAR(36)", Max: 9, Text: true, Length: 36, NotNull: true}, Number, "column id has the type CHAR(36), and"},
		{Column{Name: "id", Type: "CHAR(36)", Max: 9, Text: true, Length: 36}, UUID, ""},
		{Column{Name: "id", Type: "INT", Max: 9, NotNull: true}, UUID, "column id has the type INT, and ids of source s go into CHAR(36),"},
		{Column{Name: "id", Type: "INT", Max: 9, NotNull: true, Generated: true}, Number, "column id is GENERATED by the server"},
	} {
		rule := &Rule{Table: "*", Column: "id", Source: "s", IDs: tt.kind}
		got := rule.Unfit(&Table{Columns: []Column{tt.column}})
		assert.True(t, got.None() == (tt.wrong == "") && strings.HasPrefix(got.String(), tt.wrong), "%+v: %q; want %q", tt.column, got, tt.wrong)
	}
}

// FuzzDefine reads anything as the text of SHOW CREATE TABLE: all that it learns stands in the line
// of its column.
func FuzzDefine(f *testing.F) {
	f.Add("CREATE TABLE `t` (\n  `id` int NOT NULL DEFAULT '7',\n  `a``b` int AS (`id`) VIRTUAL\n)")
	f.Add("\"id\" x'\\'' default (1,'2', `3")
	f.Add("id generated\n``\n`id")
	f.Fuzz(func(t *testing.T, text string) {
		table := Table{Columns: []Column{{Name: "id"}, {Name: "a`b"}}}
		table.Define([]byte(text))
		for _, c := range table.Columns {
			assert.True(t, strings.Contains(text, c.Own) && (c.Own == "" || strings.Contains(strings.ToLower(text), "default")), "default %q", c.Own)
		}
	})
}
