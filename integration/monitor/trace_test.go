package monitor

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestTrace reads what the log says of the sessions that log.trace chooses: each hidden question
// and each decision, and no value of a statement; and nothing of other sessions.
func TestTrace(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		config := harness.OneListener(server.Addr) + "sources: {ids: {segment: {}}}\nrules:\n" +
			"  - {table: " + db + ".orders, column: id, source: ids}\n" +
			"  - {table: " + db + ".strict, column: id, source: ids, explicit: reject}\n" +
			"  - {table: " + db + ".watched, column: id, source: ids, mode: observe}\n"
		p := harness.StartProxy(t, config+"log: {trace: {user: app, address: 127.0.0.0/8}}\n")
		c := server.Config(db)
		c.InterpolateParams = false
		pool := harness.Open(t, c, p.Addr("a"))
		pool.SetMaxOpenConns(1)
		for _, table := range []string{"orders", "strict", "watched"} {
			harness.MustExec(t, pool, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, a VARCHAR(60))")
		}
		// wants waits for lines behind those of the last call, and returns all of these.
		seen := 0
		wants := func(what string, lines ...string) string {
			t.Helper()
			missing := ""
			if err := p.Poll(within(t), func() bool {
				for _, l := range lines {
					if !regexp.MustCompile(`(?m)^time=\S+ level=DEBUG ` + l).MatchString(p.Log()[seen:]) {
						missing = l
						return false
					}
				}
				return true
			}); err != nil {
				t.Errorf("%s: no line %s in\n%s", what, missing, p.Log()[seen:])
			}
			news := p.Log()[seen:]
			seen += len(news)
			return news
		}
		const of = `session\.id=\d+ listener=a client\.address=127\.0\.0\.1:\d+ thread=\d+ user\.name=app `
		const took = ` duration=\S+`
		rule := "rule=" + db + `\.`
		wants("a table that is made",
			`msg="hidden question" `+of+`db\.query\.text="SELECT ?@@.*"`+took, `msg="need met" `+of+`need=settings`+took,
			`msg="command decided" `+of+`outcome=forwarded form=query db\.query\.text="CREATE TABLE orders\(.*"`+took)

		harness.MustExec(t, pool, "DO LAST_INSERT_ID(987654321)")
		harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-1'),('secret-1b') /* secret-2 */")
		wants("filled",
			`msg="hidden question" `+of+`db\.query\.text="prepare: SELECT.*orders`+"`"+`"`+took,
			`msg="need met" `+of+`need=columns`+took, `msg="need met" `+of+`need=greatest`+took,
			`msg="ids drawn" `+of+rule+`orders\.id source=ids ids=2 instance=`,
			`msg="hidden question sent in front" `+of+`db\.query\.text="SELECT.*"`,
			`msg="command decided" `+of+`outcome=filled form=query db\.query\.text="INSERT INTO orders\(a\) VALUES\(\?\),\.\."`+took)
		harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-3')")
		again := wants("the second", `msg="ids drawn" `+of+rule+`orders\.id source=ids ids=1 instance=`, `msg="command decided"`)
		assert.True(t, !strings.Contains(again, "hidden question"), "the second asks:\n%s", again)
		assert.Of(pool.ExecContext(t.Context(), "INSERT INTO orders (a) VALUES (?)", "secret-4")).Must(t)
		wants("prepared",
			`msg="command decided" `+of+`outcome=forwarded form=prepare db\.query\.text="INSERT INTO orders\(a\) VALUES\(\?\)"`+took,
			`msg="ids drawn" `+of+rule+`orders\.id source=ids ids=1 instance=`,
			`msg="command decided" `+of+`outcome=filled form=execute db\.query\.text=".*"`+took)
		_, err := pool.ExecContext(t.Context(), "INSERT INTO strict (id, a) VALUES (987654321, 'secret-5')")
		harness.WantError(t, err, 1235, "reject")
		wants("refused",
			`msg=refusal `+of+rule+`strict\.id reason=explicit_id db\.response\.status_code=1235 error\.message="idproxy rule .*reject.*"`,
			`msg="command decided" `+of+`outcome=refused form=query db\.query\.text="INSERT INTO strict\(id,a\) VALUES\(\?,\?\)"`+took)
		_, err = pool.ExecContext(t.Context(), "INSERT INTO strict (id, gone) VALUES (987654321, 'secret-6')")
		harness.WantError(t, err, 1054, "gone")
		wants("refused by the server", `msg="refusal left to the server" `+of+`db\.response\.status_code=1054 instance=`)
		assert.Of(pool.ExecContext(t.Context(), "INSERT INTO watched (id, a) VALUES (987654321, 'secret-7')")).Must(t)
		harness.MustExec(t, pool, "INSERT INTO orders (a) SELECT a FROM orders WHERE a <> 'secret-8' AND a LIKE \"secret-9%\"")
		wants("of a query",
			`msg="rule observes" `+of+rule+`watched\.id db\.collection\.name=\S+ what=.*`,
			`msg="need met" `+of+`need=count`+took, `msg="command decided" `+of+`outcome=\w+ form=query db\.query\.text="INSERT INTO orders\(a\) SELECT a FROM orders WHERE a<>\? AND a LIKE \?"`+took)
		harness.MustExec(t, pool, "INSERT INTO orders (id, a) VALUES ('987654321'+1, 'secret-11')")
		wants("of an expression", `msg="hidden question" `+of+`db\.query\.text="SELECT \?\+\?.*"`+took)

		text := assert.Of(os.ReadFile(p.ConfigPath)).Must(t)
		reload := func(trace string) {
			t.Helper()
			changed := strings.Replace(string(text), "log: {trace: {user: app, address: 127.0.0.0/8}}", trace, 1)
			assert.MustTrue(t, changed != string(text), "nothing changes")
			done := strings.Count(p.Log(), "configuration reloaded") + 1
			assert.Must(t, p.Reload(changed))
			assert.Must(t, p.Poll(within(t), func() bool { return strings.Count(p.Log(), "configuration reloaded") >= done }))
			seen = len(p.Log())
		}
		for _, other := range []string{"log: {trace: {user: cron}}", "log: {trace: {address: 10.0.0.0/8}}", "log: {level: info}"} {
			reload(other)
			harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-12')")
			harness.MustExec(t, pool, "DO 1") // what was decided before is written by now
			log := p.Log()[seen:]
			assert.True(t, !strings.Contains(log, "DEBUG"), "under %s:\n%s", other, log)
		}
		reload("log: {trace: {address: 127.0.0.1}}") // of a session that is open
		harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-13')")
		wants("traced again", `msg="ids drawn" `+of+rule)
		assert.Equal(t, "a value is in the log", regexp.MustCompile(`.*(secret-|987654321).*`).FindString(p.Log()), "")
		assert.GreaterOrEqual(t, "rows went in", harness.Count(t, pool, fmt.Sprintf("SELECT COUNT(*) FROM orders WHERE a LIKE '%s'", "secret-%")), 8)
	})
}
