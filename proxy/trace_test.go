package proxy

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/rule"
)

func TestTraceChooses(t *testing.T) {
	prefix := netip.MustParsePrefix
	for _, tt := range []struct {
		name         string
		trace        Trace
		user, remote string
		want         bool
	}{
		{"user", Trace{User: "app"}, "app", "10.0.0.5:3", true},
		{"another user", Trace{User: "app"}, "cron", "10.0.0.5:3", false},
		{"address", Trace{Address: prefix("10.0.0.5/32")}, "cron", "10.0.0.5:3", true},
		{"another address", Trace{Address: prefix("10.0.0.5/32")}, "cron", "10.0.0.6:3", false},
		{"network", Trace{Address: prefix("10.0.0.0/8")}, "cron", "10.0.0.6:3", true},
		{"both", Trace{"app", prefix("10.0.0.0/8")}, "app", "10.0.0.6:3", true},
		{"the user alone", Trace{"app", prefix("10.0.0.0/8")}, "app", "11.0.0.6:3", false},
		{"IPv4 in IPv6", Trace{Address: prefix("10.0.0.0/8")}, "app", "[::ffff:10.0.0.6]:3", true},
		{"IPv6 with a zone", Trace{Address: prefix("fe80::/10")}, "app", "[fe80::1%eth0]:3", true},
		{"unix socket", Trace{Address: prefix("10.0.0.0/8")}, "app", "@", false},
		{"unix socket by user", Trace{User: "app"}, "app", "@", true},
	} {
		if got := tt.trace.chooses(tt.user, tt.remote); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// tracedSession is one whose log is written to out.
func tracedSession(out *bytes.Buffer, trace *Trace) *session {
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	srv := New(Config{Listeners: []Listener{{Name: "a", Upstreams: []Upstream{{Addr: Address{Net: "tcp", Addr: "h:1"}}}}}, Tracer: log}, &Settings{Trace: trace})
	one, other := net.Pipe()
	one.Close()
	other.Close()
	s := srv.listeners[0].newSession(one, 0)
	handshake{s}.settle(srv.listeners[0].servers[0].at(one.RemoteAddr()))
	s.who.setClient("10.0.0.5:3")
	return s
}

// traceAll is all that the way of a statement tells a tracer.
func traceAll(s *session, st *decide.Statement, r *rule.Rule, question []byte) {
	s.trace = s.chosen()
	began := s.trace.now()
	s.trace.asked(question, nil, began)
	s.trace.learned(stats.Setting, began, nil)
	s.trace.found(&st.Found)
	s.trace.drew(r, 2)
	s.trace.sentInFront(nil)
	s.trace.decided(st, st.Text, stats.Filled, stats.Query, began)
}

func traceable() (*decide.Statement, *rule.Rule, []byte) {
	st := &decide.Statement{Command: decide.Command{Prefix: []byte{mysql.COM_QUERY}, Text: []byte("INSERT INTO t VALUES ('secret')")}}
	var c protocol.Conn
	return st, &rule.Rule{Source: "ids"}, c.AppendQuery(nil, "SELECT 'secret'")
}

// TestTraceOffIsFree: where no session is chosen, the way of a statement takes no memory for it.
func TestTraceOffIsFree(t *testing.T) {
	st, r, question := traceable()
	var out bytes.Buffer
	off := tracedSession(&out, nil)
	if n := testing.AllocsPerRun(100, func() { traceAll(off, st, r, question) }); n != 0 || out.Len() != 0 {
		t.Errorf("%v allocations, and %q", n, out.String())
	}
	other := tracedSession(&out, &Trace{User: "another"})
	if traceAll(other, st, r, question); out.Len() != 0 {
		t.Errorf("of another session: %q", out.String())
	}
	on := tracedSession(&out, &Trace{Address: netip.MustParsePrefix("10.0.0.5/32")})
	if n := testing.AllocsPerRun(1, func() { traceAll(on, st, r, question) }); n == 0 {
		t.Error("a session that is chosen takes no memory: nothing is measured")
	}
	for _, want := range []string{
		`msg="hidden question" session.id=0 listener=a client.address=10.0.0.5:3 thread=0 user.name="" db.query.text="SELECT ?" duration=`,
		`msg="need met"`, "need=settings", `msg="ids drawn"`, "source=ids ids=2", `msg="command decided"`, `outcome=filled form=query db.query.text="INSERT INTO ? VALUES(?)" duration=`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Errorf("a value is told:\n%s", out.String())
	}
}

// BenchmarkTraceOff is what a command that is decided on pays for log.trace when it is not set. A
// forwarded command pays nothing: it does not come here.
func BenchmarkTraceOff(b *testing.B) {
	st, r, question := traceable()
	s := tracedSession(&bytes.Buffer{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		traceAll(s, st, r, question)
	}
}

// BenchmarkTraceOfAnother is what it pays while another session is traced.
func BenchmarkTraceOfAnother(b *testing.B) {
	st, r, question := traceable()
	s := tracedSession(&bytes.Buffer{}, &Trace{User: "another", Address: netip.MustParsePrefix("10.0.0.5/32")})
	b.ReportAllocs()
	for b.Loop() {
		traceAll(s, st, r, question)
	}
}
