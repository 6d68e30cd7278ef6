package names

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
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
			if _, err := send(text); err != nil { // the server's own errors are part of it
				t.Fatalf("%s: %s: %v", world.name, text, err)
			}
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
		if got := w.proxied.run(t, proxied, text, &next); !got.same(want) {
			t.Errorf("%s, %s: %q\nproxied: %s\nnative:  %s", w.server.Kind, name, text, got, want)
		}
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
		if !got.same(want) || way.refused {
			t.Errorf("%s, %s, %s: %q\nproxied: %s\nnative:  %s", w.server.Kind, way.name, mode, text, got, want)
		}
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
