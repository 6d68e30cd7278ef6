package compressed

import (
	"bytes"
	"compress/zlib"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// world is a server with a table whose ids idproxy gives, and an address on the way to that proxy
// where what passes is counted.
type world struct {
	*testing.T
	server  *servers.Server
	root    *sql.DB
	schema  string
	proxy   *harness.Proxy
	addr    string
	counted *atomic.Int64
	seen    int // sessions that ended
}

func newWorld(t *testing.T, server *servers.Server) *world {
	t.Helper()
	w := &world{T: t, server: server, schema: harness.Database(t, server), counted: new(atomic.Int64)}
	w.root = harness.Open(t, server.Config(w.schema), "")
	harness.MustExec(t, w.root, "CREATE TABLE t (id BIGINT PRIMARY KEY, v LONGTEXT)")
	w.proxy = harness.Start(t, harness.Spec{Config: fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, compression: on}]
sources: {ids: {segment: {start: 1000}}}
rules: [{table: %s.t, column: id, source: ids}]
limits: {id_wait: 1m} # disks are busy here
`, server.Addr, w.schema)})
	w.addr = w.counting(w.proxy.Addr("a"))
	return w
}

// counting returns an address that leads to another one, and counts.
func (w *world) counting(to string) string {
	var mu sync.Mutex
	var open []net.Conn
	return harness.Between(w.T, to, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	}, func(client, server net.Conn) [2]func() {
		mu.Lock()
		defer mu.Unlock()
		open = append(open, client, server)
		copying := func(to, from net.Conn) func() {
			return func() {
				defer to.Close()
				_, _ = io.Copy(to, io.TeeReader(from, counter{w.counted})) // it ends with the connection
			}
		}
		return [2]func(){copying(server, client), copying(client, server)}
	})
}

// counter counts what is written to it.
type counter struct{ *atomic.Int64 }

// Write implements io.Writer.
func (c counter) Write(b []byte) (int, error) {
	c.Add(int64(len(b)))
	return len(b), nil
}

func TestMain(m *testing.M) { harness.Main(m) }

// large is more than what one packet takes.
const large = 17 << 20

// commandLine runs statements in a server's own client.
func (w *world) commandLine(client *servers.Server, input string, args ...string) string {
	w.Helper()
	args = append(args, "--user="+servers.AppUser, "--password="+servers.AppPassword, "--local-infile=1", "--max-allowed-packet=256M", "-N", "--batch", "--raw", w.schema)
	cmd := client.ClientTo(w.addr, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	assert.True(w, err == nil, "%v: %v: %.2000s", args, err, out)
	return string(out)
}

// TestCommandLine: the clients of both servers insert, read their ids, load a file, send a statement
// of several packets and read a result of several, over connections that are compressed.
func TestCommandLine(t *testing.T) {
	mariadb, my := harness.MariaDB(t), harness.MySQL(t)
	worlds := map[*servers.Server]*world{mariadb: newWorld(t, mariadb), my: newWorld(t, my)}
	file := filepath.Join(t.TempDir(), "rows")
	plugins := "--plugin-dir=../../.tools/mysql97/usr/lib/mysql/plugin"
	small := width.Of(200<<10, large)
	for _, tt := range []struct {
		name       string
		client, to *servers.Server
		size       int // of a value
		args       []string
		algorithm  string
	}{
		{"mariadb to MariaDB", mariadb, mariadb, small, []string{"--compress"}, "zlib"},
		{"mariadb to MySQL", mariadb, my, small, []string{"--compress"}, "zlib"},
		{"mysql zlib to MySQL", my, my, small, []string{"--compression-algorithms=zlib"}, "zlib"},
		{"mysql zstd to MySQL", my, my, large, []string{"--compression-algorithms=zstd", "--zstd-compression-level=3"}, "zstd"},
		{"mysql zstd 22 to MySQL", my, my, small, []string{"--compression-algorithms=zstd", "--zstd-compression-level=22"}, "zstd"},
		{"mysql both to MySQL", my, my, small, []string{"--compression-algorithms=zlib,zstd,uncompressed"}, "zlib"},
		{"mysql zlib to MariaDB", my, mariadb, small, []string{"--compression-algorithms=zlib", plugins}, "zlib"},
		{"mysql zstd or plain to MariaDB", my, mariadb, small, []string{"--compression-algorithms=zstd,uncompressed", plugins}, "none"},
	} {
		w := worlds[tt.to]
		lines := strings.Repeat("loaded\n", tt.size/1000)
		assert.Must(t, os.WriteFile(file, []byte(lines), 0o600))
		harness.MustExec(t, w.root, "TRUNCATE t")
		w.counted.Store(0)
		out := w.commandLine(tt.client, fmt.Sprintf(`
INSERT INTO t (v) VALUES ('one');
SELECT CONCAT('id ', LAST_INSERT_ID() = id, ' ', id >= 1000) FROM t WHERE v = 'one';
LOAD DATA LOCAL INFILE '%[1]s' INTO TABLE t (v);
SELECT CONCAT('loaded ', COUNT(*), ' ', MIN(id) >= 1000) FROM t WHERE v = 'loaded';
INSERT INTO t (v) VALUES ('%[2]s'), ('last');
SELECT CONCAT('long ', LENGTH(v), ' ', id = LAST_INSERT_ID()) FROM t ORDER BY LENGTH(v) DESC LIMIT 1;
SELECT v FROM t ORDER BY LENGTH(v) DESC LIMIT 1;
SELECT v FROM t WHERE v = 'loaded';
SELECT nothing;
`, file, strings.Repeat("x", tt.size)), append(tt.args, "--force")...)
		for _, want := range []string{
			"id 1 1\n", fmt.Sprintf("loaded %d 1\n", tt.size/1000), fmt.Sprintf("long %d 1\n", tt.size),
			strings.Repeat("x", tt.size) + "\n", lines, "Unknown column 'nothing'",
		} {
			assert.True(t, strings.Contains(out, want), "%s: no %.100q in %.1000s", tt.name, want, out)
		}
		passed := w.counted.Load()
		assert.True(t, (tt.algorithm == "none") == (passed > int64(tt.size)), "%s: %d bytes passed", tt.name, passed)
		assert.Equal(t, tt.name+": the connection was compressed by", w.lastAlgorithm(), tt.algorithm)
	}
}

// lastAlgorithm is that of the session that ended last.
func (w *world) lastAlgorithm() string {
	w.Helper()
	var all [][]string
	assert.Until(w, "another session ended", func() bool {
		all = regexp.MustCompile(`msg="session ended".* compression=(\w+)`).FindAllStringSubmatch(w.proxy.Log(), -1)
		return w.seen < len(all)
	})
	w.seen = len(all)
	return all[w.seen-1][1]
}

// TestDriver: the same with Go's driver.
func TestDriver(t *testing.T) {
	for _, server := range width.Of(harness.Servers(t)[:1], harness.Servers(t)) {
		w := newWorld(t, server)
		c := server.Config(w.schema)
		c.MaxAllowedPacket = 64 << 20
		assert.Must(t, c.Apply(mysql.EnableCompression(true)))
		l := harness.NewLoader(t, c, w.addr)
		l.Exec("INSERT INTO t (v) VALUES ('one')")
		assert.Contains(t, "whether the last insert id is the row's", l.Rows("SELECT LAST_INSERT_ID() = id FROM t WHERE v = 'one'"), "1")
		loaded := l.Load("LOAD DATA LOCAL INFILE 'f' INTO TABLE t (v)", strings.NewReader(strings.Repeat("loaded\n", 10_000)))
		assert.Equal(t, "LOAD DATA", loaded, "affected 10000, insert id 0")
		l.Exec("INSERT INTO t (v) VALUES ('" + strings.Repeat("x", large) + "')")
		var got string
		err := l.Conn.QueryRowContext(t.Context(), "SELECT v FROM t ORDER BY LENGTH(v) DESC LIMIT 1").Scan(&got)
		assert.True(t, err == nil && got == strings.Repeat("x", large), "%d bytes, %v", len(got), err)
		got = l.Load("SELECT 1; LOAD DATA LOCAL INFILE 'f' INTO TABLE t (v)", strings.NewReader("a\nb\n"))
		assert.True(t, strings.Contains(got, "affected 2"), "%v", got)
		assert.LessOrEqual(t, server.Kind.String()+": bytes that passed", w.counted.Load(), large)
	}
}

// packet is a compressed packet with the header that is said.
func packet(seq byte, size int, body []byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), seq, byte(size), byte(size >> 8), byte(size >> 16)}, body...)
}

func deflated(plain []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(plain) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// answer is what a server says to bytes of a compressed connection: the number of its error, or what
// it sends else.
func answer(addr string, says []byte) (text string) {
	err := replay.Do(func() {
		c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword, Caps: uint64(gomysql.CLIENT_COMPRESS)})
		defer c.Close()
		if _, err := c.Conn.Write(says); err != nil {
			replay.Fail("%w", err)
		}
		var header [7]byte
		if _, err := io.ReadFull(c.Conn, header[:]); err != nil {
			replay.Fail("%w", err)
		}
		body := make([]byte, int(header[0])|int(header[1])<<8)
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			replay.Fail("%w", err)
		}
		if text = fmt.Sprintf("%x %x", header, body); body[4] == gomysql.ERR_HEADER {
			text = fmt.Sprint("error ", int(body[5])|int(body[6])<<8)
		}
	})
	if err != nil {
		text += err.Error()
	}
	return text
}

// TestHostile: compressed packets that break the rules get an error, and the session ends. It is the
// error of the server where the numbers are wrong. Where they cannot be read, MariaDB says nothing and
// MySQL 1158, and here it is 1157, which is for that.
func TestHostile(t *testing.T) {
	long := append([]byte{101, 0, 0, 0, 3}, "DO '"+strings.Repeat("x", 95)+"'"...)
	const same = ""
	for _, server := range harness.Servers(t) {
		w := newWorld(t, server)
		for _, tt := range []struct {
			what string
			says []byte
			want string
		}{
			{"a command", packet(0, len(long), deflated(long)), same},
			{"a command in pieces", append(packet(0, 0, long[:20]), packet(1, 0, long[20:])...), same},
			{"a number too high", packet(1, len(long), deflated(long)), same},
			{"a number twice", append(packet(0, 0, long[:20]), packet(0, 0, long[20:])...), same},
			{"garbage", packet(0, len(long), []byte("garbage, of more than eight bytes")), "error 1157"},
			{"a size too small", packet(0, len(long)-1, deflated(long)), "error 1157"},
			{"a size too large", packet(0, len(long)+1, deflated(long)), "error 1157"},
		} {
			got, want := answer(w.proxy.Addr("a"), tt.says), tt.want
			if want == same {
				want = answer(server.Addr, tt.says)
			}
			assert.True(t, got == want && got != "", "%s: %s: %q, want %q", server.Kind, tt.what, got, want)
		}
	}
}
