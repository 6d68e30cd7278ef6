package main

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/harness"
)

// tableFindings are tables, and what check --online says of each.
var tableFindings = []struct {
	name, only string
	table      string   // its columns
	setup      []string // behind its creation
	rule       string   // more keys of the rule
	want       string   // part of a finding; empty: no warning, no error
	level      string   // default warning
}{
	{name: "fine", table: "id BIGINT PRIMARY KEY, a INT"},
	{name: "AUTO_INCREMENT", table: "id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT"},
	{
		name: "double", table: "id DOUBLE PRIMARY KEY", level: levelError,
		want: "the column's type cannot hold generated ids exactly; make it BIGINT",
	},
	{name: "float", table: "id FLOAT PRIMARY KEY", level: levelError, want: "cannot hold generated ids exactly"},
	{name: "gene", table: "id BIGINT PRIMARY KEY, k INT UNSIGNED", rule: ", gene: {column: k, bits: 8}"},
	{name: "gene of a text", table: "id BIGINT PRIMARY KEY, k VARCHAR(9) CHARACTER SET ascii", rule: ", gene: {column: k, bits: 8, by: crc32}"},
	{
		name: "gene of no column", table: "id BIGINT PRIMARY KEY", level: levelError, rule: ", gene: {column: k, bits: 8}",
		want: "gene: the table has no column k",
	},
	{
		name: "gene of another type", table: "id BIGINT PRIMARY KEY, k DECIMAL(9)", level: levelError, rule: ", gene: {column: k, bits: 8}",
		want: "gene: column k is no integer, which by: mod needs",
	},
	{
		name: "gene of another character set", table: "id BIGINT PRIMARY KEY, k CHAR(9) CHARACTER SET ucs2", level: levelError, rule: ", gene: {column: k, bits: 8, by: crc32}",
		want: "gene: column k has character set ucs2: by: crc32 knows utf8mb4, utf8mb3, latin1, ascii and binary",
	},
	{
		name: "default", table: "id BIGINT NOT NULL DEFAULT 0 PRIMARY KEY", want: "the column has a default",
	},
	{name: "NULL by default", table: "id BIGINT DEFAULT NULL, a INT"},
	{
		name: "invisible", only: "MariaDB", table: "a INT, id BIGINT AUTO_INCREMENT INVISIBLE PRIMARY KEY", level: levelNote,
		want: "lets AUTO_INCREMENT go only if it gets a default (error 4108)",
	},
	{name: "invisible with default", table: "a INT, id BIGINT NOT NULL DEFAULT 0 INVISIBLE PRIMARY KEY", want: "add CHECK (id > 0)"},
	{name: "invisible without", only: "MySQL", table: "a INT, id BIGINT NOT NULL INVISIBLE PRIMARY KEY"},
	{
		name: "column grant", table: "id BIGINT PRIMARY KEY, a INT, b INT", setup: []string{"GRANT INSERT (a, b) ON DB.t TO part@'%'", "GRANT SELECT ON DB.t TO part@'%'"},
		want: "account 'part'@'%' may insert into some columns but not into id: its INSERTs fail with 1143; GRANT INSERT (`id`) ON `DB`.`t` to it",
	},
	{name: "column grant with id", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"GRANT INSERT (a, ID) ON DB.t TO part@'%'"}},
	{name: "column and table grant", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"GRANT INSERT (a) ON DB.t TO part@'%'", "GRANT INSERT ON DB.t TO part@'%'"}},
	{name: "column and schema grant", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"GRANT INSERT (a) ON DB.t TO part@'%'", "GRANT INSERT, SELECT ON DB.* TO part@'%'"}},
	{
		name: "select grant", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"GRANT INSERT, SELECT (a) ON DB.t TO part@'%'"},
		want: "account 'part'@'%' may select some columns only: the table cannot be described to it",
	},
	{
		name: "view without rule", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"CREATE VIEW DB.v AS SELECT a FROM DB.t"},
		want: "view DB.v of the table has no rule: an INSERT through it gets no id; add a rule for the view",
	},
	{
		name: "view without id", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"CREATE VIEW DB.ruled_v AS SELECT a FROM DB.t"},
		want: "view DB.ruled_v of the table does not show column id, which rule DB.ruled_*.id names",
	},
	{name: "view with id", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"CREATE VIEW DB.ruled_v AS SELECT id, a FROM DB.t"}},
	{name: "view that takes no rows", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"CREATE VIEW DB.v AS SELECT COUNT(*) FROM DB.t"}},
	{
		name: "trigger", table: "id BIGINT PRIMARY KEY, a INT",
		setup: []string{"CREATE TRIGGER DB.tr BEFORE INSERT ON DB.t FOR EACH ROW BEGIN SET @x = 1; SET NEW.a = 5, new . `ID` = 900; END"},
		want:  "trigger tr sets NEW.id",
	},
	{
		name: "trigger that reads", table: "id BIGINT PRIMARY KEY, a INT",
		setup: []string{"CREATE TRIGGER DB.tr BEFORE INSERT ON DB.t FOR EACH ROW IF NEW.id = 5 THEN SET NEW.a = 5; END IF"},
	},
	{
		name: "procedure", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"CREATE PROCEDURE DB.p() INSERT INTO t (a) VALUES (1)"},
		want: "procedure p inserts into the table inside the server",
	},
	{
		name: "trigger elsewhere", table: "id BIGINT PRIMARY KEY, a INT",
		setup: []string{"CREATE TABLE DB.other (x INT)", "CREATE TRIGGER DB.tr AFTER INSERT ON DB.other FOR EACH ROW REPLACE `t` VALUES (1, 2)"},
		want:  "trigger tr inserts into the table inside the server",
	},
	{
		name: "event", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"CREATE EVENT DB.ev ON SCHEDULE EVERY 1 YEAR DISABLE DO INSERT INTO DB.t VALUES (1, 2)"},
		want: "event ev inserts into the table inside the server",
	},
	{name: "procedure elsewhere", table: "id BIGINT PRIMARY KEY, a INT", setup: []string{"CREATE PROCEDURE DB.p() INSERT INTO tt (a) SELECT t.a FROM t"}},
	{name: "forward, strict", table: "id BIGINT PRIMARY KEY", rule: ", unsupported: forward"},
	{
		name: "forward, not strict", table: "id BIGINT PRIMARY KEY", rule: ", unsupported: forward", setup: []string{"SET GLOBAL sql_mode = ''"},
		want: "unsupported: forward, and the server's sql_mode is not strict: what would pass is refused all the same",
	},
	{
		name: "forward, AUTO_INCREMENT", table: "id BIGINT AUTO_INCREMENT PRIMARY KEY", rule: ", unsupported: forward",
		want: "what passes without an id draws one from the server's own counter",
	},
}

func TestCheckOnlineFindings(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			admin := harness.Open(t, server.Config(""), "")
			admin.SetMaxOpenConns(1)
			for _, tt := range tableFindings {
				if tt.only != "" && tt.only != server.Kind.String() {
					continue
				}
				t.Run(tt.name, func(t *testing.T) {
					name := harness.Database(t, server)
					run := func(text string) {
						t.Helper()
						if _, err := admin.Exec(strings.ReplaceAll(text, "DB", name)); err != nil {
							t.Fatalf("%s: %v", text, err)
						}
					}
					run("CREATE USER part@'%' IDENTIFIED BY ''")
					defer run("DROP USER part@'%'")
					run("CREATE TABLE DB.t (" + tt.table + ")")
					defer run("SET GLOBAL sql_mode = DEFAULT")
					for _, text := range tt.setup {
						run(text)
					}
					path := writeConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q, account: {user: app, password: app}}]
stores: {main: {mysql: {dsn: "app:app@tcp(%[1]s)/%[2]s"}}}
sources: {ids: {segment: {store: main}}}
rules: [{table: %[2]s.t, column: id, source: ids%[3]s}, {table: "%[2]s.ruled_*", column: id, source: ids}]
`, server.Addr, name, tt.rule))
					got := runWith(t, "", "check", "--online", "--config", path)
					checkFindings(t, got.out, tt.level, strings.ReplaceAll(tt.want, "DB", name))
				})
			}
		})
	}
}

// checkFindings wants one finding of a level, or none that matters.
func checkFindings(t *testing.T, out, level, want string) {
	t.Helper()
	if level == "" {
		level = levelWarning
	}
	if want != "" {
		for line := range strings.Lines(out) {
			if strings.Contains(line, want) && strings.Contains(line, ":4:9: "+level+": rule ") {
				out = strings.Replace(out, line, "", 1)
				want = ""
				break
			}
		}
	}
	if want != "" {
		t.Errorf("%q is no %s in %q", want, level, out)
	}
	if strings.Contains(out, ": warning: ") || strings.Contains(out, ": error: ") || strings.Contains(out, "not checked") {
		t.Errorf("findings that were not meant: %q", out)
	}
}

// TestCheckOnlineDenied is an account that may look at the table alone.
func TestCheckOnlineDenied(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	admin := harness.Open(t, server.Config(name), "")
	for _, text := range []string{
		"CREATE TABLE t (id BIGINT PRIMARY KEY)", "CREATE USER little@'%' IDENTIFIED BY 'x'", "GRANT SELECT ON " + name + ".t TO little@'%'",
	} {
		if _, err := admin.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if _, err := admin.Exec("DROP USER little@'%'"); err != nil {
			t.Error(err)
		}
	}()
	path := writeConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: little, password: x}}]
sources: {ids: {segment: {}}}
rules: [{table: %s.t, column: id, source: ids}]
`, server.Addr, name))
	got := runWith(t, "", "check", "--online", "--config", path)
	if got.status != statusFine {
		t.Errorf("status %d: %s", got.status, got.out)
	}
	holds(t, "the findings", got.out, "note: rule "+name+".t.id: not checked: column grants: the account may not look: ")
}
