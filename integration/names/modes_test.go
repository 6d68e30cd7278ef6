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
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
	"idproxy/rule"
)

// modeTexts read differently, or store something else, in one sql_mode or another.
var modeTexts = []string{
	`INSERT INTO t (a) VALUES ("x,(y")`,
	`INSERT INTO t (a) VALUES ("x"),('y')`,
	`INSERT INTO "t" ("a") VALUES ('q')`,
	`INSERT INTO t ("id", a) VALUES (0, 'q')`,
	`INSERT INTO t (a) VALUES ('x'), ("a")`,
	`INSERT INTO t (b, a) VALUES ("',('", 'w')`,
	`INSERT INTO t (a) VALUES ('b\'),('c')`,
	`INSERT INTO t (a) VALUES ('b\'),(1),(\'c')`,
	`INSERT INTO t (a) VALUES ('\\'),('d')`,
	`INSERT INTO t (a) VALUES ('\'), ('), ('d')`,
	`INSERT INTO t (a, b) VALUES ('r''s\"t', "p""q\\")`,
	`INSERT INTO t VALUES (0, '\\', 'e'), (NULL, 'f\'', 'g')`,
	`INSERT INTO t (id, a) VALUES (0, 'z'), (NULL, 'n')`,
	`INSERT INTO t (id, a) VALUES ('0', 'z')`,
	`INSERT INTO t (id, a) VALUES (7, 'z'), (0, "y")`,
	`REPLACE INTO t (id, a) VALUES (0, 'z')`,
	`INSERT INTO t (a) VALUES ('x' 'y'), (CONCAT('x', 'y') || 'z')`,
	"INSERT INTO `t` (`a`) VALUES (N'x'), (_binary'y\\z')",
	`INSERT INTO t (a) VALUES ('plain'), ('text')`,
	"INSERT INTO t (a, b) VALUES ('\\', -- ', 'r'), ('s',\n 'q')",
}

// sqlModes are put in force in every way.
var sqlModes = []struct {
	mode, only string
	misread    string // what comes of some text when the mode is not known: "differs" from native, or also "corrupts"
}{
	{mode: "STRICT_TRANS_TABLES"},
	{mode: "ANSI_QUOTES", misread: "differs"},
	{mode: "NO_BACKSLASH_ESCAPES", misread: "corrupts"},
	{mode: "NO_AUTO_VALUE_ON_ZERO", misread: "corrupts"},
	{mode: "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO", misread: "corrupts"},
	{mode: "ANSI", misread: "differs"},
	{mode: "ORACLE", only: "MariaDB", misread: "differs"},
	{mode: "MSSQL", only: "MariaDB", misread: "differs"},
}

// modeWay is one way to put a mode in force. MODE in its texts stands for it.
type modeWay struct {
	name, only string
	texts      []string
	prefix     string // in front of every INSERT, in the same text
	hint       bool   // the prefix takes the place of the word INSERT
	refused    bool   // the proxy refuses such texts, and stores nothing
	binary     bool   // the texts are prepared and executed
	command    byte   // sent behind the texts: COM_RESET_CONNECTION, COM_CHANGE_USER
	collation  byte   // of COM_CHANGE_USER; default utf8mb4_general_ci
}

var modeWays = []modeWay{
	{name: "SET", texts: []string{"SET sql_mode='MODE'"}},
	{name: "SET SESSION", texts: []string{"set  session\tSQL_MODE = 'MODE'"}},
	{name: "SET LOCAL", texts: []string{"SET LOCAL sql_mode := 'MODE'"}},
	{name: "SET @@", texts: []string{"SET @@sql_mode=\"MODE\""}},
	{name: "SET @@SESSION", texts: []string{"SET @@SESSION . sql_mode = 'MODE'"}},
	{name: "quoted name", texts: []string{"SET `sql_mode`='MODE'"}},
	{name: "second of two", texts: []string{"SET @a='x, sql_mode', sql_mode='MODE'"}},
	{name: "between comments", texts: []string{"/* a */ SET /* b */ # c\n sql_mode -- d\n ='MODE'"}},
	{name: "version comment", texts: []string{"/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='MODE' */"}},
	{name: "part in a version comment", texts: []string{"SET /*!40101 sql_mode= */ /*!40101 'MODE' */"}},
	{name: "variable", texts: []string{"SET @m='MODE'", "SET sql_mode=@m"}},
	{name: "variable from SELECT", texts: []string{"SELECT 'MODE' INTO @m", "SET @@sql_mode=@m"}},
	{name: "CONCAT", texts: []string{"SET sql_mode=CONCAT(@@sql_mode, ',MODE')"}},
	{name: "put back", texts: []string{"SET @old=@@sql_mode", "SET sql_mode='MODE'", "SET sql_mode=@old"}},
	{name: "DEFAULT", texts: []string{"SET sql_mode='MODE'", "SET sql_mode=DEFAULT"}},
	{name: "failed SET", texts: []string{"SET sql_mode='MODE', no_such_variable=1"}},
	{name: "PREPARE", texts: []string{"PREPARE s FROM 'SET sql_mode=''MODE'''", "EXECUTE s"}},
	{name: "EXECUTE USING", texts: []string{"PREPARE s FROM 'SET sql_mode=?'", "SET @m='MODE'", "EXECUTE s USING @m"}},
	{name: "EXECUTE IMMEDIATE", only: "MariaDB", texts: []string{"EXECUTE IMMEDIATE 'SET sql_mode=''MODE'''"}},
	{name: "procedure", texts: []string{"CALL set_mode('MODE')"}},
	{name: "procedure that prepares", texts: []string{"CALL prepare_mode('MODE')"}},
	{name: "procedure behind SET", texts: []string{"SET sql_mode='MODE'", "CALL set_mode('')"}},
	{name: "binary protocol", texts: []string{"SET sql_mode='MODE'"}, binary: true},
	{name: "several in one text", texts: []string{"DO 1; SET sql_mode='MODE'; DO 2"}},
	{name: "an error behind it in one text", texts: []string{"SET sql_mode='MODE'; SELECT nothing_like_it; DO 2"}},
	{name: "compound statement", only: "MariaDB", texts: []string{"BEGIN NOT ATOMIC SET sql_mode='MODE'; END"}},
	{name: "reset", texts: []string{"SET sql_mode='MODE'"}, command: mysql.COM_RESET_CONNECTION},
	{name: "change user", texts: []string{"SET sql_mode='MODE'"}, command: mysql.COM_CHANGE_USER},
	{name: "same text", prefix: "SET sql_mode='MODE'; "},
	{name: "same text, CALL", prefix: "CALL set_mode('MODE'); "},
	{name: "hint", only: "MySQL", prefix: "INSERT /*+ SET_VAR(sql_mode=MODE) */", hint: true, refused: true},
	{name: "quoted hint", only: "MySQL", prefix: "INSERT /*+ SET_VAR(sql_mode='MODE') */", hint: true, refused: true},
	{name: "SET STATEMENT", only: "MariaDB", prefix: "SET STATEMENT sql_mode='MODE' FOR ", refused: true},
}

// TestModes holds that a text stores through the proxy what it stores natively, whatever mode is in
// force and however it came to be.
func TestModes(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := newModeWorlds(t, server)
		makeModeAccount(t, server)
		for i, m := range sqlModes {
			if m.only != "" && m.only != server.Kind.String() {
				continue
			}
			var all misread
			for k, way := range modeWays {
				if (way.only == "" || way.only == server.Kind.String()) && (i+k)%width.Of(2, 1) == 0 {
					all.add(w.tryWay(t, way, m.mode, modeTexts))
				}
			}
			assert.True(t, all.String() == m.misread, "%s: %+v when it is misread, want %q: else the test proves nothing", m.mode, all, m.misread)
		}
	})
}

// misread counts texts in the hands of a rewriter that does not know the mode.
type misread struct{ differs, corrupts int }

func (m *misread) add(n misread) { m.differs, m.corrupts = m.differs+n.differs, m.corrupts+n.corrupts }

func (m misread) String() string {
	switch {
	case m.corrupts > 0:
		return "corrupts"
	case m.differs > 0:
		return "differs"
	}
	return ""
}

// makeModeAccount makes an account without password and without the right to go around
// init_connect.
func makeModeAccount(t *testing.T, server *servers.Server) {
	t.Helper()
	root := harness.Open(t, server.Config(""), "")
	for _, text := range []string{
		"CREATE USER IF NOT EXISTS mode_user@'%' IDENTIFIED BY ''", "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE, CREATE, DROP ON *.* TO mode_user@'%'",
	} {
		assert.Of(root.Exec(text)).Must(t)
	}
}

// tryWay puts a mode in force, runs all texts and compares.
func (w *modeWorlds) tryWay(t *testing.T, way modeWay, mode string, texts []string) misread {
	t.Helper()
	enter := func(world *modeWorld) *wireclient.Session {
		s := world.open(t, login{})
		for _, text := range way.texts {
			text = strings.ReplaceAll(text, "MODE", mode)
			send := s.Query
			if way.binary {
				send = s.Prepared
			}
			_, err := send(text)
			assert.MustTrue(t, err == nil, "%s: %s: %v", world.name, text, err) // the server's own errors are part of it
		}
		switch way.command {
		case mysql.COM_RESET_CONNECTION:
			command(s, t, []byte{mysql.COM_RESET_CONNECTION})
		case mysql.COM_CHANGE_USER:
			changeUser(s, t, w.server.Kind, "mode_user", world.db, cmp.Or(way.collation, 45))
		}
		return s
	}
	if way.prefix != "" {
		w.compareInText(t, way, mode, texts)
		return misread{}
	}
	return w.compare(t, way.name+", "+mode, enter, texts)
}

// compare runs texts in sessions that enter opens.
func (w *modeWorlds) compare(t *testing.T, name string, enter func(*modeWorld) *wireclient.Session, texts []string) misread {
	t.Helper()
	native, proxied, mistaking := enter(w.native), enter(w.proxied), enter(w.mistaking)
	var m misread
	next := uint64(0)
	for _, text := range texts {
		want := w.native.run(t, native, text, &next)
		got := w.proxied.run(t, proxied, text, &next)
		assert.True(t, got.same(want), "%s, %s: %q\nproxied: %s\nnative:  %s", w.server.Kind, name, text, got, want)
		wrong := w.mistaking.run(t, mistaking, text, &next)
		if !wrong.same(want) {
			m.differs++
		}
		if !wrong.same(want) && !wrong.refused {
			m.corrupts++
		}
	}
	for _, s := range []*wireclient.Session{native, proxied, mistaking} {
		s.Close()
	}
	return m
}

// compareInText is compare for texts that set the mode themselves, which no rewriter could take for
// one mode.
func (w *modeWorlds) compareInText(t *testing.T, way modeWay, mode string, texts []string) {
	t.Helper()
	native, proxied := w.native.open(t, login{}), w.proxied.open(t, login{})
	next := uint64(0)
	for _, text := range texts {
		if rest, insert := strings.CutPrefix(text, "INSERT"); way.hint && insert {
			text = rest
		} else if way.hint {
			continue
		}
		text = strings.ReplaceAll(way.prefix, "MODE", mode) + text
		want := w.native.run(t, native, text, &next)
		got := w.proxied.run(t, proxied, text, &next)
		if way.refused && got.rows == "" && (got.refused || strings.HasPrefix(want.reply, "ERR") && got.same(want)) {
			continue // or the server has an error of its own
		}
		assert.True(t, got.same(want) && !way.refused, "%s, %s, %s: %q\nproxied: %s\nnative:  %s", w.server.Kind, way.name, mode, text, got, want)
	}
	native.Close()
	proxied.Close()
}

// TestModesOfServer is what a session finds in force when it begins: by SET GLOBAL, by
// init_connect, and by the character set of the login.
func TestModesOfServer(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			server := harness.StartServer(t, kind, servers.Options{})
			w := newModeWorlds(t, server)
			makeModeAccount(t, server)
			root := wireclient.Open(t, server.Addr, "")
			var all misread
			for _, mode := range []string{"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "NO_AUTO_VALUE_ON_ZERO"} {
				root.Must(t, "SET GLOBAL sql_mode='"+mode+"'")
				all.add(w.compare(t, "SET GLOBAL, "+mode, func(world *modeWorld) *wireclient.Session { return world.open(t, login{}) }, modeTexts))
				root.Must(t, "SET GLOBAL sql_mode=DEFAULT", fmt.Sprintf("SET GLOBAL init_connect=\"SET sql_mode='%s'\"", mode))
				for _, user := range []string{"", "mode_user"} {
					all.add(w.compare(t, "init_connect, "+mode+", "+user, func(world *modeWorld) *wireclient.Session {
						return world.open(t, login{user: user})
					}, modeTexts))
				}
				root.Must(t, "SET GLOBAL init_connect=DEFAULT")
			}
			assert.True(t, all.corrupts != 0, "no text is corrupted when a mode is misread: the test proves nothing")
		})
	}
}

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
	replies := assert.Of(s.Query(sent)).Must(t, fmt.Sprintf("%s: %q", w.name, text))
	names, rows, first := map[uint64]string{}, []string{}, uint64(0)
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
	assert.MustTrue(t, err == nil && r.Err == nil, "command %d: %v, %v", payload[0], err, r.Err)
}
