package dynamic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// bytesOf is an expression of a text with other bytes in it, which stand between # and # in hexadecimal.
func bytesOf(text string) string {
	var parts []string
	for i, part := range strings.Split(text, "#") {
		if i%2 == 1 {
			parts = append(parts, "X'"+part+"'")
		} else {
			parts = append(parts, "'"+strings.ReplaceAll(part, "'", "''")+"'")
		}
	}
	return "CONCAT(" + strings.Join(parts, ",") + ")"
}

const insertText = "INSERT INTO orders (v, l, u, a) VALUES ("

// sourceTexts bring the text of an INSERT from a variable.
var sourceTexts = []struct {
	name string
	run  []string
}{
	{"small", []string{"SET @t = " + bytesOf(insertText+"'x', 'y', 'z', 1)")}},
	{"bytes behind _binary", []string{"SET @t = " + bytesOf(insertText+"_binary'#FF00E480#', 'y', 'z', 1)")}},
	{"bytes that are no UTF-8", []string{"SET @t = " + bytesOf(insertText+"'#FFE4#', 'y', 'z', 1)")}},
	{"bytes behind _latin1", []string{"SET @t = " + bytesOf(insertText+"'x', _latin1'#E4F6#', 'z', 1)")}},
	{"UTF-8 in a binary text", []string{"SET @t = " + bytesOf(insertText+"'x', '#C3A4#', '#E28880#', 1)")}},
	{"UTF-8 in a text", []string{"SET @t = CONVERT(" + bytesOf(insertText+"'x', '#C3A4#', '#E28880#', 1)") + " USING utf8mb4)"}},
	{"latin1 in a text", []string{"SET @t = CONVERT(" + bytesOf(insertText+"'x', '#E4#', '#F6#', 1)") + " USING latin1)"}},
	{"a session in latin1", []string{"SET NAMES latin1", "SET @t = " + bytesOf(insertText+"'#E4#', '#E4#', '#F6#', 1)")}},
	{"a session in latin1, a text", []string{"SET NAMES latin1", "SET @t = CONVERT(" + bytesOf(insertText+"'x', '#E4#', '#F6#', 1)") + " USING latin1)"}},
	{"a session in latin1, a text in UTF-8", []string{"SET NAMES latin1", "SET @t = CONVERT(" + bytesOf(insertText+"'x', '#C3A4#', '#C3B6#', 1)") + " USING utf8mb4)"}},
	{"a session in latin1, bytes behind _binary", []string{"SET NAMES latin1", "SET @t = " + bytesOf(insertText+"_binary'#FF00E480#', 'y', 'z', 1)")}},
	{"a session in gbk", []string{"SET NAMES gbk", "SET @t = " + bytesOf(insertText+"_binary'#FF80#', '#C4E3#', '#C4E3#', 1)")}},
	{"a connection in another set", []string{"SET NAMES latin1", "SET character_set_connection = utf8mb4", "SET @t = " + bytesOf(insertText+"'x', '#E4#', '#E4#', 1)")}},
	{"a connection in another set, a text", []string{"SET NAMES latin1", "SET character_set_connection = utf8mb4", "SET @t = CONVERT(" + bytesOf(insertText+"'x', '#E4#', '#E4#', 1)") + " USING latin1)"}},
	{"a connection in another set, a text in it", []string{"SET NAMES utf8mb4", "SET character_set_connection = latin1", "SET @t = CONVERT(" + bytesOf(insertText+"'x', '#C3A4#', '#C3A4#', 1)") + " USING utf8mb4)"}},
	{"UTF-16", []string{"SET @t = CONVERT(" + bytesOf(insertText+"'x', '#C3A4#', 'z', 1)") + " USING utf16)"}},
	{"a number", []string{"SET @t = 7"}},
	{"NULL", []string{"SET @t = NULL"}},
	{"half of max_allowed_packet", []string{"SET @t = CONCAT(" + "'" + insertText + "''', REPEAT('x', 700000), ''', ''y'', ''z'', 1)')"}},
	{"half of max_allowed_packet, other bytes", []string{"SET @t = CONCAT(" + "'" + insertText + "_binary''', REPEAT(X'FF', 400000), ''', ''y'', ''z'', 1)')"}},
	{"all of max_allowed_packet", []string{"SET @t = CONCAT(" + "'" + insertText + "''', REPEAT('x', 1048400), ''', ''y'', ''z'', 1)')"}},
}

// literalTexts are texts of an INSERT that stand in a literal, as the client's bytes.
var literalTexts = []struct {
	name, charset, text string
}{
	{"UTF-8", "utf8mb4", insertText + "'x', '\xc3\xa4', '\xe2\x88\x80', 1)"},
	{"bytes behind _binary", "utf8mb4", insertText + "_binary'\xff\xe4\x80', 'y', 'z', 1)"},
	{"bytes behind _latin1", "utf8mb4", insertText + "'x', _latin1'\xe4\xf6', 'z', 1)"},
	{"latin1", "latin1", insertText + "'\xe4', '\xe4', '\xf6', 1)"},
	{"latin1, bytes behind _binary", "latin1", insertText + "_binary'\xff\xe4\x80', 'y', 'z', 1)"},
	{"gbk", "gbk", insertText + "'x', 'y', '\xc4\xe3', 1)"},
	{"gbk, bytes behind _binary", "gbk", insertText + "_binary'\xff\x80', 'y', 'z', 1)"},
}

// TestSourceText: what an INSERT stores whose text a PREPARE or EXECUTE IMMEDIATE takes from a variable is what it
// stores natively, whatever bytes are in it.
func TestSourceText(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			server := harness.StartServer(t, kind, servers.Options{Args: []string{"--max-allowed-packet=1M"}})
			var setup []string
			for _, schema := range []string{"DB", "DB_other"} {
				id := map[string]string{"DB": "id BIGINT PRIMARY KEY", "DB_other": "id BIGINT AUTO_INCREMENT PRIMARY KEY"}[schema]
				setup = append(setup, "CREATE TABLE "+schema+".orders ("+id+", v LONGBLOB, l VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf8mb4, a INT)")
			}
			w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}]", setup...)
			run := func(name string, texts ...string) {
				t.Run(name, func(t *testing.T) {
					ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
					var got [2]string
					for i, s := range []*wireclient.Session{ours, native} {
						for _, sql := range append(texts, "SELECT id IS NULL OR id = 0, LENGTH(v), SHA2(v, 256), HEX(LEFT(v, 20)), HEX(l), HEX(u), a FROM orders ORDER BY id", "DELETE FROM orders") {
							for _, r := range unseenStep(s, t, sql) {
								got[i] += fmt.Sprintf("%.40s: %s; ", sql, pair.Shown(r))
							}
						}
					}
					assert.Equal(t, "stored", got[0], got[1])
				})
			}
			for _, text := range sourceTexts {
				run(text.name+", PREPARE", slices.Concat(text.run, prepares("@t"))...)
				if kind == servers.MariaDB {
					run(text.name+", EXECUTE IMMEDIATE", append(slices.Clone(text.run), "EXECUTE IMMEDIATE @t")...)
				}
			}
			for _, text := range literalTexts {
				if text.charset == "gbk" && kind == servers.MySQL { // it reads them as other characters, which is refused
					continue
				}
				literal := "'" + strings.ReplaceAll(text.text, "'", "''") + "'"
				run("literal, "+text.name+", PREPARE", append([]string{"SET NAMES " + text.charset}, prepares(literal)...)...)
				if kind == servers.MariaDB {
					run("literal, "+text.name+", EXECUTE IMMEDIATE", "SET NAMES "+text.charset, "EXECUTE IMMEDIATE "+literal)
				}
			}
		})
	}
}

// TestSourceTextLimits: a text that the server is asked for is held like a statement that long.
func TestSourceTextLimits(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	name, _ := harness.Tables(t, server, "CREATE TABLE orders (id BIGINT PRIMARY KEY, v LONGBLOB)")
	for limits, code := range map[string]uint16{"statement: 1MiB": 1153, "held: 3MiB": 1041} {
		p := harness.Start(t, harness.Spec{Config: harness.OneListener(server.Addr) + "limits: {" + limits + "}\nsources: {ids: {segment: {}}}\n" +
			"rules: [{table: " + name + ".orders, column: id, source: ids}]\n"})
		s := wireclient.Open(t, p.Addr("a"), name)
		set := func(size int) string {
			return fmt.Sprintf("SET @t = CONCAT('INSERT INTO orders (v) VALUES (''', REPEAT('x', %d), ''')')", size)
		}
		s.Must(t, set(2<<20))
		for range 3 {
			assert.Equal(t, limits+": a text of 2 MiB", s.Fails(t, "PREPARE p FROM @t").Code, code)
		}
		s.Must(t, set(1<<19))
		for range 9 { // what it takes is given back
			s.Must(t, "PREPARE p FROM @t", "EXECUTE p")
		}
	}
}

// prepares are statements that prepare a text and execute it, also when its table is another one.
func prepares(text string) []string {
	return []string{"PREPARE p FROM " + text, "EXECUTE p", "ALTER TABLE orders ADD more INT", "EXECUTE p", "ALTER TABLE orders DROP more", "DEALLOCATE PREPARE p"}
}
