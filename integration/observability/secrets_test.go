package observability

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// A text and a number that are in no name, and nowhere else in a log or a page.
const (
	secretText   = "Qz7Wx9Kp"
	secretNumber = "7391846205"
)

// secrets are pieces of SQL with one of them, in each kind of literal, comment and identifier, whole
// and broken.
var secrets = strings.Fields(strings.ReplaceAll(strings.NewReplacer("SECRET", secretText, "NUMBER", secretNumber, " ", "\x00").Replace(strings.Join([]string{
	"'SECRET'", `"SECRET"`, "'it''s SECRET'", `'a\'SECRET'`, `'a\\' 'SECRET'`, "N'SECRET'", "_latin1'SECRET'", "_utf8mb4 'SECRET'", "_binary'SECRET'", "x'NUMBER'", "0xNUMBER",
	"b'01','SECRET'", "$$SECRET$$", "NUMBER", "-NUMBER", "NUMBER.NUMBER", "1.eNUMBER", "NUMBERe5", "DATE'SECRET'", "{d 'SECRET'}", "INTERVAL 'SECRET' DAY + 1",
	`'{"SECRET":NUMBER}'`, `JSON_OBJECT("SECRET",NUMBER)`, "a->'$.SECRET'", "SECRET", "`SECRET`", "SECRET()", "@SECRET", "@'SECRET'", "@`SECRET`", "@@SECRET",
	"(SELECT 1 AS SECRET)", "(SELECT 1 'SECRET')", "(SELECT /*+ SECRET */ 1)", "1 /* SECRET */", "1 /*! +SECRET */", "1 /*!99999 SECRET */", "1 /*M!100100 SECRET */",
	"1 -- SECRET\t", "1 # SECRET\t", "1 --SECRET", "'it's SECRET'", "'it', SECRET, 'x'", "it's SECRET", "`a` SECRET`", "'SECRET", `"SECRET`, "`SECRET", "/* SECRET",
	"'\xc4' SECRET'", "'\x81' SECRET'", "'\xe5\\' SECRET'", "\xe3\x81\x82SECRET", "\xa0SECRET", "'\xff\x5c', SECRET'", "{SECRET}", "[SECRET]", ":SECRET",
}, "\n")), "\n", " "))

// frames are statements of which the proxy refuses, observes, prepares or forwards some.
var frames = []string{
	"INSERT INTO kept (id, a) VALUES (NUMBER, %s)", "INSERT INTO kept (id, a) VALUES (7, 'x') /* %s */", "INSERT INTO kept SET id=NUMBER, a=%s", "REPLACE INTO kept (id, a) SELECT NUMBER, %s",
	"INSERT INTO kept (a, %s) VALUES (1)", "INSERT INTO kept (id) VALUES (7) AS %s", "INSERT INTO kept (id, a) VALUES (7, 1) ON DUPLICATE KEY UPDATE a=%s",
	"INSERT INTO seen (a) VALUES (%s)", "INSERT INTO seen (id, a) SELECT NUMBER, %s", "INSERT INTO seen (a, %s) VALUES (1)",
	"INSERT INTO moved (id, a) VALUES (NUMBER, %s)", "INSERT INTO formed (id, a) VALUES (f(%s), 1)", "INSERT INTO formed (a) VALUES (%s), (1, 2", "LOAD DATA INFILE %s INTO TABLE kept",
	"INSERT INTO %s (a) VALUES (1)", "PREPARE %s FROM 'INSERT INTO kept (id) VALUES (7)'", "SET @v = %s", "CALL p(%s)", "%s",
}

// TestSecrets sends statements with secrets in each kind of literal, comment, identifier and
// parameter, whole and broken, in every character set of clients, and looks for them in all that an
// operator sees.
func TestSecrets(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		w := start(t, server, db, fmt.Sprintf(`
log: {level: debug}
sources: {ids: {segment: {}}}
rules:
  - {table: %[1]s.kept, column: id, source: ids, explicit: reject}
  - {table: %[1]s.moved, column: id, source: ids, explicit: advance}
  - {table: %[1]s.formed, column: id, source: ids, unsupported: reject}
  - {table: %[1]s.seen*, column: id, source: ids, mode: observe}
`, db))
		direct := wireclient.Open(t, server.Addr, db)
		for _, table := range []string{"kept", "moved", "formed", "seen"} {
			direct.Must(t, "CREATE TABLE "+table+" (id INT PRIMARY KEY, a VARCHAR(200))")
		}
		sent := 0
		send := func(s **wireclient.Session, text string) {
			sent++
			if _, err := (*s).Query(text); err != nil { // the server ended it
				(*s).Close()
				*s = wireclient.Open(t, w.Addr("a"), db)
			}
		}
		for _, charset := range []string{"utf8mb4", "latin1", "gbk", "big5", "sjis", "cp932", "gb18030", "euckr", "gb2312", "ujis", "koi8r", "keybcs2", "binary"} {
			s := wireclient.Open(t, w.Addr("a"), db)
			for _, mode := range []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"} {
				if charset != "utf8mb4" && mode != "" {
					continue
				}
				send(&s, "SET NAMES "+charset)
				send(&s, "SET sql_mode='"+mode+"'")
				for i, frame := range frames {
					for k, secret := range secrets {
						if (charset != "utf8mb4" || mode != "" && !width.Long) && (i+k)%width.Of(12, 6) != 0 {
							continue
						}
						text := strings.ReplaceAll(strings.ReplaceAll(frame, "%s", strings.ReplaceAll(secret, "\x00", " ")), "NUMBER", secretNumber)
						send(&s, text)
						if (i+k)%4 == 0 {
							send(&s, text[:len(text)-1])
							send(&s, text[:len(text)*3/4])
							quoted := "'" + strings.NewReplacer("'", "''", "\\", "\\\\").Replace(text) + "'"
							send(&s, "PREPARE s FROM "+quoted)
							send(&s, "EXECUTE s")
							send(&s, "SET @v = "+quoted)
							send(&s, "PREPARE s FROM @v")
							send(&s, "EXECUTE IMMEDIATE "+quoted)
						}
					}
				}
			}
			s.Close()
		}
		pool := w.open(t, 1)
		for _, text := range []string{"INSERT INTO kept (id, a) VALUES (?, ?)", "INSERT INTO moved (id, a) VALUES (?, ?)", "INSERT INTO seen (id, a) VALUES (?, ?)"} {
			st := assert.Of(pool.Prepare(text)).Must(t)
			for _, args := range [][]any{{secretNumber, secretText}, {7391846205, []byte(secretText)}, {7391846205.5, secretText}, {secretText, secretNumber}} {
				_, err := st.Exec(args...) // most are refused
				sent++
				assert.True(t, err != nil || !strings.Contains(text, "kept"), "explicit: reject let an id through")
			}
			st.Close()
		}
		seen := map[string]int{}
		for _, path := range []string{"/api/v1/refusals", "/api/v1/events", "/api/v1/status", "/api/v1/sessions", "/api/v1/history", "/api/v1/config", "/metrics", "/"} {
			status, body := w.get(t, path)
			assert.Equal(t, path, status, 200)
			noSecret(t, path, strings.ReplaceAll(body, w.Dir, ""))
			seen[path] = len(body)
		}
		body := w.answer(t, "/api/v1/refusals")
		for _, reason := range []string{"explicit_id", "observed", "form", "no_ids"} {
			assert.True(t, strings.Contains(body, fmt.Sprintf("\"reason\":%q", reason)), "none was %s", reason)
		}
		// The negative control: a name that the server knows is shown.
		control := wireclient.Open(t, w.Addr("a"), db)
		direct.Must(t, "CREATE TABLE seen"+secretText+" (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
		noSecret(t, "the log", strings.ReplaceAll(w.Log(), w.Dir, ""))
		control.Must(t, "INSERT INTO seen"+secretText+" (a) VALUES (1)")
		assert.True(t, secretIn(w.answer(t, "/api/v1/refusals")) >= 0, "the secret was not found where it is")
		assert.Must(t, w.Stop(time.Minute))
		assert.True(t, strings.Contains(w.Log(), "statement refused") && strings.Contains(w.Log(), "observed in all"), "the log has no refusal or no observation")
		t.Logf("%d statements; bytes that were looked at: %v, log %d", sent, seen, len(w.Log()))
	})
}

// noSecret fails where a text has a piece of a secret.
func noSecret(t *testing.T, where, text string) {
	t.Helper()
	if i := secretIn(text); i >= 0 {
		t.Errorf("%s has a secret: ...%q...", where, text[max(0, i-300):min(len(text), i+60)])
	}
}

// secretIn returns where a text has the beginning or the end of a secret; -1: nowhere.
func secretIn(text string) int {
	for _, secret := range []string{secretText[:4], secretText[4:], secretNumber[:6], secretNumber[4:]} {
		if i := strings.Index(text, secret); i >= 0 {
			return i
		}
	}
	return -1
}

// TestHostileNames has a user and a table whose names are HTML, lines and escapes of terminals. They
// show as they are written, and do nothing.
func TestHostileNames(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	const user = "<img src=x onerror=alert(1)>\n\x1b[31m'&quot;"
	table := "<b>\x1b]0;x\x07 \"t\"&amp;"
	w := start(t, server, db, fmt.Sprintf("log: {level: debug}\nsources: {ids: {segment: {}}}\nrules: [{table: '%s.*', column: id, source: ids, explicit: reject}]\n", db))
	direct := wireclient.Open(t, server.Addr, db)
	quotedUser := "'" + strings.ReplaceAll(user, "'", "''") + "'@'%'"
	quotedTable := "`" + table + "`"
	direct.Must(t, "CREATE USER "+quotedUser+" IDENTIFIED BY 'p'", "GRANT ALL ON "+db+".* TO "+quotedUser, "CREATE TABLE "+quotedTable+" (id BIGINT PRIMARY KEY, `\x1b[31m<u>` INT)")
	defer direct.Must(t, "DROP USER "+quotedUser)
	cfg := server.Config(db)
	cfg.User, cfg.Passwd, cfg.Logger = user, "p", &mysql.NopLogger{}
	pool := harness.Open(t, cfg, w.Addr("a"))
	_, err := pool.ExecContext(t.Context(), "INSERT INTO "+quotedTable+" (id, `\x1b[31m<u>`) VALUES (1, 2)")
	harness.WantError(t, err, 1235)

	t.Run("page", func(t *testing.T) {
		ctx := browse(t)
		assert.Must(t, chromedp.Run(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.admin+"/")))
		until(t, ctx, shows("refusals", "<img src=x"))
		until(t, ctx, shows("refusals", "<u>"))
		until(t, ctx, shows("events", "<img src=x"))
		var elements int
		err := chromedp.Run(ctx, chromedp.Evaluate(`document.querySelectorAll("main img, main u, main i, main b").length`, &elements))
		assert.True(t, err == nil && elements <= 0, "%d elements were made of names: %v", elements, err)
	})
	out, err := harness.Command(t, "status", "--admin", strings.TrimPrefix(w.admin, "http://"))
	assert.NoError(t, err, "status", out)
	refusals := w.answer(t, "/api/v1/refusals")
	for name, text := range map[string]string{"the log": w.Log(), "status": out, "metrics": w.answer(t, "/metrics"), "refusals": refusals, "events": w.answer(t, "/api/v1/events")} {
		i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f })
		assert.True(t, i < 0, "%s has a control character: %q", name, text[max(0, i-100):max(0, i+1)])
	}
	for line := range strings.Lines(w.Log()) {
		assert.True(t, strings.HasPrefix(line, "time="), "a name made a line of its own: %q", line)
	}
	assert.True(t, strings.Contains(refusals, `\u003cimg`) && strings.Contains(w.Log(), "<img src=x"), "the user is not named: %s", refusals) // else nothing was looked at
}
