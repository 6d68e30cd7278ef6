package replies

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/wireclient"
)

// diagnosticsReaders are texts that read what the statement before left behind, with a doubt in
// them, so that something is to be asked. T is the table that an INSERT in it writes to.
var diagnosticsReaders = []string{
	`SELECT ROW_COUNT(), "T"`,
	`SELECT FOUND_ROWS() AS f, "T"`,
	`SHOW COUNT(*) WARNINGS; INSERT INTO T (a) VALUES ("1")`,
	`SHOW COUNT(*) ERRORS; INSERT INTO T (a) VALUES ("1"), ("2"); SELECT ROW_COUNT()`,
	`SHOW WARNINGS; INSERT INTO T (a) VALUES ("1"); SHOW WARNINGS`,
	`SELECT @@warning_count; INSERT INTO T (a) VALUES ("1")`,
	`SELECT @@error_count, "T"`,
	`GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT; INSERT INTO T (a) VALUES (@r), ("4"); SELECT @n, @r, ROW_COUNT()`,
	`SELECT ROW_COUNT(); SELECT FOUND_ROWS(); INSERT INTO T (a) VALUES ("1"); SELECT ROW_COUNT()`,
	`SELECT ROW_COUNT() AS r; INSERT INTO T (a) VALUES (FOUND_ROWS()); SELECT a FROM T`,
	`GET CURRENT DIAGNOSTICS @n = NUMBER; PREPARE p FROM 'SELECT 5'; EXECUTE p; SELECT @n, "T"`,
	`GET DIAGNOSTICS @r = ROW_COUNT; EXECUTE old; DEALLOCATE PREPARE old; SELECT @r, "x", FOUND_ROWS()`,
	`SELECT FOUND_ROWS(); PREPARE p FROM 'SELECT 5'; INSERT INTO T (a) VALUES ("1"); SELECT ROW_COUNT(), FOUND_ROWS() AS f`,
	`PREPARE p FROM 'DO 1'; SELECT FOUND_ROWS() AS f, "x"`,
	`DEALLOCATE PREPARE old; SELECT FOUND_ROWS() AS f, "x"`,
	`INSERT INTO T (a) VALUES ("x"), ("2"); SHOW WARNINGS; SHOW COUNT(*) WARNINGS`,
	`INSERT INTO T (a) VALUES ("x"); SELECT ROW_COUNT()`,
	`INSERT INTO T (b) VALUES ("x"); SHOW ERRORS`,
	`INSERT INTO T (a) VALUES (1); GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT; SELECT @n, @r`,
}

// diagnosticsStorers are INSERTs that read it themselves: exact where nothing is left to be asked
// about their table and the session.
var diagnosticsStorers = []string{
	`INSERT INTO T (a) VALUES (ROW_COUNT()); SELECT a FROM T`,
	`INSERT INTO T (a) VALUES (FOUND_ROWS()); SELECT a FROM T`,
	`INSERT INTO T (a) VALUES (@@warning_count); SELECT a FROM T`,
	`INSERT INTO T (a) VALUES (ROW_COUNT()), (FOUND_ROWS()), ("7"); SELECT a FROM T`,
}

// TestReaders: what reads the diagnostics, or counts, of the statement before reads what it would
// read natively, whatever is asked about the text that it stands in.
func TestReaders(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: none, listen: "127.0.0.1:0", upstream: %q}
  - {name: another, listen: "127.0.0.1:0", upstream: %q}
  - {name: elsewhere, listen: "127.0.0.1:0", upstream: %q}
  - {name: own, listen: "127.0.0.1:0", upstream: %q}
sources: {ids: {segment: {}}}
rules:
  - {table: nowhere.nothing, column: id, source: ids, listeners: [none]}
  - {table: "*.order", column: id, source: ids, listeners: [another]}
  - {table: elsewhere.orders, column: id, source: ids, listeners: [elsewhere]}
  - {table: "*.orders", column: id, source: ids, listeners: [own]}
`, server.Addr, server.Addr, server.Addr, server.Addr))
		native, filled := harness.Database(t, server), harness.Database(t, server)
		makeReaders(t, server.Addr, native, "BIGINT AUTO_INCREMENT")
		makeReaders(t, server.Addr, filled, "BIGINT")
		for _, listener := range []string{"none", "another", "elsewhere", "own"} {
			for _, way := range []string{"text", "statements", "prepared"} {
				t.Run(fmt.Sprintf("%s/%s/%s", server.Kind, listener, way), func(t *testing.T) {
					db := native
					if listener == "own" {
						db = filled
					}
					compare := func(texts []string, begin ...string) {
						for _, text := range texts {
							text = tableT.ReplaceAllString(text, "orders")
							want, got := readWith(t, server.Addr, native, way, append(begin, text)...), readWith(t, proxy.Addr(listener), db, way, append(begin, text)...)
							assert.True(t, want == strings.ReplaceAll(got, db, native), "%s\n got  %s\n want %s", text, got, want)
						}
					}
					compare(diagnosticsReaders)
					compare(diagnosticsStorers, `INSERT INTO orders (a) VALUES ("0"), ("0")`)
				})
			}
		}
	}
}

var tableT = regexp.MustCompile(`\bT\b`)

func makeReaders(t *testing.T, addr, db, id string) {
	wireclient.Open(t, addr, db).Must(t, "CREATE TABLE orders (id "+id+" PRIMARY KEY, a INT)", "CREATE TABLE free (a INT)")
}

// readWith runs texts in a session of their own, and returns what the last one gave: in front of it
// is a statement that left two rows and a warning, and one that found three rows.
func readWith(t *testing.T, addr, db, way string, texts ...string) (out string) {
	t.Helper()
	c := wireclient.Open(t, addr, db)
	defer c.Close()
	last := len(texts) - 1
	c.Must(t, "DELETE FROM orders", "PREPARE old FROM 'SELECT 6'", "SET SESSION sql_mode = ''")
	c.Must(t, texts[:last]...)
	c.Must(t, "SELECT 1 UNION SELECT 2 UNION SELECT 3", "INSERT INTO free VALUES ('x'), (2)")
	texts = texts[last:]
	run := c.Query
	if way != "text" {
		texts = strings.Split(texts[0], "; ")
	}
	if way == "prepared" {
		run = c.Prepared
	}
	for _, text := range texts {
		all := assert.Of(run(text)).Must(t)
		for _, r := range all {
			said := ""
			if r.Err != nil {
				said = r.Err.Error()
			}
			out += fmt.Sprintf("%d rows, %d warnings, %q %s; ", r.Affected, r.Warnings, r.Rows, said)
		}
	}
	return out
}
