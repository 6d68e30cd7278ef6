package load

import (
	"bytes"
	"errors"
	"fmt"
	stdio "io"
	"net"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// A load that must not go on leaves no row, says why, and ends the connection; the next one works.
func TestLoadDataBrokenOff(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		db := harness.Database(t, s)
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}, small: {segment: {key: small, start: 1}}}
rules:
  - {table: %[2]s.strict, column: id, source: ids, explicit: reject}
  - {table: %[2]s.ahead, column: id, source: ids, explicit: advance}
  - {table: %[2]s.tiny, column: id, source: small}
  - {table: %[2]s.seen, column: id, source: small, mode: observe}
`, s.Addr, db))
		direct := harness.NewLoader(t, s.Config(db), "")
		for _, name := range []string{"strict", "ahead"} {
			direct.Exec("CREATE TABLE " + name + " (id BIGINT PRIMARY KEY, a VARCHAR(50))")
		}
		direct.Exec("CREATE TABLE tiny (id TINYINT PRIMARY KEY, a VARCHAR(50))", "CREATE TABLE seen (id INT NOT NULL, a VARCHAR(50))")
		const csv = "LOAD DATA LOCAL INFILE 'f' INTO TABLE %s FIELDS TERMINATED BY ','"
		rows := func(table string) string { return direct.Rows("SELECT COUNT(*), MAX(id) FROM " + table) }
		broken := func(statement, file, says, table string) {
			t.Helper()
			l := harness.NewLoader(t, s.Config(db), proxy.Addr("a"))
			got := l.Load(statement, strings.NewReader(file))
			assert.True(t, strings.Contains(got, says) && strings.Contains(got, "broke off LOAD DATA"), "%s: %q", statement, got)
			assert.Equal(t, statement+" left rows", rows(table), "\"0\" NULL \n")
			assert.Fails(t, statement+": the connection goes on", l.Conn.PingContext(t.Context()), "")
		}
		many := strings.Repeat("0,x\n", 20000)
		broken(fmt.Sprintf(csv, "strict"), many+"7,y\n"+many, "Error 1235 (42000): idproxy rule", "strict")
		broken(fmt.Sprintf(csv, "strict")+" (a,id)", "x,0\ny,7\n", "explicit: reject", "strict")
		broken(fmt.Sprintf(csv, "tiny")+" (a)", strings.Repeat("x\n", 300), "Error 1467", "tiny")
		broken(fmt.Sprintf(csv, "ahead"), "0,x\nabc,y\n9223372036854775807,z\n", "Error 1467", "ahead")
		broken(fmt.Sprintf(csv, "ahead")+" (@v,@w,id,a)", "0\n", "before its id", "ahead")

		l := harness.NewLoader(t, s.Config(db), proxy.Addr("a"))
		for _, step := range []struct{ table, list, file, want, rows string }{
			{"strict", "", many, "affected 20000, insert id 0", ""},
			{"ahead", "", "5000000,x\n0,y\n", "affected 2, insert id 0", ""},
			{"seen", "", "7,x\n", "affected 1, insert id 0", "\"1\" \"7\" \n"},
		} {
			assert.Equal(t, step.table, l.Load(fmt.Sprintf(csv, step.table)+step.list, strings.NewReader(step.file)), step.want)
			got := rows(step.table)
			assert.True(t, step.rows == "" || got == step.rows, "%s has %s", step.table, got)
		}
		l.Exec("INSERT INTO ahead (a) VALUES ('behind')")
		assert.Equal(t, "the source was not moved past an explicit id", direct.Rows("SELECT id > 5000000 FROM ahead WHERE a='behind'"), "\"1\" \n")
	})
}

// The protocol around the file: one that the client does not send, one cut off, packets of many
// sizes, and what follows.
func TestLoadDataProtocol(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		w := newLoadWorld(t, s)
		w.create(loadTable)
		l := w.filled
		assert.Contains(t, "a file that fails", l.Load(loadCSV+"(a,u)", failingReader{}), "no such file")
		assert.Equal(t, "rows of a file that fails", l.Rows("SELECT COUNT(*) FROM t"), "\"0\" \n")
		// The reply to what stands behind in the same text goes on from the file's sequence numbers, which
		// wrap.
		var big bytes.Buffer
		for i := range 300000 {
			fmt.Fprintf(&big, "%s,%d\n", strings.Repeat("v", 80), i)
		}
		if got := l.Load(loadCSV+"(a,u); INSERT INTO t (a) VALUES ('behind')", &big); !strings.HasPrefix(got, "affected 1, insert id 1300") {
			t.Errorf("a large file: %s", got)
		}
		ids := l.Rows("SELECT COUNT(*), COUNT(DISTINCT id), MAX(id)-MIN(id) < 310000, MIN(id)=(SELECT id FROM t WHERE u=0) FROM t")
		assert.Equal(t, "ids of a large file", ids, "\"300001\" \"300001\" \"1\" \"1\" \n")
		l.Exec("SET auto_increment_increment=5")
		assert.Equal(t, "with increment 5", l.Load(loadCSV+"(a)", strings.NewReader(strings.Repeat("spaced\n", 100))), "affected 100, insert id 0")
		assert.Equal(t, "ids with increment 5", l.Rows("SELECT MAX(id)-MIN(id) >= 495, COUNT(DISTINCT id) FROM t WHERE a='spaced'"), "\"1\" \"100\" \n")

		cut := assert.Of(net.Dial("tcp", w.proxy.Addr("a"))).Must(t)
		cut.Close() // a session that ends at once is no matter
		gone := harness.NewLoader(t, s.Config(w.filledDB), w.proxy.Addr("a"))
		got := gone.Load(loadCSV+"(a)", &vanishing{t: t, kill: func() { w.native.Exec("KILL " + strings.Trim(rowsOf(gone, w.native), "\" \n")) }})
		assert.Contains(t, "a session killed in the middle of its file", got, "error")
		assert.Equal(t, "rows of a session that was killed", l.Rows("SELECT COUNT(*) FROM t WHERE a='vanishing'"), "\"0\" \n")
	})
}

// Memory does not grow with the file, nor with its longest line.
func TestLoadDataMemory(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		db := harness.Database(t, s)
		proxy := harness.Start(t, harness.Spec{Plain: true, Config: harness.OneListenerWith(s.Addr, "ids: {segment: {}}", fmt.Sprintf("{table: %s.*, column: id, source: ids}", db))})
		harness.NewLoader(t, s.Config(db), "").Exec("CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(50))")
		peak := func(lines, length int) int64 {
			t.Helper()
			l := harness.NewLoader(t, s.Config(db), proxy.Addr("a"))
			file := &repeated{line: []byte("x," + strings.Repeat("y", length) + "\n"), left: lines}
			assert.Equal(t, fmt.Sprintf("%d lines of %d bytes", lines, length), l.Load(loadCSV+"(a)", file), fmt.Sprintf("affected %d, insert id 0", lines))
			u := assert.Of(proxy.Usage()).Must(t)
			return u.PeakRSS
		}
		small := peak(100, 1000)
		many, long := peak(5000, 40000), peak(2, 60*harness.MiB)
		assert.LessOrEqual(t, fmt.Sprintf("peak of %d bytes more for 200 MB of lines, %d for a line of 60 MiB", many-small, long-small), max(many, long)-small, 16*harness.MiB)
		held := peak(1, 0)
		assert.True(t, held >= small, "peak of %d fell to %d", small, held) // what is measured is this process, whose peak never falls
	})
}

// repeated is a file of one line, many times over.
type repeated struct {
	line []byte
	at   int
	left int
}

func (r *repeated) Read(b []byte) (n int, err error) {
	for n < len(b) && r.left > 0 {
		k := copy(b[n:], r.line[r.at:])
		n, r.at = n+k, r.at+k
		if r.at == len(r.line) {
			r.at, r.left = 0, r.left-1
		}
	}
	if n == 0 {
		return 0, stdio.EOF
	}
	return n, nil
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("no such file") }

// vanishing is a file in whose middle the session is killed.
type vanishing struct {
	t    *testing.T
	n    int
	kill func()
}

func (v *vanishing) Read(b []byte) (int, error) {
	if v.n++; v.n == 20 {
		v.kill()
	}
	if v.n > 200 {
		return 0, stdio.EOF
	}
	return copy(b, strings.Repeat("vanishing\n", 1000)), nil
}

// rowsOf asks another connection for the number of the one that loads now.
func rowsOf(l *harness.Loader, other *harness.Loader) string {
	return other.Rows("SELECT id FROM information_schema.processlist WHERE info LIKE 'LOAD%'")
}
