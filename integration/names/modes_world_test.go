package names

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
	"idproxy/rule"
)

// modeWorld is where a text runs: one table, and how it is reached.
type modeWorld struct {
	name     string
	db, addr string
	fake     *rewriter.Mode      // not nil: no proxy, but a rewriter that takes this for the session's mode
	observer *wireclient.Session // direct, with the server's default settings
}

// modeWorlds are the native table, the proxied one, and one that a rewriter writes to which
// believes in a mode whatever the session's is: what would happen if the proxy misread it.
type modeWorlds struct {
	server                     *servers.Server
	native, proxied, mistaking *modeWorld
}

func newModeWorlds(t *testing.T, server *servers.Server) *modeWorlds {
	t.Helper()
	w := &modeWorlds{server: server}
	w.native = newModeWorld(t, server, "native", "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY")
	w.proxied = newModeWorld(t, server, "proxied", "BIGINT NOT NULL PRIMARY KEY")
	w.mistaking = newModeWorld(t, server, "mistaking", "BIGINT NOT NULL PRIMARY KEY")
	w.mistaking.fake = &rewriter.Mode{MultiStatements: true, MariaDB: server.Kind == servers.MariaDB}
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: %s.t, column: id, source: ids}]
`, server.Addr, wireclient.SourceStart, w.proxied.db))
	w.proxied.addr = proxy.Addr("a")
	return w
}

func newModeWorld(t *testing.T, server *servers.Server, name, id string) *modeWorld {
	t.Helper()
	w := &modeWorld{name: name, db: harness.Database(t, server), addr: server.Addr}
	w.observer = wireclient.Open(t, server.Addr, w.db)
	w.observer.Must(t, "CREATE TABLE t (id "+id+", a VARBINARY(200) NOT NULL DEFAULT '', b VARBINARY(200) NOT NULL DEFAULT '')",
		"CREATE PROCEDURE set_mode(m VARCHAR(200)) SET sql_mode = m",
		"CREATE PROCEDURE set_names() SET NAMES gbk",
		"CREATE PROCEDURE prepare_mode(m VARCHAR(200)) BEGIN SET @q = CONCAT('SET sql_mode=''', m, ''''); PREPARE s FROM @q; EXECUTE s; END",
	)
	if strings.Contains(id, "AUTO_INCREMENT") {
		w.observer.Must(t, fmt.Sprintf("ALTER TABLE t AUTO_INCREMENT = %d", wireclient.GeneratedFrom))
	}
	return w
}

// login says how a session of the modes tests begins.
type login struct {
	user      string // default: the app account, which init_connect does not run for
	collation string // default: latin1_swedish_ci
}

func (w *modeWorld) open(t *testing.T, l login) *wireclient.Session {
	t.Helper()
	user, password := servers.AppUser, servers.AppPassword
	if l.user != "" {
		user, password = l.user, ""
	}
	conn, err := client.Connect(w.addr, user, password, w.db, func(c *client.Conn) error {
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES | mysql.CLIENT_DEPRECATE_EOF)
		// The library's own is unknown to MariaDB, where COM_RESET_CONNECTION then goes back to the
		// character set that some connection before this one had logged in with.
		return errors.Join(c.SetCollation(cmp.Or(l.collation, "latin1_swedish_ci")), c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS))
	})
	assert.Must(t, err, w.name+": connect as "+user)
	s := &wireclient.Session{Conn: conn}
	t.Cleanup(s.Close)
	return s
}

// modeFacts is the table as the proxy would know it.
var modeFacts = &rule.Table{Columns: []rule.Column{{Name: "id", Max: 1<<63 - 1}, {Name: "a", Default: true}, {Name: "b", Default: true}}}

// mistake rewrites a text as a proxy would that believes in the world's mode.
func (w *modeWorld) mistake(text string, next *uint64) (string, error) {
	if w.fake == nil {
		return text, nil
	}
	var plan rewriter.Plan
	r := &rule.Rule{Schema: w.db, Table: "t", Column: "id", Source: "ids"}
	err := plan.Read(&rewriter.Statement{Text: []byte(text), Mode: *w.fake, Rules: []*rule.Rule{r}, Table: modeFacts})
	if err != nil {
		return "", err
	}
	ids := make([]uint64, plan.Columns[0].Generated)
	for i := range ids {
		ids[i] = wireclient.SourceStart + *next
		*next++
	}
	return string(plan.Append(nil, []byte(text), [][]uint64{ids})), nil
}

// modeOutcome is what came of one text.
type modeOutcome struct {
	reply   string // errors, counts, and the row that the insert id names
	rows    string // what the table holds then
	refused bool   // by the proxy
}

func (o modeOutcome) String() string { return o.reply + "\n" + o.rows }

// same compares with what came natively. Of a text that the server does not understand the proxy
// may say so itself.
func (o modeOutcome) same(native modeOutcome) bool {
	return o.reply == native.reply && o.rows == native.rows ||
		o.refused && o.rows == "" && native.rows == "" && strings.Contains(native.reply, "ERR 1064")
}

// run sends a text in a session of the world and empties the table again.
func (w *modeWorld) run(t *testing.T, s *wireclient.Session, text string, next *uint64) modeOutcome {
	t.Helper()
	sent, err := w.mistake(text, next)
	if err != nil {
		return modeOutcome{reply: err.Error(), refused: true}
	}
	replies, err := s.Query(sent)
	assert.Must(t, err, fmt.Sprintf("%s: %q", w.name, text))
	names, rows := map[uint64]string{}, []string{}
	first := uint64(0)
	for _, row := range w.observer.Must(t, "SELECT id, HEX(a), HEX(b) FROM t ORDER BY id").Rows {
		id, _ := wireclient.ParseID(row[0])
		label := row[0]
		if wireclient.IsGenerated(id) {
			if first == 0 {
				first = id
			}
			label = fmt.Sprintf("generated+%d", id-first)
		}
		names[id] = label
		rows = append(rows, fmt.Sprintf("  %s: %s|%s", label, row[1], row[2]))
	}
	w.observer.Must(t, "DELETE FROM t")
	var o modeOutcome
	for _, r := range replies {
		switch {
		case r.Err != nil:
			o.reply += fmt.Sprintf("ERR %d; ", r.Err.Code)
			o.refused = o.refused || strings.Contains(r.Err.Message, "idproxy")
		case r.HasRows:
			o.reply += fmt.Sprintf("%d rows; ", len(r.Rows))
		default:
			id := fmt.Sprint(r.InsertID)
			if name, ok := names[r.InsertID]; ok {
				id = name
			}
			o.reply += fmt.Sprintf("%d affected, %s; ", r.Affected, id)
		}
	}
	o.rows = strings.Join(rows, "\n")
	return o
}

// changeUser sends COM_CHANGE_USER for an account without password.
func changeUser(s *wireclient.Session, t *testing.T, kind servers.Kind, user, db string, collation byte) {
	t.Helper()
	plugin, proof := "mysql_native_password", ""
	if kind == servers.MySQL {
		plugin, proof = "caching_sha2_password", "\x00"
	}
	payload := string(mysql.COM_CHANGE_USER) + user + "\x00\x00" + db + "\x00" + string([]byte{collation, 0}) + plugin + "\x00\x00" // no attributes
	s.Conn.ResetSequence()
	for range 3 { // the server asks for the proof again
		assert.Must(t, s.Conn.WritePacket(append(make([]byte, 4), payload...)))
		p, err := s.Conn.ReadPacket()
		switch {
		case err != nil:
			t.Fatal(err)
		case p[0] == mysql.OK_HEADER:
			return
		case p[0] == mysql.ERR_HEADER:
			t.Fatal(wireclient.ParseERR(p))
		}
		payload = proof
	}
	t.Fatal("COM_CHANGE_USER does not end")
}

// command sends a command whose reply is OK.
func command(s *wireclient.Session, t *testing.T, payload []byte) {
	t.Helper()
	s.Conn.ResetSequence()
	assert.Must(t, s.Conn.WritePacket(append(make([]byte, 4), payload...)))
	r, err := s.Result(wireclient.ParseRow)
	if err != nil || r.Err != nil {
		t.Fatalf("command %d: %v, %v", payload[0], err, r.Err)
	}
}
