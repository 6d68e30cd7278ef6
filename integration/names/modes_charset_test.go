package names

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
	"idproxy/rewriter"
)

// charsetTexts are about one pair of bytes, in a string and as its end: whether the second one is a
// byte of its own is what the character set says.
func charsetTexts(pair string) []string {
	return []string{
		"INSERT INTO t (a) VALUES ('p" + pair + "'), ('q')",
		"INSERT INTO t (a, b) VALUES ('p" + pair + "\\', 'r'), ('s', 't')",
		"INSERT INTO t (a, b) VALUES ('p" + pair + "', -- ', 'r'), ('s',\n 'q')",
	}
}

// charsetPairs are all two bytes of which the first may begin a character and the second may mean
// something in SQL, and characters of four bytes.
func charsetPairs() (pairs []string) {
	for lead := 0x80; lead <= 0xFF; lead++ {
		for _, trail := range []byte{'\'', '\\', '`', '"'} {
			pairs = append(pairs, string([]byte{byte(lead), trail}))
		}
	}
	return append(pairs, "\x81\x30\x81\x30", "\x81\x30\x81\x5c", "\x90\x30\x81\x30\x5c", "\xfe\x5c\x5c", "\x81\x81\x5c", "\xe3\x83\x5c")
}

// batch runs texts one behind the other and returns what each one answered, and all that the table
// holds then.
func (w *modeWorld) batch(t *testing.T, s *wireclient.Session, texts []string) (answers []string, rows string) {
	t.Helper()
	next := uint64(0)
	for _, text := range texts {
		sent, err := w.mistake(text, &next)
		if err != nil {
			answers = append(answers, "refused")
			continue
		}
		replies := assert.Of(s.Query(sent)).Must(t, fmt.Sprintf("%s: %q", w.name, text))
		answers = append(answers, answerOf(replies[0]))
	}
	var all []string
	for _, row := range w.observer.Must(t, "SELECT HEX(a), HEX(b) FROM t ORDER BY id").Rows {
		all = append(all, strings.Join(row, "|"))
	}
	w.observer.Must(t, "DELETE FROM t")
	return answers, strings.Join(all, "\n")
}

func answerOf(r wireclient.Reply) string {
	switch {
	case r.Err != nil && strings.Contains(r.Err.Message, "idproxy"):
		return "refused"
	case r.Err != nil:
		return fmt.Sprintf("ERR %d", r.Err.Code)
	}
	return fmt.Sprintf("%d rows", r.Affected)
}

// charsets are those whose characters hide bytes, and some that look alike but hide none.
var charsets = []struct {
	name, only string
	corrupts   bool // taken for a set whose characters hide nothing
}{
	{name: "gbk", corrupts: true},
	{name: "gb18030", only: "MySQL", corrupts: true},
	{name: "big5", corrupts: true},
	{name: "sjis", corrupts: true},
	{name: "cp932", corrupts: true},
	{name: "utf8mb4"},
	{name: "latin1"},
	{name: "gb2312"},
	{name: "euckr"},
	{name: "ujis"},
	{name: "eucjpms"},
	{name: "binary"},
}

// TestCharsets holds that every pair of bytes means through the proxy what it means natively, in
// every character set.
func TestCharsets(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, pair := range charsetPairs() {
		texts = append(texts, charsetTexts(pair)...)
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := newModeWorlds(t, server)
		for i, c := range charsets {
			if i%width.Of(3, 1) != 0 {
				continue
			}
			if c.only != "" && c.only != server.Kind.String() {
				continue
			}
			enter := func(world *modeWorld) *wireclient.Session {
				s := world.open(t, login{})
				s.Must(t, "SET NAMES "+c.name)
				return s
			}
			want, wantRows := w.native.batch(t, enter(w.native), texts)
			got, gotRows := w.proxied.batch(t, enter(w.proxied), texts)
			for i := range texts {
				assert.True(t, got[i] == want[i] || got[i] == "refused" && want[i] == "ERR 1064", "%s: %q: %s, natively %s", c.name, texts[i], got[i], want[i])
			}
			assert.True(t, gotRows == wantRows, "%s: other rows than natively:\n%s", c.name, wireclient.LineDiff(wantRows, gotRows))
			*w.mistaking.fake = rewriter.Mode{MariaDB: server.Kind == servers.MariaDB, Charset: rewriter.SingleByte}
			if !c.corrupts {
				w.mistaking.fake.Charset = rewriter.GBK
			}
			wrong, wrongRows := w.mistaking.batch(t, enter(w.mistaking), texts)
			n := 0
			for i := range texts {
				if wrong[i] != "refused" && wrong[i] != want[i] {
					n++
				}
			}
			t.Logf("compared: %d texts", len(texts))
			t.Logf("%s: %d of %d texts go wrong when the character set is not known", c.name, n, len(texts))
			assert.True(t, wrongRows != wantRows, "%s: nothing differs when it is taken for another: the test proves nothing", c.name)
		}
	})
}

// charsetWays put gbk in force, or back out of force.
var charsetWays = []modeWay{
	{name: "SET NAMES", texts: []string{"SET NAMES gbk"}},
	{name: "SET NAMES in quotes", texts: []string{"set names 'gbk' collate \"gbk_bin\""}},
	{name: "as dumps do", texts: []string{"/*!40101 SET NAMES gbk */"}},
	{name: "character_set_client", texts: []string{"SET character_set_client=gbk"}},
	{name: "@@character_set_client", texts: []string{"SET @saved=@@character_set_client, @@SESSION.character_set_client='gbk'"}},
	{name: "CHARACTER SET", texts: []string{"SET CHARACTER SET gbk"}},
	{name: "CHARSET", texts: []string{"SET CHARSET 'gbk'"}},
	{name: "variable", texts: []string{"SET @c='gbk'", "SET character_set_client=@c"}},
	{name: "procedure", texts: []string{"CALL set_names()"}},
	{name: "PREPARE", texts: []string{"PREPARE s FROM 'SET character_set_client=gbk'", "EXECUTE s"}},
	{name: "one text", texts: []string{"DO 1; SET NAMES gbk; DO 2"}},
	{name: "binary protocol", texts: []string{"SET character_set_client=gbk"}, binary: true},
	{name: "undone", texts: []string{"SET NAMES gbk", "SET NAMES DEFAULT"}},
	{name: "failed", texts: []string{"SET NAMES gbk COLLATE latin1_bin"}},
	{name: "reset", texts: []string{"SET NAMES gbk"}, command: mysql.COM_RESET_CONNECTION},
	{name: "change user", texts: []string{"SET NAMES latin1"}, command: mysql.COM_CHANGE_USER},
	{name: "same text", prefix: "SET NAMES gbk; "},
}

// wayTexts are the pairs of charsetWays: a character of gbk that ends in a backslash, one that is
// none, and one in UTF-8.
var wayTexts = func() (texts []string) {
	for _, pair := range []string{"\xbf\\", "\x80\\", "\\", "\xe7\xb8\x97", "\xe7\xb8\\"} {
		texts = append(texts, charsetTexts(pair)...)
	}
	return texts
}()

// gbkChinese is the number of the collation gbk_chinese_ci.
const gbkChinese = 28

// TestCharsetWays holds that a text means what it means natively however the session came to its
// character set, also when it changes in the middle.
func TestCharsetWays(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := newModeWorlds(t, server)
		makeModeAccount(t, server)
		var all misread
		for _, way := range charsetWays {
			way.collation = gbkChinese
			all.add(w.tryWay(t, way, "", wayTexts))
		}
		atLogin := func(world *modeWorld) *wireclient.Session { return world.open(t, login{collation: "gbk_chinese_ci"}) }
		all.add(w.compare(t, "at login", atLogin, wayTexts))

		// Each text in one set, then in another one.
		var middle []string
		for _, text := range wayTexts {
			middle = append(middle, "SET NAMES gbk", text, "SET NAMES latin1", text, "SET character_set_client=sjis", text)
		}
		all.add(w.compare(t, "in the middle", func(world *modeWorld) *wireclient.Session { return world.open(t, login{}) }, middle))
		assert.True(t, all.corrupts != 0, "no text is corrupted when the set is not known: the test proves nothing")
	})
}

// TestCharsetOfLoginIgnored is a server that does not heed the character set of the login: what the
// client asked for is not what the session has. MySQL 9.7 cannot be told so any more.
func TestCharsetOfLoginIgnored(t *testing.T) {
	server := harness.StartServer(t, servers.MariaDB, servers.Options{
		Args: []string{"--character-set-client-handshake=OFF", "--character-set-server=latin1", "--collation-server=latin1_swedish_ci"},
	})
	w := newModeWorlds(t, server)
	enter := func(world *modeWorld) *wireclient.Session { return world.open(t, login{collation: "gbk_chinese_ci"}) }
	assert.MustEqual(t, "the session, without which the test proves nothing, has", enter(w.native).Value(t, "SELECT @@character_set_client"), "latin1")
	w.mistaking.fake.Charset = rewriter.GBK // what the login says
	assert.True(t, w.compare(t, "login ignored", enter, wayTexts).differs != 0, "no text differs when the login is believed: the test proves nothing")
}

// TestIncrement holds that the ids of a statement are apart as auto_increment_increment says,
// however it was set.
func TestIncrement(t *testing.T) {
	t.Parallel()
	texts := []string{
		"INSERT INTO t (a) VALUES ('1'), ('2'), ('3')",
		"INSERT INTO t (id, a) VALUES (NULL, '1'), (7, '2'), (0, '3'), (NULL, '4')",
		"INSERT INTO t (a) VALUES ('1')",
	}
	ways := []modeWay{
		{name: "SET", texts: []string{"SET auto_increment_increment=5"}},
		{name: "SET @@", texts: []string{"SET @i=3", "SET @@session.auto_increment_increment=@i+4"}},
		{name: "undone", texts: []string{"SET auto_increment_increment=5", "SET auto_increment_increment=DEFAULT"}},
		{name: "offset", texts: []string{"SET auto_increment_increment=10, auto_increment_offset=3"}},
		{name: "reset", texts: []string{"SET auto_increment_increment=5"}, command: mysql.COM_RESET_CONNECTION},
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := newModeWorlds(t, server)
		var all misread
		for _, way := range ways {
			all.add(w.tryWay(t, way, "", texts))
		}
		assert.True(t, all.corrupts != 0, "nothing differs when the increment is not known: the test proves nothing")
	})
}
