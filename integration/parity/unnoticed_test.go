package parity

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/statements"
	"idproxy/integration/width"
)

// How TestUnnoticed draws statements.
const (
	unnoticedSeed    = 20261122
	unnoticedSession = 100 // statements of a session
)

// TestUnnoticed sends statements of the whole grammar directly, through a proxy whose rule matches
// no table, and through one whose rule matches a table that no statement names: every reply is the
// same, byte for byte. Each session finds the same schema.
//
// IDPROXY_STATEMENTS and IDPROXY_SEED ask for more, as `make test-long` does, or for others.
func TestUnnoticed(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			n, seed := setting(t, "IDPROXY_STATEMENTS", width.Of(1_000, 5_000)), setting(t, "IDPROXY_SEED", unnoticedSeed)
			u := newUnnoticed(t, kind)
			g := assert.Of(statements.New(u.dialect(), uint64(seed))).Must(t)
			failed := 0
			for at := 0; at < n && failed < 20; at += unnoticedSession {
				if !u.compare(t, g.Session(unnoticedSession)) {
					failed++
				}
			}
			t.Logf("compared: %d statements, seed %d", u.sent, seed)
			t.Logf("%d statements succeeded, %d replies with an error", u.fine, u.sent-u.fine)
			assert.True(t, u.fine >= u.sent/5, "only %d of %d statements succeeded: the corpus tests error messages", u.fine, u.sent)
		})
	}
}

// setting is a number from the environment.
func setting(t *testing.T, name string, value int) int {
	v := os.Getenv(name)
	if v == "" {
		return value
	}
	return assert.Of(strconv.Atoi(v)).Must(t, fmt.Sprintf("%s=%q: want a number", name, v))
}

// unnoticed is a server, reached directly and through a proxy.
type unnoticed struct {
	server     *servers.Server
	root       *sql.DB
	addrs      map[string]string // of the listeners
	sent, fine int
}

// unnoticedSchema is the schema in which sessions begin.
const unnoticedSchema = "world"

func newUnnoticed(t *testing.T, kind servers.Kind) *unnoticed {
	// What an optimizer counts on must not change behind a session's back.
	limits := []string{"--lock-wait-timeout=1", "--innodb-lock-wait-timeout=1", "--innodb-stats-auto-recalc=OFF"}
	if kind == servers.MariaDB {
		limits = append(limits, "--max-statement-time=5")
	}
	u := &unnoticed{server: harness.StartServer(t, kind, servers.Options{Args: limits})}
	u.root = harness.Open(t, u.server.Config(""), "")
	u.root.SetMaxOpenConns(1)
	proxy := replay.StartProxy(t, harness.Spec{Plain: true, Config: fmt.Sprintf(`
listeners:
  - {name: none, listen: "127.0.0.1:0", upstream: %q}
  - {name: other, listen: "127.0.0.1:0", upstream: %q}
sources: {ids: {segment: {}}}
rules:
  - {table: nowhere.nothing, column: id, source: ids, listeners: [none]}
  - {table: "*.ruled", column: id, source: ids, listeners: [other]}
`, u.server.Addr, u.server.Addr)})
	u.addrs = map[string]string{"direct": u.server.Addr, "none": proxy.Addr("none"), "other": proxy.Addr("other")}
	return u
}

func (u *unnoticed) dialect() string {
	if u.server.Kind == servers.MySQL {
		return statements.MySQL
	}
	return statements.MariaDB
}

// reply is what came back for a step: its bytes but for what differs by nature, and how the step
// ended.
type reply struct {
	bytes []byte
	err   error
}

// compare runs a session each way, and reports whether all replies are the same. It tells of the
// first that is not.
//
// A session is run again where the difference may be the server's own: a lock that somebody else had, as
// InnoDB's purge has a table for moments, and NOWAIT does not wait for it; or whether an index was used, as
// MySQL's optimizer estimates anew for its dictionary, which SHOW TRIGGERS reads. What idproxy does to a session
// is there each time.
func (u *unnoticed) compare(t *testing.T, s statements.Session) bool {
	t.Helper()
	direct := u.run(t, "direct", s)
	for _, r := range direct {
		u.sent++
		if r.err == nil {
			u.fine++
		}
	}
	for _, way := range []string{"none", "other"} {
		for again := 5; ; again-- {
			replies := u.run(t, way, s)
			i := firstDifference(s, direct, replies)
			if i < 0 {
				break
			}
			want, got, step := direct[i], replies[i], s.Steps[i]
			locked := replay.CodeOf(want.err) == mysql.ER_LOCK_WAIT_TIMEOUT || replay.CodeOf(got.err) == mysql.ER_LOCK_WAIT_TIMEOUT
			if again > 0 && (locked || otherPlan(want.bytes, got.bytes)) {
				t.Logf("run again: listener %s, %q: want %v, got %v", way, step.Text, want.err, got.err)
				direct = u.run(t, "direct", s)
				continue
			}
			t.Errorf("listener %s, %s, sql_mode %q, step %d of\n%s\n %q\n want %v\n got  %v\n%v", way, s.Charset, s.Mode, i, history(s.Steps[:i]), step.Text, want.err, got.err, replay.FirstDifference(want.bytes, got.bytes))
			return false
		}
	}
	return true
}

// otherPlan reports whether two replies differ, and in nothing but the status flag that says whether an index was
// used. Its bit makes small letters of capitals: no letter may differ.
func otherPlan(want, got []byte) bool {
	if len(want) != len(got) || bytes.Equal(want, got) {
		return false
	}
	for i := range want {
		if d := uint16(want[i] ^ got[i]); d != 0 && (d != mysql.SERVER_STATUS_NO_INDEX_USED || unicode.IsLetter(rune(want[i]))) {
			return false
		}
	}
	return true
}

// TestOtherPlan: only the flag makes a session run again.
func TestOtherPlan(t *testing.T) {
	for _, tt := range []struct {
		name, want, got string
		other           bool
	}{
		{name: "flag", want: "\xfe\x00\x00\x02\x00", got: "\xfe\x00\x00\x22\x00", other: true},
		{name: "nothing", want: "\x02", got: "\x02"},
		{name: "another flag", want: "\x02", got: "\x12"},
		{name: "flag and another byte", want: "\x02\x00", got: "\x22\x01"},
		{name: "a letter", want: "Trigger", got: "trigger"},
		{name: "a length", want: "\x02", got: "\x02\x00"},
	} {
		assert.Equal(t, tt.name, otherPlan([]byte(tt.want), []byte(tt.got)), tt.other)
	}
}

// firstDifference is the first step that was answered in two ways, or -1.
func firstDifference(s statements.Session, direct, other []reply) int {
	for i, got := range other {
		want := direct[i]
		if replay.CodeOf(want.err) != replay.CodeOf(got.err) || (want.err == nil) != (got.err == nil) || !s.Steps[i].Varies && !bytes.Equal(want.bytes, got.bytes) {
			return i
		}
	}
	return -1
}

// history shows the last texts in front of one.
func history(steps []statements.Step) string {
	var b strings.Builder
	for _, s := range steps[max(0, len(steps)-12):] {
		fmt.Fprintf(&b, "  %d %q\n", s.Way, s.Text)
	}
	return b.String()
}

// run makes the world anew and runs a session in it.
func (u *unnoticed) run(t *testing.T, way string, s statements.Session) []reply {
	t.Helper()
	u.reset(t)
	replies := make([]reply, len(s.Steps))
	assert.Must(t, replay.Do(func() {
		c := replay.Login(replay.Config{
			Addr: u.addrs[way], User: servers.AppUser, Password: servers.AppPassword, Schema: unnoticedSchema,
			Infile: func(c *replay.Conn, _ string) { c.Send([]byte("1\t2\tx\n2,'y',z|a\n")...); c.Send() },
		})
		defer c.Close()
		replay.Check(errors.Join(c.Conn.SetDeadline(time.Now().Add(time.Minute)), c.Query("SET NAMES "+s.Charset),
			c.Query("SET SESSION sql_mode='"+s.Mode+"', timestamp=1000000000")))
		for i, step := range s.Steps {
			from, masks := c.Got.Len(), len(c.GotMasks)
			err := replay.Do(func() { replay.Check(sendStep(c, step)) })
			replies[i] = reply{since(c, from, masks), err}
			switch {
			case err == nil || replay.CodeOf(err) != 0:
			case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
				return // COMMIT RELEASE, by chance
			default:
				replay.Fail("step %d, %q behind\n%s%w", i, step.Text, history(s.Steps[:i]), err)
			}
		}
		c.Command(mysql.COM_QUIT)
		c.Drain()
	}), way)
	return replies
}

// sendStep sends a text as its step says.
func sendStep(c *replay.Conn, s statements.Step) error {
	if s.Way == statements.AsText {
		return c.Query(s.Text)
	}
	st, err := c.Prepare(s.Text)
	if err != nil {
		return err
	}
	params := make([]replay.Param, st.Params)
	for i := range params {
		params[i] = []replay.Param{replay.Long(int64(i)), replay.Text("1"), {Kind: mysql.MYSQL_TYPE_NULL, Null: true}}[i%3]
	}
	err = c.Execute(st, 0, replay.WithTypes, params...)
	err = errors.Join(err, c.Execute(st, 0, replay.WithTypes, params...))
	c.Command(mysql.COM_STMT_CLOSE, st.Bytes()...)
	return err
}

// since is what came from a place on, without what was masked since then.
func since(c *replay.Conn, from, masks int) []byte {
	var ranges []replay.Span
	for _, m := range c.GotMasks[masks:] {
		ranges = append(ranges, replay.Span{From: m.From - from, To: m.To - from})
	}
	return replay.Masked(bytes.Clone(c.Got.Bytes()[from:]), ranges)
}

// reset makes the schema that sessions begin in, and takes away what they left elsewhere.
func (u *unnoticed) reset(t *testing.T) {
	t.Helper()
	texts := []string{"DROP DATABASE IF EXISTS " + unnoticedSchema, "DROP DATABASE IF EXISTS idproxy_none"}
	texts = append(texts, u.left(t, "SELECT CONCAT('DROP SERVER `', REPLACE(Server_name, '`', '``'), '`') FROM mysql.servers")...)
	what := "'DROP USER ', QUOTE(User), '@', QUOTE(Host)"
	if u.server.Kind == servers.MariaDB {
		what = "IF(is_role = 'Y', CONCAT('DROP ROLE ', QUOTE(User)), CONCAT(" + what + "))"
	}
	texts = append(texts, u.left(t, "SELECT CONCAT("+what+") FROM mysql.user WHERE User NOT IN ('root', 'app', 'mysql', 'mariadb.sys', '') AND User NOT LIKE 'mysql.%'")...) // also such as a broken statement made
	texts = append(texts, "CREATE DATABASE "+unnoticedSchema, "USE "+unnoticedSchema)
	for _, text := range append(texts, statements.World(u.dialect())...) {
		assert.Of(u.root.Exec(text)).Must(t, text)
	}
}

// left are statements, which a query makes, that take away what a session left.
func (u *unnoticed) left(t *testing.T, query string) (texts []string) {
	t.Helper()
	rows := assert.Of(u.root.Query(query)).Must(t)
	defer rows.Close()
	for rows.Next() {
		var text string
		assert.Must(t, rows.Scan(&text))
		texts = append(texts, text)
	}
	assert.Must(t, rows.Err())
	return texts
}
