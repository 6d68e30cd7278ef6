package rule

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/ascii"
	"idproxy/integration/assert"
	"idproxy/pattern"
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

func TestColumnForms(t *testing.T) {
	char := func(n int) Column { return Column{Text: true, Length: n, Padded: true, Max: 1<<64 - 1} }
	varchar := func(n int) Column { return Column{Text: true, Length: n, Max: 1<<64 - 1} }
	binary := func(n int) Column { return Column{Text: true, Bytes: true, Length: n, Padded: true, Max: 1<<64 - 1} }
	varbinary := func(n int) Column { return Column{Text: true, Bytes: true, Length: n, Max: 1<<64 - 1} }
	for name, tt := range map[string]struct {
		column                 Column
		number, uuid, objectID Form
	}{
		"CHAR(36)":      {char(36), FormNumber, FormUUID, FormHex24},
		"CHAR(40)":      {char(40), FormNumber, FormUUID, FormHex24},
		"CHAR(35)":      {char(35), FormNumber, FormNone, FormHex24},
		"CHAR(32)":      {char(32), FormNumber, FormHex32, FormHex24},
		"VARCHAR(32)":   {varchar(32), FormNumber, FormHex32, FormHex24},
		"VARCHAR(255)":  {varchar(255), FormNumber, FormUUID, FormHex24},
		"CHAR(31)":      {char(31), FormNumber, FormNone, FormHex24},
		"CHAR(24)":      {char(24), FormNumber, FormNone, FormHex24},
		"CHAR(23)":      {char(23), FormNumber, FormNone, FormNone},
		"BINARY(16)":    {binary(16), FormNumber, FormBytes16, FormNone},
		"BINARY(12)":    {binary(12), FormNumber, FormNone, FormBytes12},
		"BINARY(36)":    {binary(36), FormNumber, FormNone, FormNone},
		"VARBINARY(16)": {varbinary(16), FormNumber, FormBytes16, FormBytes12},
		"VARBINARY(36)": {varbinary(36), FormNumber, FormBytes16, FormBytes12},
		"VARBINARY(11)": {varbinary(11), FormNumber, FormNone, FormNone},
		"UUID":          {Column{Text: true, Length: 36, UUID: true}, FormNone, FormBytes16, FormNone},
		"BIGINT":        {Column{Bytes: true, Max: 1<<63 - 1}, FormNumber, FormNone, FormNone},
		"BLOB":          {Column{Bytes: true}, FormNone, FormNone, FormNone},
	} {
		for kind, want := range map[IDKind]Form{Number: tt.number, UUID: tt.uuid, ObjectID: tt.objectID} {
			assert.Equal(t, fmt.Sprintf("%s for kind %d: form", name, kind), tt.column.Form(kind), want)
		}
	}
}

func TestAppendWide(t *testing.T) {
	id := [2]uint64{0x017f22e279b07cc3, 0x98c4dc0c0c07398f}
	for form, want := range map[Form][2]string{
		FormUUID:    {"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'"},
		FormHex32:   {"017f22e279b07cc398c4dc0c0c07398f", "'017f22e279b07cc398c4dc0c0c07398f'"},
		FormHex24:   {"017f22e279b07cc398c4dc0c", "'017f22e279b07cc398c4dc0c'"},
		FormBytes16: {"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "X'017f22e279b07cc398c4dc0c0c07398f'"},
		FormBytes12: {"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c", "X'017f22e279b07cc398c4dc0c'"},
	} {
		value, literal := string(form.AppendValue(nil, id)), string(form.AppendLiteral(nil, id))
		assert.True(t, value == want[0] && literal == want[1] && len(literal) <= LongestLiteral, "form %d: %q and %s, want %q and %s", form, value, literal, want[0], want[1])
	}
}

// FuzzSameColumn: the short way says what the long one does.
func FuzzSameColumn(f *testing.F) {
	for _, names := range [][2]string{{"id", "ID"}, {"id", "i"}, {"a_b", "A\x7fB"}, {"\u00e9", "\u00c9"}, {"k", "\u212a"}, {"\u212a", "k"}, {"x\u00e9y", "x\u00e9Y"}, {"@", "`"}} {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		want := ascii.EqualFold(a, b) || !ascii.ValidString(a) && pattern.Fold(a) == pattern.Fold(b)
		assert.Equal(t, fmt.Sprintf("SameColumn(%q, %q)", a, b), SameColumn(a, b), want)
	})
}
