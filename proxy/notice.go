package proxy

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/inside"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// notices are what the log of a server has of statements that rules concern, and of logins. All
// sessions share them.
type notices struct {
	inside.Log

	mu   sync.Mutex
	seen map[sighting]int // what rules that observe would do, for the end
}

// sighting is one kind of statement that a rule which observes saw.
type sighting struct{ rule, table, what, statement string }

// maxSightings bounds the kinds of statements that are told apart.
const maxSightings = 1000

func newNotices() *notices { return &notices{seen: map[sighting]int{}} }

// observe counts a sighting.
func (n *notices) observe(s sighting) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[s]; !ok && len(n.seen) >= maxSightings {
		s = sighting{rule: s.rule, what: "more kinds of statements than are told apart"}
	}
	n.seen[s]++
}

// summary logs what rules that observe have seen, the most frequent first.
func (n *notices) summary(log *slog.Logger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.SortedFunc(maps.Keys(n.seen), func(a, b sighting) int {
		if d := n.seen[b] - n.seen[a]; d != 0 {
			return d
		}
		return strings.Compare(a.rule+a.table+a.what+a.statement, b.rule+b.table+b.what+b.statement)
	})
	for _, s := range all {
		log.Info("observed in all", "rule", s.rule, "table", s.table, "what", s.what, "statement", s.statement, "count", n.seen[s])
	}
}

// withoutNumbers is what errors of one cause have in common.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// told is the error that a client is told. One of a rule or its source is logged, with what the
// client is not told of it.
func (s *session) told(err error) *mysql.MyError {
	e := clienterr.From(err)
	if e.Code != mysql.ER_AUTOINC_READ_FAILED && e.Code != mysql.ER_NOT_SUPPORTED_YET {
		return e
	}
	others, ok := s.l.srv.notices.Due(s.l.Name + withoutNumbers(e.Message))
	if !ok {
		return e
	}
	s.c.Mu.Lock()
	user, schema, mode := s.c.User, string(s.c.State.Schema), s.c.State.Mode
	s.c.Mu.Unlock()
	said := []any{"code", e.Code, "error", e.Message, "user", user, "schema", schema}
	if s.held != nil {
		said = append(said, "statement", s.held.outline(mode))
	}
	if kept, ok := errors.AsType[clienterr.KeptError](err); ok {
		if _, reference := inside.Text(kept.Cause); reference != "" {
			said = append(said, "reference", reference, "cause", kept.Cause)
		}
	}
	s.log.Warn("statement refused", append(said, "others", others)...)
	return e
}

// outline is the statement that is decided on, without its values. Of an execution it is
// what was prepared.
func (st *statement) outline(mode rewriter.Mode) string {
	if e := st.prepared; e != nil && e.Own != nil && e.Own.Kept && !st.prepares() {
		return rewriter.Outline([]byte(e.Own.Text.Value()), e.Own.By.Mode)
	}
	if st.prefix[0] != mysql.COM_QUERY && st.prefix[0] != mysql.COM_STMT_PREPARE {
		return "execution of a prepared statement"
	}
	if n := len(st.spans); n > 0 {
		return rewriter.Outline(st.text[st.spans[n-1].Start:st.spans[n-1].End], mode)
	}
	return rewriter.Outline(st.text, mode)
}

// findings are what a decision saw that is not what is to be done. They count once the
// decision stands: until then it is made again and again.
type findings struct {
	observed  []sighting
	passed    []passed
	disputes  []dispute
	leftAlone int // statements on tables that a wildcard matches and does not concern
	// What is to be noted of statements that were prepared:
	unread   []unread        // texts that may prepare some by name and were not read
	executed *relay.Prepared // the one that is executed, where one of these is to be noted of it:
	facts    *facts.Table    // what is known now of its table
	types    []uint16        // of its parameters, as the execution gives them
	typed    bool            // it does
}

// unread is what is not known of statements prepared by name.
type unread struct {
	text []byte // that may prepare some; nil: the one of the name
	name string
	by   *rule.List // that do not concern the text
}

// passed is a statement that goes without ids, for its rule says so.
type passed struct {
	rule        *rule.Rule
	table, form string
}

// dispute is a statement that two readers read differently.
type dispute struct {
	rule  *rule.Rule
	table string
	err   error
}

func (f *findings) reset() {
	f.observed, f.passed, f.disputes, f.leftAlone = f.observed[:0], f.passed[:0], f.disputes[:0], 0
	f.unread, f.executed, f.facts, f.types, f.typed = f.unread[:0], nil, nil, f.types[:0], false
}

// note notes what the decision found of statements that were prepared. It does so also
// when the command is refused: what an execution says of types, it has said.
func (f *findings) note(c *relay.Conversation) {
	if len(f.unread) == 0 && f.executed == nil {
		return
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, u := range f.unread {
		if u.text == nil {
			delete(c.Prepared.ByName, u.name)
			continue
		}
		c.Prepared.PassNames(u.text, true, u.by)
	}
	e := f.executed
	if f.typed {
		e.Types = append(e.Types[:0], f.types...)
	}
	if f.facts == nil {
		return
	}
	switch k := e.Kind.(type) {
	case *filler:
		k.facts = f.facts
	case *bare:
		k.facts = f.facts
	}
}

// report logs and counts what the decision found that was made last.
func (s *session) report(found *findings) {
	stats := &s.l.srv.Stats
	stats.LeftAlone.Add(int64(found.leftAlone))
	for _, p := range found.passed {
		stats.Forwarded.Add(1)
		s.log.Debug("forwarded without ids", "rule", p.rule.String(), "table", p.table, "form", p.form)
	}
	for _, d := range found.disputes {
		s.log.Warn("two readers read a statement differently, it is not filled", "rule", d.rule.String(), "table", d.table, "error", d.err)
	}
	for _, o := range found.observed {
		stats.Observed.Add(1)
		s.l.srv.notices.observe(o)
		if others, ok := s.l.srv.notices.Due(o.rule + o.table + o.what); ok {
			s.log.Info("observed", "rule", o.rule, "table", o.table, "what", o.what, "statement", o.statement, "others", others)
		}
	}
	found.reset()
}

// denied logs that the server refused a login. It has said why to the client.
func (s *session) denied() {
	s.c.Mu.Lock()
	user, code := s.c.User, s.c.Last.Code
	s.c.Mu.Unlock()
	if others, ok := s.l.srv.notices.Due(s.l.Name + " login " + user); ok {
		s.log.Info("login failed", "user", user, "code", code, "others", others)
	}
}
