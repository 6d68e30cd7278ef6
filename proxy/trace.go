package proxy

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/inside"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// Trace chooses sessions of which Config.Tracer is told every decision.
type Trace struct {
	User    string       // empty: any
	Address netip.Prefix // of the client; not valid: any
}

func (t *Trace) chooses(user, remote string) bool {
	if t.User != "" && t.User != user {
		return false
	}
	if !t.Address.IsValid() {
		return true
	}
	host, _, err := net.SplitHostPort(remote)
	if err != nil { // a unix socket has no host
		return false
	}
	client, err := netip.ParseAddr(host)
	return err == nil && t.Address.Contains(client.Unmap().WithZone(""))
}

// tracer tells what becomes of the commands of one session: shapes of statements, never their values.
// nil tells nobody, at no cost.
type tracer struct {
	log     *slog.Logger
	c       *protocol.Conn
	decider *decide.Decider
}

// now is the time, where it will be told how long something takes.
func (t *tracer) now() (at time.Time) {
	if t != nil {
		at = time.Now()
	}
	return at
}

// asked tells of a question that the client does not see, which was sent at a time and has its reply.
func (t *tracer) asked(packet, reply []byte, began time.Time) {
	if t == nil {
		return
	}
	said := []any{"db.query.text", t.shape(packet), "duration", time.Since(began)}
	if len(reply) > wire.HeaderLen && reply[wire.HeaderLen] == wire.ErrByte {
		said = append(said, "db.response.status_code", wire.ErrCode(reply[wire.HeaderLen:])) // its text may quote a value
	}
	t.log.Debug("hidden question", said...)
}

// sentInFront tells of questions that go out together with the command behind them.
func (t *tracer) sentInFront(packets []byte) {
	if t == nil {
		return
	}
	for len(packets) > wire.HeaderLen {
		n := min(wire.HeaderLen+wire.PayloadLen(packets), len(packets))
		t.log.Debug("hidden question sent in front", "db.query.text", t.shape(packets[:n]))
		packets = packets[n:]
	}
}

// shape returns a command of the proxy's own without values.
func (t *tracer) shape(packet []byte) string {
	payload := packet[wire.HeaderLen:]
	switch payload[0] {
	case mysql.COM_QUERY:
		return t.decider.Shape(payload[len(t.c.AppendQuery(nil, ""))-wire.HeaderLen:], t.c.Vars().Mode)
	case mysql.COM_STMT_PREPARE:
		return "prepare: " + t.decider.Shape(payload[1:], t.c.Vars().Mode)
	case mysql.COM_STMT_EXECUTE:
		return "execution of a prepared statement"
	case mysql.COM_STMT_RESET:
		return "reset of a prepared statement"
	}
	return "another command"
}

// learned tells that a decision has what it waited for, or why not.
func (t *tracer) learned(what stats.Question, began time.Time, err error) {
	if t == nil {
		return
	}
	said := []any{"need", what.String(), "duration", time.Since(began)}
	if e, refused := errors.AsType[*mysql.MyError](err); refused {
		said = append(said, "db.response.status_code", e.Code)
	}
	t.log.Debug("need met", said...)
}

// drew tells of ids that were drawn.
func (t *tracer) drew(r *rule.Rule, ids int) {
	if t != nil {
		t.log.Debug("ids drawn", "rule", r.String(), "source", r.Source, "ids", ids)
	}
}

// found tells what observing rules would do.
func (t *tracer) found(f *decide.Findings) {
	if t == nil {
		return
	}
	for _, o := range f.Observed {
		t.log.Debug("rule observes", "rule", o.Rule, "db.collection.name", o.Table, "what", o.What)
	}
}

// refused tells of an error that the client gets from here.
func (t *tracer) refused(by string, why rule.Reason, e *mysql.MyError) {
	if t != nil {
		t.log.Debug("refusal", "rule", by, "reason", why.String(), "db.response.status_code", e.Code, "error.message", inside.WithoutNumbers(e.Message))
	}
}

// passedOn tells that the client gets the server's own error for what would have been refused here.
func (t *tracer) passedOn(e *mysql.MyError) {
	if t != nil {
		t.log.Debug("refusal left to the server", "db.response.status_code", e.Code)
	}
}

// decided tells what became of a command. text is that of its SQL, as it came.
func (t *tracer) decided(st *decide.Statement, text []byte, k stats.Kind, f stats.Form, began time.Time) {
	if t == nil {
		return
	}
	mode := t.c.Vars().Mode
	shape := t.decider.Outline(st, mode)
	if st.Prefix[0] == mysql.COM_QUERY || st.Prefix[0] == mysql.COM_STMT_PREPARE {
		shape = t.decider.Shape(text, mode)
	}
	t.log.Debug("command decided", "outcome", k.String(), "form", f.String(), "db.query.text", shape, "duration", time.Since(began))
}
