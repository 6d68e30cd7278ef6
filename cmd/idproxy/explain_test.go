package main

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// explainConfig is a file with rules of all kinds.
const explainConfig = "explain/testdata/rules.yaml"

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		name, sql string
		status    int
		want      []string // parts of the output
	}{
		{"filled", "INSERT INTO shop.orders (a) VALUES ('x')", 0, []string{
			"-- rule shop.orders.id: 1 of 1 rows get ids from source ids; here 1 to 1",
			"INSERT INTO shop.orders (a,`id`) VALUES ('x',LAST_INSERT_ID(1));",
		}},
		{"rows", "INSERT INTO shop.orders (id,a) VALUES (NULL,1),(7,2),(0,3)", 0, []string{
			"2 of 3 rows", "VALUES (1,1),(7,2),(LAST_INSERT_ID(1)+1,3)",
		}},
		{"explicit", "INSERT INTO shop.orders (id) VALUES (7)", 0, []string{"-- forwarded unchanged: every row brings its own id"}},
		{"another table", "INSERT INTO shop.items (a) VALUES (1)", 0, []string{"forwarded unchanged: no rule for table items"}},
		{"another kind", "SELECT 1", 0, []string{"forwarded unchanged: nothing a rule is concerned with"}},
		{"refused form", "INSERT INTO shop.orders (a) SELECT f(1)", 1, []string{
			"-- refused by rule shop.orders.id: it can't be filled: INSERT ... SELECT that calls a function which may do more than read\n",
		}},
		{"query", "INSERT INTO shop.orders (a) SELECT b FROM s", 0, []string{
			"-- the server counts the rows first: WITH `idproxy0`(`idproxy3`) AS (SELECT b FROM s) SELECT /*+ MAX_EXECUTION_TIME(4294967295) */ COUNT(*),LAST_INSERT_ID() FROM `idproxy0` LIMIT 1\n",
			"INSERT INTO shop.orders (a,`id`) SELECT b ,IF(ROW_NUMBER() OVER `idproxy2`>1000,",
		}},
		{"refused expression", "INSERT INTO shop.orders (id) VALUES (f())", 1, []string{"it can't be filled: expression for column id\n"}},
		{"not understood", "INSERT INTO shop.orders (a) VALUES (1", 1, []string{"id: not understood at byte 37: "}},
		{"prepared", "INSERT INTO shop.orders (a) VALUES (?), ('?')", 0, []string{
			"-- rule shop.orders.id: 2 of 2 rows get ids from source ids at each execution, by parameters that the client does not see",
			"VALUES (?,?), ('?',LAST_INSERT_ID(?)+?);",
		}},
		{"bound", "INSERT INTO shop.orders (id, a) VALUES (?, ?)", 0, []string{
			"-- rule shop.orders.id: in 1 of 1 rows id is a parameter, which gets an id from source ids where NULL or 0 is bound", "VALUES (?, ?);",
		}},
		{"asked expression", "INSERT INTO shop.orders (id, a) VALUES (@x, 1), (1.5 - @@y, 2)", 0, []string{
			"-- the server is asked first what is worth: @x, 1.5 - @@y; ", "VALUES (1, 1), (2, 2);",
		}},
		{"ignore", "INSERT IGNORE INTO shop.orders (a) VALUES (1), (2)", 0, []string{
			"-- the outcome decides the insert id and LAST_INSERT_ID(): when not all rows went in, the server is asked", "VALUES (1,1), (2,2);",
		}},
		{"ignore one", "INSERT IGNORE INTO shop.orders (a) VALUES (1)", 0, []string{"none if it was skipped"}},
		{"update", "INSERT INTO shop.orders (a) VALUES (1) ON DUPLICATE KEY UPDATE a=2", 0, []string{
			"the old row's in the OK packet if it was updated", "VALUES (1,1) ON DUPLICATE KEY UPDATE a=2,`orders`.`id`=",
		}},
		{"set", "INSERT INTO shop.orders SET a=1", 0, []string{"SET a=1,`id`=LAST_INSERT_ID(1);"}},
		{"packet", "INSERT INTO shop.middle (a) VALUES (1), (2)", 0, []string{"-- last_insert_id: packet: the OK packet shows the first new id", "VALUES (1,1), (2,2);"}},
		{"several columns", "INSERT INTO shop.two (a) VALUES (1), (2)", 0, []string{
			"-- rule shop.two.id: 2 of 2 rows get ids from source ids; here 1 to 2", "-- rule shop.two.nr: 2 of 2 rows get ids from source ids; here 3 to 4",
			"INSERT INTO shop.two (a,`nr`,`id`) VALUES (1,3,1), (2,4,LAST_INSERT_ID(1)+1);",
		}},
		{"advance", "INSERT INTO shop.two (id, nr) VALUES (70, 80), (NULL, 79)", 0, []string{
			"-- rule shop.two.id: source ids is moved past 70 first", "-- rule shop.two.nr: source ids is moved past 80 first",
		}},
		{"advance by nothing", "INSERT INTO shop.two (id, nr) VALUES (-70, 0)", 0, []string{"1 of 1 rows get ids"}},
		{"one observes", "INSERT INTO shop.half (a) VALUES (1)", 0, []string{
			"-- rule shop.half.nr only observes; 1 of 1 rows would get ids", "INSERT INTO shop.half (a,`id`) VALUES (1,LAST_INSERT_ID(1));",
		}},
		{"prepare", "PREPARE s FROM 'INSERT INTO shop.orders (a) VALUES (''x'')'", 0, []string{
			"-- at each EXECUTE new ids;", "PREPARE s FROM 'INSERT INTO shop.orders (a,`id`) VALUES (''x'',LAST_INSERT_ID(?))';",
		}},
		{"prepare a query", "PREPARE s FROM 'INSERT INTO shop.orders (a) SELECT 1'", 1, []string{"it can't be filled: INSERT ... SELECT in SQL PREPARE\n"}},
		{"prepare a file", "PREPARE s FROM 'LOAD DATA LOCAL INFILE ''x'' INTO TABLE shop.orders'", 1, []string{"LOAD DATA in a prepared statement"}},
		{"prepare another table", "PREPARE s FROM 'INSERT INTO shop.items (a) VALUES (1)'", 0, []string{"forwarded unchanged: no rule for table items"}},
		{"prepare a variable", "PREPARE s FROM @v", 0, []string{"the server is asked for the text first"}},
		{"prepare what may change", "PREPARE s FROM CONCAT(@v, RAND())", 0, []string{"forwarded unchanged: the text that it runs is not known"}},
		{"immediate", "EXECUTE IMMEDIATE 'INSERT INTO shop.orders (a) VALUES (?)' USING 5", 0, []string{"a hidden parameter for each id", "EXECUTE IMMEDIATE 'INSERT INTO shop.orders (a,`id`) VALUES (?,LAST_INSERT_ID(?))' USING 5,1;"}},
		{"execute", "EXECUTE s USING @a", 0, []string{"gets the ids of the statement that was prepared"}},
		{"deallocate", "DEALLOCATE PREPARE s", 0, []string{"forwarded unchanged"}},
		{"a block with a variable's text", "BEGIN NOT ATOMIC PREPARE s FROM @v; EXECUTE s; END", 0, []string{"forwarded unchanged: the text that it runs is not known"}},
		{"load", "LOAD DATA INFILE 'x' INTO TABLE shop.orders", 1, []string{"it can't be filled: the server reads the file itself; use LOAD DATA LOCAL INFILE\n"}},
		{"load local", "LOAD DATA LOCAL INFILE 'x' INTO TABLE shop.orders (a)", 0, []string{"in front of each line", "(`id`,a);\n"}},
		{"load with ids", "LOAD DATA LOCAL INFILE 'x' INTO TABLE shop.orders (a, id)", 0, []string{"NULL or 0 in field 2", "(a, id);\n"}},
		{"load xml", "LOAD XML LOCAL INFILE 'x' INTO TABLE shop.orders", 1, []string{"it can't be filled: LOAD XML\n"}},
		{"behind a routine", "CREATE PROCEDURE p() BEGIN SELECT 1; END; INSERT INTO shop.orders (a) VALUES (1)", 1, []string{"refused by rule shop.orders.id"}},
		{"table not read", "INSERT INTO /*!50000 shop.orders */ (a) VALUES (1)", 1, []string{"refused"}},
		{"no column list", "INSERT INTO shop.orders VALUES (1)", 1, []string{"ask again with --online"}},
		{"observed", "INSERT INTO shop.seen (a) VALUES (1)", 0, []string{"only observes; 1 of 1 rows would get ids\nINSERT INTO shop.seen (a) VALUES (1);"}},
		{"observed expression", "INSERT INTO shop.seen (id) VALUES (@x)", 0, []string{"-- forwarded unchanged: rule shop.seen.id only observes"}},
		{"observed, explicit", "INSERT INTO shop.seen (id) VALUES (1)", 0, []string{"forwarded unchanged"}},
		{"forwarded form", "INSERT INTO shop.loose (a) SELECT f(1)", 0, []string{
			"forwarded unchanged, without ids, as rule shop.loose.id says, unless the server would store 0: it can't be filled: INSERT ... SELECT that calls a function which may do more than read\n",
		}},
		{"rejected value", "INSERT INTO shop.strict (id) VALUES (1)", 1, []string{
			"-- refused by rule shop.strict.id: explicit: reject, and the statement gives id a value of its own\n",
		}},
		{"several", "USE shop; INSERT INTO orders (a) VALUES (1); INSERT INTO orders (a) VALUES (2)", 0, []string{
			"USE shop;", "LAST_INSERT_ID(1)", "LAST_INSERT_ID(2)",
		}},
		{"one of several", "INSERT INTO shop.orders (a) VALUES (1); INSERT INTO shop.orders (a) SELECT f(1)", 1, []string{
			"LAST_INSERT_ID(1)", "more than read",
		}},
		{"behind a refused one", "INSERT INTO shop.orders (a) SELECT f(1); INSERT INTO shop.orders (a) VALUES (2)", 1, []string{"more than read", "LAST_INSERT_ID(1)"}},
		{"own temporary table", "CREATE TEMPORARY TABLE shop.orders (a INT); INSERT INTO shop.orders (a) VALUES (1)", 0, []string{
			"forwarded unchanged: the table is a temporary one of the session's own", "VALUES (1);\n",
		}},
		{"prepare and execute", "PREPARE s FROM 'INSERT INTO shop.orders (a) VALUES (?)'; EXECUTE s USING @a", 0, []string{
			"-- rule shop.orders.id: 1 of 1 rows get ids from source ids; here 1 to 1 stand for them\nEXECUTE s USING @a,1;\n",
		}},
		{"execute a bound id", "PREPARE s FROM 'INSERT INTO shop.orders (id) VALUES (?)'; EXECUTE s USING @a", 0, []string{
			"the server is asked first what is worth: @a; what generates gets an id", "EXECUTE s USING 1;\n",
		}},
		{"execute a refused one", "PREPARE s FROM 'INSERT INTO shop.orders (a) SELECT 1'; EXECUTE s", 1, []string{"refused: Unknown prepared statement handler (s)"}},
		{"execute behind DDL", "PREPARE s FROM 'INSERT INTO shop.orders (a) VALUES (1)'; ALTER TABLE x ADD y INT; EXECUTE s", 0, []string{"is prepared anew first"}},
		{"behind SET", "SET sql_mode=''; INSERT INTO shop.orders (id) VALUES (0)", 0, []string{"-- a statement in front may have changed the settings", "LAST_INSERT_ID(1)"}},
		{"behind SET insert_id", "SET insert_id=5; INSERT INTO shop.orders (a) VALUES (0)", 0, []string{"-- a statement in front may have set insert_id", "LAST_INSERT_ID(1)"}},
		{"behind CALL", "CALL p(); INSERT INTO shop.orders (a) VALUES (0)", 0, []string{"-- a statement in front may have made temporary tables", "LAST_INSERT_ID(1)"}},
		{"a parameter behind others", "SELECT 1; INSERT INTO shop.orders (a) VALUES (?); SELECT 2", 0, []string{"SELECT 1;\n", "VALUES (?,LAST_INSERT_ID(?));\n", "SELECT 2;\n"}},
		{"prepared query", "INSERT INTO shop.orders (a) SELECT ?", 0, []string{"at each execution the server counts the rows first", "SELECT ?;\n"}},
		{"prepared explicit value", "INSERT INTO shop.strict (id) VALUES (5), (?)", 0, []string{"each execution is refused (explicit: reject)"}},
		{"wildcard", "INSERT INTO shop.log_1 (a) VALUES (1)", 0, []string{"-- rule shop.log_*.id is a wildcard: it is taken for granted", "LAST_INSERT_ID(1)"}},
		{"gene", "INSERT INTO shop.near (a,user_id) VALUES (1,7),(2,300)", 0, []string{
			"2 of 2 rows get ids from source ids; here 7 to 300 stand for them\n-- rule shop.near.id: the gene: id % 256 = user_id % 256; ids are not consecutive\n",
			"VALUES (1,7,7),(2,300,LAST_INSERT_ID(7)+293);",
		}},
		{"gene of a text", "INSERT INTO shop.named (name) VALUES ('x')", 0, []string{"id % 16 = CRC32(name) % 16", "VALUES ('x',LAST_INSERT_ID(3));"}},
		{"gene, prepared", "INSERT INTO shop.near (user_id) VALUES (?)", 0, []string{"the gene: id % 256 = user_id % 256"}},
		{"gene of nothing", "INSERT INTO shop.near (a) VALUES (1)", 1, []string{
			"-- refused by rule shop.near.id: it can't be filled: a row without column user_id, the gene of its id\n",
		}},
		{"gene of a query", "INSERT INTO shop.near (user_id) SELECT 1", 1, []string{"INSERT ... SELECT into a table whose ids have a gene"}},
		{"gene in a file", "LOAD DATA LOCAL INFILE 'x' INTO TABLE shop.near (user_id)", 1, []string{"LOAD DATA into a table whose ids have a gene"}},
		{"gene in SQL PREPARE", "PREPARE s FROM 'INSERT INTO shop.near (user_id) VALUES (?)'", 1, []string{"INSERT in SQL PREPARE into a table whose ids have a gene"}},
		{"create from a query", "CREATE TABLE shop.orders (id BIGINT) SELECT 1 a", 1, []string{"-- refused by rule shop.orders.id: it can't be filled: CREATE TABLE ... SELECT\n"}},
		{"create of ids that the query gives", "CREATE TABLE shop.orders SELECT 1 id", 0, []string{"forwarded unchanged"}},
		{"create from a query, observed", "CREATE TABLE shop.seen (id BIGINT) SELECT 1 a", 0, []string{"-- forwarded; under enforce: REFUSED by rule shop.seen.id, because it can't be filled: CREATE TABLE ... SELECT\n"}},
		{"block of other tables", "BEGIN NOT ATOMIC INSERT INTO shop.`it``em` VALUES (1); END", 0, []string{"forwarded unchanged"}},
		{"no schema", "INSERT INTO orders (a) VALUES (1)", 0, []string{"--schema sets one"}},
		{"nothing", " ; ", 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runWith(t, tt.sql, "explain", "--verbose", "--config", explainConfig, "-")
			assert.True(t, got.status == tt.status && got.err == "", "status %d, standard error %q", got.status, got.err)
			for _, part := range tt.want {
				holds(t, "the output", got.out, part)
			}
			assert.Equal(t, "as an argument", runWith(t, "", "explain", tt.sql, "--verbose", "--config", explainConfig), got)
		})
	}
}

// TestExplainForeign: a server that is no MySQL gets plain numbers.
func TestExplainForeign(t *testing.T) {
	path := harness.WriteConfig(t, "listeners: [{listen: 127.0.0.1:0, upstream: 127.0.0.1:1, upstream_kind: middleware}]\n"+
		"sources: {ids: {segment: {}}}\nrules: [{table: shop.orders, column: id, source: ids}]\n")
	got := runWith(t, "", "explain", "--config", path, "INSERT INTO shop.orders (id) VALUES (NULL)")
	holds(t, "the statement", got.out, "INSERT INTO shop.orders (id) VALUES (1);")
}

func TestExplainSchema(t *testing.T) {
	got := runWith(t, "", "explain", "--config", explainConfig, "--schema", "shop", "INSERT INTO orders (a) VALUES (1)")
	assert.Equal(t, "status", got.status, statusFine)
	holds(t, "the output", got.out, "LAST_INSERT_ID(1)")
}

func TestExplainOnline(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	db := harness.Open(t, server.Config(name), "")
	harness.MustExec(t, db, "CREATE TABLE orders (a INT, id BIGINT)", "CREATE TABLE nr_1 (nr INT)", "CREATE TABLE days (id DATE)",
		"CREATE TABLE hidden (a INT, id BIGINT NOT NULL DEFAULT 0 INVISIBLE, b INT)")
	path := harness.WriteConfig(t, strings.ReplaceAll(fmt.Sprintf(`listeners: [{name: a, listen: 127.0.0.1:0, upstream: %q, account: {user: app, password: app}}]
sources: {ids: {segment: {}}}
rules: [{table: DB.orders, column: id, source: ids}, {table: "DB.nr_*", column: id, source: ids}, {table: DB.days, column: id, source: ids}, {table: DB.gone, column: id, source: ids}, {table: DB.hidden, column: id, source: ids}]
`, server.Addr), "DB", name))
	for _, tt := range []struct {
		sql    string
		status int
		want   string
	}{
		{"INSERT INTO orders VALUES (0,0)", 0, "VALUES (0,LAST_INSERT_ID(1))"},
		{"INSERT /*!40000 INTO */ orders /*!99999 junk ( */ VALUES (0,0)", 0, "orders /*!99999 junk ( */ VALUES (0,LAST_INSERT_ID(1))"},
		{"INSERT INTO hidden VALUES (5,6)", 0, "INSERT INTO hidden (`a`,`b`,`id`) VALUES (5,6,LAST_INSERT_ID(1))"},
		{"INSERT INTO orders VALUES (0)", 0, "the server refuses it as it stands"},
		{"INSERT INTO nr_1 VALUES (0)", 0, "the table has no column id, and rule " + name + ".nr_*.id is a wildcard"},
		{"INSERT INTO days (id) VALUES (0)", 1, "the type of column id cannot hold generated ids exactly"},
		{"INSERT INTO gone VALUES (0)", 0, "forwarded unchanged: the server has no such table"},
	} {
		got := runWith(t, "", "explain", "--online", "--config", path, "--schema", name, tt.sql)
		assert.True(t, got.status == tt.status && strings.Contains(got.out, tt.want), "%s: got %+v, want %q", tt.sql, got, tt.want)
	}
}

func TestExplainOnlineNeedsAccount(t *testing.T) {
	got := runWith(t, "", "explain", "--online", "--config", explainConfig, "SELECT 1")
	assert.Equal(t, "status", got.status, statusFinding)
	holds(t, "standard error", got.err, "listener a has no account")
}

// TestExplainShard: explain says whether a listener takes a row, and names no key of a refused one.
func TestExplainShard(t *testing.T) {
	path := harness.WriteConfig(t, `listeners: [{name: even, listen: 127.0.0.1:0, upstream: 127.0.0.1:1, shard: {bits: 1, value: 0}}]
sources: {ids: {segment: {}}}
rules: [{table: shop.orders, column: id, source: ids, gene: {column: k, bits: 8}}]
`)
	explain := commands(t, path)
	explain(statusFine, "the key must be of shard 0 of 2, which listener even is for", "explain", "--schema", "shop", "INSERT INTO orders (k) VALUES (1234)")
	explain(statusFinding, "rule shop.orders.id: the key in column k is of shard 1 of 2, and listener even is for shard 0",
		"explain", "--schema", "shop", "INSERT INTO orders (k) VALUES (1235)")
}
