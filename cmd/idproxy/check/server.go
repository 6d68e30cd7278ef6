package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/proxy/choice"
	"idproxy/rule"
)

// server is a server that is asked with the account of its listeners.
type server struct {
	*inventory.Shard // of listeners with the same account
	notes            // about the server itself
	asked
	patience patience
	alone    bool          // no other server is asked
	lags     bool          // what is asked may lag behind another
	tables   []*tableCheck // by rule, then by name; those that a deadline left out, too
}

// name is how findings name the server: by its listeners.
func (s *server) name() string {
	names := make([]string, len(s.Listeners))
	for i, l := range s.Listeners {
		names[i] = l.Name
	}
	if len(names) == 1 {
		return "listener " + names[0]
	}
	return "listeners " + strings.Join(names, ", ")
}

func (s *server) pos() config.Pos { return s.Listeners[0].Pos }

// address is that of the server that was asked, or of all where none could be.
func (s *server) address() string {
	if s.asked.Server != nil {
		return s.asked.Server.Addr.String()
	}
	return s.Listeners[0].Behind()
}

// run looks at the server and at all tables that rules concern.
func (s *server) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.patience.all)
	defer cancel()
	u, takesWrites, err := upstream.OpenUsed(ctx, s.cfg, s.Listeners[0])
	if err != nil {
		s.add(s.pos(), LevelError, "%s: %v: NOT checked, nor are its tables", s.name(), err)
		return
	}
	defer u.Close()
	s.asked.Server, s.lags = u, !takesWrites
	if s.lags {
		s.add(s.pos(), LevelWarning, "%s: no server takes writes: %s is read-only, and what it holds may not be all there is", s.name(), s.address())
	}
	s.standbys(ctx)
	s.inside, s.where = s.lookInside(ctx), s.whereName()
	first, cancel := context.WithTimeout(ctx, s.patience.first)
	defer cancel()
	rights, err := s.Rights(first)
	if rights == nil {
		s.add(s.pos(), LevelError, "%s: server %s: %v: NOT checked, nor are its tables", s.name(), s.address(), silence(err, s.patience.first))
		return
	}
	s.facts = rights.Facts
	s.add(s.pos(), LevelNote, "%s: server %s is %s", s.name(), s.address(), s.facts.Version)
	if err != nil {
		s.add(s.pos(), LevelNote, "%s: not checked: what the account may not see: %v", s.name(), err)
	} else {
		s.asked.rights = rights
	}
	s.logins(ctx)
	if err := s.match(ctx); err != nil {
		s.add(s.pos(), LevelError, "%s: server %s: %v: its tables are NOT checked", s.name(), s.address(), silence(err, s.patience.all))
		return
	}
	if s.asked.rights != nil {
		s.hidden(s.asked.rights)
	}
	upstream.AtOnce(s.tables, upstream.ConnectionsAtOnce, func(t *tableCheck) { t.run(ctx) })
}

// standbys says of the other servers behind the listener whether sessions could go to them.
func (s *server) standbys(ctx context.Context) {
	for _, to := range s.Listeners[0].Servers() {
		if to == s.asked.Server.Addr {
			continue
		}
		u, err := upstream.OpenAlone(s.Listeners[0], to, func() time.Duration { return s.cfg.ConnectTimeout(s.Listeners[0]) })
		if err == nil {
			err = errors.Join(u.TakesWrites(ctx), u.Close())
		}
		switch {
		case err == nil:
			s.add(s.pos(), LevelNote, "%s: server %s stands by", s.name(), to)
		case errors.Is(err, choice.ErrReadOnly):
			s.add(s.pos(), LevelNote, "%s: server %s stands by: it is read-only", s.name(), to)
		default:
			s.add(s.pos(), LevelWarning, "%s: server %s could not take the place of %s: %v", s.name(), to, s.address(), err)
		}
	}
}

// silence words an error that comes of a deadline.
func silence(err error, waited time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", waited)
	}
	return err
}

// logins finds accounts that cannot log in through a listener without TLS as they can
// at the server, which offers it: the client has to send its password, which it does not
// do in the clear. The server remembers who did, until it is restarted or told to forget.
func (s *server) logins(ctx context.Context) {
	bare := slices.DeleteFunc(slices.Clone(s.Listeners), func(l *config.Listener) bool { return l.TLS != nil || l.Listen.Network != "tcp" })
	if len(bare) == 0 || s.facts.MariaDB {
		return
	}
	var accounts []string
	err := s.Each(ctx, "SELECT User, Host FROM mysql.user WHERE plugin = 'caching_sha2_password' AND account_locked = 'N' ORDER BY User, Host", func(row []string) {
		accounts = append(accounts, "'"+row[0]+"'@'"+row[1]+"'")
	})
	for _, l := range bare {
		if e, denied := errors.AsType[*driver.MySQLError](err); denied {
			s.add(l.Pos, LevelNote, "listener %s: not checked: accounts that need TLS: the account may not look: %s%s", l.Name, e.Message, s.grant("SELECT", "mysql"))
		} else if len(accounts) > 0 {
			s.add(l.Pos, LevelWarning, "listener %s: it offers no TLS, and these accounts have caching_sha2_password: %s: clients that do not ask for the server's key fail with 2061 at their first login; "+
				"add tls to the listener, or set the clients' option (--get-server-public-key)", l.Name, someOf(accounts))
		}
	}
}

// hidden says what servers show of schemas with tables of rules to those alone who have a right to it. They
// leave it out without a word.
func (s *server) hidden(rights *upstream.Rights) {
	for _, what := range []struct{ right, shows string }{{"SHOW VIEW", "what views are of"}, {"TRIGGER", "triggers"}, {"EVENT", "events"}} {
		var schemas []string
		for _, t := range s.tables {
			if !slices.Contains(schemas, t.schema) && !rights.On(t.schema, what.right) {
				schemas = append(schemas, t.schema)
			}
		}
		if schemas != nil {
			s.add(s.pos(), LevelNote, "%s: not checked: %s in %s: account %s has no %s there%s", s.name(), what.shows, someOf(schemas), rights.Account, what.right, s.grant(what.right, schemas...))
		}
	}
	switch inMySQL := s.facts.MariaDB || strings.HasPrefix(s.facts.Version, "5."); { // mysql.proc has the routines
	case len(s.tables) == 0 || rights.Everywhere("SELECT"):
	case inMySQL && !rights.On("mysql", "SELECT"):
		s.add(s.pos(), LevelNote, "%s: not checked: what routines do: account %s has no SELECT on mysql.*%s", s.name(), rights.Account, s.grant("SELECT", "mysql"))
	case !inMySQL && !rights.Everywhere("SHOW_ROUTINE"):
		s.add(s.pos(), LevelNote, "%s: not checked: what routines do: account %s has no SHOW_ROUTINE: run %s", s.name(), rights.Account, rights.GrantEverywhere("SHOW_ROUTINE"))
	}
}

// match finds the tables that rules of the server's listeners concern: those that rules
// name, there or not, and those that wildcards match, as the proxy matches them.
func (s *server) match(ctx context.Context) error {
	type concerned struct {
		rule          *config.Rule
		schema, table string
	}
	known, matched := map[concerned]bool{}, map[*config.Rule]bool{}
	add := func(set *rule.List, r *config.Rule, schema, table string) {
		if c := (concerned{r, schema, table}); !known[c] {
			known[c], matched[r] = true, true
			s.tables = append(s.tables, &tableCheck{asked: &s.asked, rules: set, rule: r, schema: schema, table: table})
		}
	}
	l, err := s.List(ctx, s.cfg, s.Server, func(*config.Rule) bool { return true })
	if err != nil {
		return err
	}
	var all []string // schemas whose tables a wildcard may match
	if slices.ContainsFunc(l.Rules, (*config.Rule).Wild) {
		all = l.Schemas
	}
	if err := l.Show(ctx, l.Schemas, nil, all); err != nil {
		return err
	}
	s.listing = l
	for _, set := range l.Sets {
		byName := map[string]*config.Rule{}
		for _, r := range set.Rules {
			byName[r.String()] = r
			if !r.Wild() {
				add(set.List, r, r.Schema, r.Table)
			}
		}
		for _, t := range l.Tables {
			for _, rule := range set.Match([]byte(t.Schema), []byte(t.Name), s.facts.Fold) {
				if !rule.Exact() {
					add(set.List, byName[rule.String()], t.Schema, t.Name)
				}
			}
		}
	}
	for _, r := range l.Rules {
		if !matched[r] {
			s.add(r.Pos, LevelNote, "rule %s: %smatches no table that the account may see", r, s.where)
		}
	}
	slices.SortStableFunc(s.tables, func(a, b *tableCheck) int {
		return cmp.Or(cmp.Compare(a.rule.Pos.Line, b.rule.Pos.Line), cmp.Compare(a.rule.Pos.Column, b.rule.Pos.Column), strings.Compare(a.schema, b.schema), strings.Compare(a.table, b.table))
	})
	return nil
}

// report returns what was found, and what could not be looked at.
func (s *server) report() []Finding {
	all := slices.Clone(s.findings)
	left := map[*config.Rule][]string{}
	var unseen []string
	for _, t := range s.tables {
		switch {
		case !t.seen:
			unseen = append(unseen, t.schema+"."+t.table)
		case t.left != "":
			left[t.rule] = append(left[t.rule], t.schema+"."+t.table+" ("+t.left+")")
		}
		all = append(all, t.findings...)
	}
	n := notes{all}
	if len(unseen) > 0 {
		n.add(s.pos(), LevelError, "%s: server %s: no answer within %v: NOT checked: %s", s.name(), s.address(), s.patience.all, someOf(unseen))
	}
	for i := range s.cfg.Rules {
		r := &s.cfg.Rules[i]
		if list := left[r]; len(list) > 0 {
			n.add(r.Pos, LevelNote, "rule %s: %sleaves tables alone: %s", r, s.where, someOf(list))
		}
	}
	return n.findings
}

// whereName names the server in findings about tables, when there are others.
func (s *server) whereName() string {
	if s.alone {
		return ""
	}
	return s.name() + ": "
}

// someOf lists names, not more than a person reads.
func someOf(names []string) string {
	const most = 20
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
