package oracle

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// refereeVariable names a program in the environment, an idproxy of another version. Each script is then played through that,
// too, in a world of its own: clients and servers must get the same bytes, and both programs must count the same.
const refereeVariable = "IDPROXY_REFEREE"

// recorded is a proxy with a tap on each side.
type recorded struct {
	admin          string // the address of its metrics
	client, server *replay.Tap
}

// recordedWorlds makes a world for each of the columns, behind one proxy with taps. program is a path, or "" for the one of this
// tree.
func recordedWorlds(t *testing.T, server *servers.Server, program string, start int, tr trigger) []*world {
	t.Helper()
	r := &recorded{admin: harness.FreeAddr(t), server: replay.NewTap(t, server.Addr, net.Dialer{})}
	all, config := worldsWith(t, server, r.server.Addr(), start, tr)
	proxy := harness.Start(t, harness.Spec{Program: program, Config: config + "admin: {listen: '" + r.admin + "'}\n"})
	r.client = replay.NewTap(t, proxy.Addr("a"), net.Dialer{})
	for _, w := range all {
		w.addr, w.recorded = r.client.Addr(), r
	}
	return all
}

// compareWith has scripts played through another program as well, whose ids begin at start.
func (o *oracle) compareWith(t *testing.T, program string, start int) {
	t.Helper()
	o.worlds = recordedWorlds(t, o.native.server, "", wireclient.SourceStart, o.trigger)
	for i, w := range recordedWorlds(t, o.native.server, program, start, o.trigger) {
		o.worlds[i].other = w
	}
}

// referee plays a script that was played in a world in that of the other program, and returns how what the client got, or the
// server, differs.
func (o *oracle) referee(t *testing.T, w *world, sc script) error {
	t.Helper()
	w.other.play(t, sc)
	for _, side := range []struct {
		of       string
		was, are []replay.Exchange
		bytes    func(replay.Exchange) []byte
	}{
		{"client", w.other.recorded.client.Take(), w.recorded.client.Take(), func(e replay.Exchange) []byte { return e.Got }},
		{"server", w.other.recorded.server.Take(), w.recorded.server.Take(), func(e replay.Exchange) []byte { return e.Sent }},
	} {
		assert.MustTrue(t, len(side.was) == len(side.are) && len(side.was) > 0, "%s: %d and %d sessions at the %s", sc.name, len(side.was), len(side.are), side.of)
		for i := range side.was {
			was, is := side.bytes(w.other.alike(side.was[i])), side.bytes(w.alike(side.are[i]))
			o.bytes += len(was)
			if err := replay.FirstDifference(was, is); err != nil {
				return fmt.Errorf("what the %s got in session %d: %w", side.of, i, err)
			}
		}
	}
	return nil
}

// alike is what crossed without what differs by nature: the name of the world's database, the numbers of prepared statements,
// which MariaDB counts on from those of an earlier session, what a change of the user is encrypted with, and a question that
// is asked where the reply before has not been read to its end, as it happens.
func (w *world) alike(e replay.Exchange) replay.Exchange {
	var sent, got []byte
	prepares, changesUser := false, false
	for packet := range replay.Packets(e.Sent) {
		header, payload := packet[:4], packet[4:]
		switch {
		case bytes.HasSuffix(payload, []byte("LAST_INSERT_ID() LIMIT 1")):
			continue
		case len(payload) == 0:
		case header[3] > 0: // of a file, or of a login
			if changesUser {
				clear(payload)
			}
		default:
			prepares = prepares || payload[0] == mysql.COM_STMT_PREPARE
			if changesUser = payload[0] == mysql.COM_CHANGE_USER; changesUser {
				clear(payload[1:])
			}
			if bytes.IndexByte(numberedCommands, payload[0]) >= 0 {
				clear(payload[1:min(len(payload), 5)])
			}
		}
		sent = append(sent, packet...)
	}
	for packet := range replay.Packets(e.Got) {
		switch header, payload := packet[:4], packet[4:]; {
		case header[3] != 1 || len(payload) == 0:
		case prepares && len(payload) == 12 && payload[0] == mysql.OK_HEADER:
			clear(payload[1:5])
		case len(payload) > 9 && payload[0] == mysql.EOF_HEADER:
			clear(payload[1:])
		case statementNumber.Match(payload):
			packet = statementNumber.ReplaceAll(payload, []byte("statement"))
		}
		got = append(got, packet...)
	}
	const name = "database?"
	for _, b := range []*[]byte{&sent, &got} {
		*b = bytes.ReplaceAll(*b, []byte(w.db), []byte(name))
		*b = bytes.ReplaceAll(*b, fmt.Appendf(nil, "%X", w.db), fmt.Appendf(nil, "%X", name)) // so proxies ask for it
	}
	return replay.Exchange{Sent: sent, Got: got}
}

// numberedCommands are those behind which the number of a prepared statement stands. The last is MariaDB's COM_STMT_BULK_EXECUTE.
var numberedCommands = []byte{
	mysql.COM_STMT_EXECUTE, mysql.COM_STMT_SEND_LONG_DATA, mysql.COM_STMT_CLOSE, mysql.COM_STMT_RESET, mysql.COM_STMT_FETCH, 0xfa,
}

var statementNumber = regexp.MustCompile(`statement \(\d+\)`)

// compareCounts fails the test where one of the programs counted what the other did not.
func (o *oracle) compareCounts(t *testing.T) {
	t.Helper()
	was, are := o.worlds[0].other.recorded.counts(t), o.worlds[0].recorded.counts(t)
	assert.Equal(t, "counted by the other program alone", strings.Join(wireclient.LinesOnlyIn(was, are), "; "), "")
	assert.Equal(t, "counted by this program alone", strings.Join(wireclient.LinesOnlyIn(are, was), "; "), "")
}

// counts are the lines of a program's metrics that do not tell of time, memory or the program itself, nor of what happens by
// chance.
func (r *recorded) counts(t *testing.T) (lines []string) {
	t.Helper()
	reply := assert.Of(http.Get("http://" + r.admin + "/metrics")).Must(t)
	defer reply.Body.Close()
	for line := range strings.Lines(string(assert.Of(io.ReadAll(reply.Body)).Must(t))) {
		if !strings.HasPrefix(line, "#") && !ownNumber.MatchString(line) {
			lines = append(lines, strings.TrimSpace(worldDatabase.ReplaceAllString(line, "world")))
		}
	}
	return lines
}

var (
	ownNumber = regexp.MustCompile(`^(go_|process_|promhttp_)|_seconds|_bytes|_info|_time|_years|_open_files|` +
		`_upstream_server_|^idproxy_sessions|"(quiet|last_insert_id)"`)
	worldDatabase = regexp.MustCompile(`world\d{4}`)
)

// TestReferee: two programs that are alike give the same bytes, and one whose ids begin elsewhere other ones.
func TestReferee(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		for further := range 2 {
			o := &oracle{native: newWorld(t, server, native, noTrigger)}
			o.compareWith(t, "", wireclient.SourceStart+further)
			for _, w := range o.worlds {
				for _, sql := range []string{"SELECT 1", "INSERT INTO t (a) VALUES ('x')"} {
					sc := script{name: sql, steps: []step{{sql: sql}}}
					w.play(t, sc)
					err := o.referee(t, w, sc)
					assert.True(t, (err != nil) == (further > 0 && sql != "SELECT 1"), "%s, ids further by %d: the difference is %v", sql, further, err)
				}
			}
			t.Logf("compared: %d bytes", o.bytes)
		}
	})
}
