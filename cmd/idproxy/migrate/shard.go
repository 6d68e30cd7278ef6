package migrate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/rule"
)

// shard is a server behind listeners.
type shard struct {
	*inventory.Shard
	place            // by the first listener that leads to it
	*upstream.Rights // none where it cannot be asked
	places           []place
	sets             []inventory.Set
	forgets          string // its version, where that forgets counters at a restart
	server           *upstream.Server
	away             error // why it cannot be asked, which is no obstacle to a way back; nil: it can
}

// place is where a server is.
type place struct{ name, address string } // of a listener, and of the server as that one has it

// is reports whether a counter is on the shard, by a name of it.
func (s *shard) is(c *counter) bool {
	return slices.ContainsFunc(s.places, func(p place) bool { return p.name == c.Shard })
}

// openShards opens the servers behind listeners whose rules have a switch, each once, by whatever names. On
// the way back it is no error where one does not answer.
func openShards(ctx context.Context, cfg *config.Config, name string, back bool) (all []*shard, err error) {
	met := newServers()
	defer met.forget()
	for _, at := range inventory.Shards(cfg, func(l *config.Listener, rules []*config.Rule) (string, bool) {
		return l.Behind(), slices.ContainsFunc(rules, func(r *config.Rule) bool { return r.Mode.Switch == name })
	}) {
		s := &shard{Shard: at, place: place{name: at.Listeners[0].Name}, Rights: &upstream.Rights{}}
		if s.away = s.open(ctx, cfg, at.Listeners[0]); s.away != nil && !back {
			closeShards(all)
			return nil, fmt.Errorf("shard %s: %w", s.name, s.away)
		}
		for _, l := range at.Listeners {
			s.places = append(s.places, place{l.Name, s.address})
		}
		same := met.same(ctx, s)
		if same == nil {
			all = append(all, s)
			continue
		}
		closeShards([]*shard{s})
		same.Listeners, same.places = append(same.Listeners, s.Listeners...), append(same.places, s.places...)
	}
	for _, s := range all {
		s.sets = s.Sets(cfg)
	}
	return all, nil
}

func closeShards(all []*shard) {
	for _, s := range all {
		if s.away == nil {
			_ = s.server.Close() // nothing is pending
		}
	}
}

// sqlMode writes names in backticks, and lets a column that is to count again hold 0. What follows has MariaDB alter tables that keep their
// old rows.
const sqlMode = "'NO_AUTO_VALUE_ON_ZERO'/*M!100304 , system_versioning_alter_history = KEEP */"

func (s *shard) open(ctx context.Context, cfg *config.Config, l *config.Listener) error {
	server, writes, err := upstream.OpenUsed(ctx, cfg, l)
	if err != nil {
		return err
	}
	s.server, s.address, server.SQLMode = server, server.Addr.String(), sqlMode
	if !writes {
		err = errors.New("it takes no writes")
	}
	var rights *upstream.Rights
	if err == nil {
		rights, err = server.Rights(ctx)
	}
	if err != nil {
		return errors.Join(err, server.Close())
	}
	s.Rights = rights
	if forgets(s.Version) {
		s.forgets = s.Version
	}
	return nil
}

// forgets reports whether a server begins to count at the greatest id again when it is restarted: MySQL
// before 8.0, MariaDB before 10.2.4.
func forgets(version string) bool {
	from := uint32(80000)
	if strings.Contains(version, "MariaDB") {
		from = 100204
	}
	n := upstream.VersionNumber(version)
	return n > 0 && n < from
}

// found is what a shard says of a column.
type found struct {
	rule         *config.Rule
	schema, name string
	column       string
	definition   string // as SHOW CREATE TABLE has it
	engine       string // of the table; empty: InnoDB
	next         uint64 // by the counter
	groups       bool   // it counts within the groups of a key
	unread       error  // why it has no definition
}

// listTables lists the columns of plain tables that rules with a switch are for.
func (s *shard) listTables(ctx context.Context, turnedBy string) (all []*found, err error) {
	const query = "SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME FROM information_schema.COLUMNS c JOIN information_schema.TABLES t " +
		"ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME " +
		"WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND c.TABLE_SCHEMA" + upstream.NotOwn +
		"AND c.DATA_TYPE IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') ORDER BY 1, 2, 3"
	var errs []error
	err = s.server.Each(ctx, query, func(row []string) {
		r, err := s.rule(row[0], row[1], row[2], turnedBy)
		errs = append(errs, err)
		if r != nil {
			all = append(all, &found{rule: r, schema: row[0], name: row[1], column: row[2]})
		}
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	upstream.AtOnce(all, upstream.ConnectionsAtOnce, func(f *found) { f.unread = s.describe(ctx, f) })
	for _, f := range all {
		errs = append(errs, f.unread)
	}
	return all, errors.Join(errs...)
}

// rule returns the rule of a column that a switch turns; nil: there is none. Through each listener the
// first one counts that matches.
func (s *shard) rule(schema, name, column, turnedBy string) (found *config.Rule, err error) {
	for _, set := range s.sets {
		i := slices.IndexFunc(set.Rules, func(r *config.Rule) bool {
			return strings.EqualFold(r.Column, column) && r.Pattern().Match(schema, name, s.Fold)
		})
		if i < 0 {
			continue
		}
		switch r := set.Rules[i]; {
		case r.Mode.Switch != turnedBy:
		case found == nil:
			found = r
		case found.Source != r.Source:
			return nil, fmt.Errorf("table %s.%s gets ids of source %s by rule %s through one listener, and of source %s by rule %s through another: name one source in both",
				schema, name, found.Source, found, r.Source, r)
		}
	}
	return found, nil
}

// hidden says which tables that a switch turns the account may not see: the server leaves them out without
// a word, and the proxies may fill them. tables are those that it shows.
func (s *shard) hidden(turnedBy string, tables []*found) (all []Finding) {
	defer func() { all = unique(all) }() // a rule may hold for several listeners
	for _, set := range s.sets {
		for _, r := range set.Rules {
			seen := func(f *found) bool { return r.Pattern().Match(f.schema, f.name, s.Fold) }
			switch {
			case r.Mode.Switch != turnedBy || s.Sees(r.Pattern()) || !r.Wild() && slices.ContainsFunc(tables, seen):
			case strings.ContainsAny(r.Schema, "*?"):
				all = append(all, finding(LevelForce, "shard %s: account %s has no SELECT on *.*, so that there may be tables of rule %s which it cannot see, and whose counters meet ids of the proxies: GRANT it, or name another account with --account",
					s.name, s.Account, r))
			default:
				all = append(all, finding(LevelForce, "shard %s: account %s has no SELECT on schema %s, so that there may be tables of rule %s which it cannot see, and whose counters meet ids of the proxies: GRANT it, also where there is no such schema, or name another account with --account",
					s.name, s.Account, r.Schema, r))
			}
		}
	}
	return all
}

// describe asks for the definition of a column, and the counter of its table.
func (s *shard) describe(ctx context.Context, f *found) error {
	var name, text string
	of := upstream.Quote(f.schema) + "." + upstream.Quote(f.name)
	err := s.server.DB.QueryRowContext(ctx, "SHOW CREATE TABLE "+of).Scan(&name, &text)
	if err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	if f.definition, f.next, err = parseTable(text, f.column); err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	if m := engine.FindStringSubmatch(text); m != nil && !strings.EqualFold(m[1], "InnoDB") {
		f.engine = m[1]
	}
	f.groups = f.counts() && !leads(text, f.column)
	return nil
}

// leads reports whether a key of a table begins with a column: else its counter is one of each group, which
// InnoDB does not have.
func leads(text, column string) bool {
	for line := range strings.Lines(text) {
		if m := key.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[1], upstream.Quote(column)) {
			return true
		}
	}
	return false
}

// key is the line of a key, and its columns.
var key = regexp.MustCompile("^  (?:PRIMARY |UNIQUE )?KEY (?:`(?:[^`]|``)*` )?\\((.*)")

// engine is that of a table. Its line begins with a bracket, which those of columns do not.
var engine = regexp.MustCompile(`(?m)^\)[^'\n]*? ENGINE=(\w+)`)

// nextID is the counter behind the columns; texts come later in the line, in quotes.
var nextID = regexp.MustCompile(`(?m)^\)[^'\n]*? AUTO_INCREMENT=([0-9]+)`)

// errNoColumn is why a column has no definition.
var errNoColumn = errors.New("its definition has no column")

// parseTable reads the definition of a column and the counter out of that of a table, which has a line
// for each column.
func parseTable(text, column string) (definition string, next uint64, err error) {
	begins := "\n  " + upstream.Quote(column) + " "
	at := strings.Index(text, begins)
	if at < 0 {
		return "", 0, fmt.Errorf("%w %s", errNoColumn, column)
	}
	line, _, _ := strings.Cut(text[at+len(begins):], "\n")
	definition, next = strings.TrimSuffix(line, ","), 1
	if m := nextID.FindStringSubmatch(text); m != nil {
		if next, err = strconv.ParseUint(m[1], 10, 64); err != nil {
			return "", 0, fmt.Errorf("its counter is %s: %w", m[1], err)
		}
	}
	return definition, next, nil
}

// counts reports whether the column is AUTO_INCREMENT.
func (f *found) counts() bool { return f.plain() != f.definition }

// plain is the definition without that.
func (f *found) plain() string { return plain(f.definition) }

// plain takes AUTO_INCREMENT out of the definition of a column.
func plain(definition string) string { return without(definition, " AUTO_INCREMENT") }

// without takes a word with the blank in front of it out of the definition of a column. In a text it stays.
func without(definition, word string) string {
	quoted := false
	for i := 0; i < len(definition); i++ {
		switch {
		case definition[i] == '\'':
			quoted = !quoted // '' does it twice
		case definition[i] == '\\' && quoted:
			i++
		case !quoted && strings.HasPrefix(definition[i:], word):
			return definition[:i] + definition[i+len(word):]
		}
	}
	return definition
}

// greatest returns the greatest id of a table up to some id; 0: there is none.
func (s *shard) greatest(ctx context.Context, t *table, upTo uint64) (uint64, error) {
	return s.server.Greatest(ctx, t.Schema, t.Name, rule.Column{Name: t.Column}, upTo)
}

// Waiting for a table that someone has locked: the account waits for a second each time.
const (
	lockTries = 30
	lockPause = 200 * time.Millisecond
	lockWait  = 1205
)

// tableDenied is the server's number for a right on a table that an account has not.
const tableDenied = 1142

// alter runs an ALTER TABLE, again and again while someone has the table in a transaction. next makes the
// statement for each try, as the table goes on meanwhile; empty: there is nothing to do.
func (s *shard) alter(ctx context.Context, next func() (string, error)) error {
	for try := 1; ; try++ {
		statement, err := next()
		if err == nil && statement == "" {
			return nil
		}
		if err == nil {
			if _, err = s.server.DB.ExecContext(ctx, statement); err != nil {
				err = fmt.Errorf("%s: %w", statement, err)
			}
		}
		e, ok := errors.AsType[*driver.MySQLError](err)
		switch {
		case ok && e.Number == tableDenied:
			return fmt.Errorf("%w: the account needs ALTER, CREATE and INSERT on the table: grant them, or name another account with --account", err)
		case !ok || e.Number != lockWait:
			return err
		case try == lockTries:
			return fmt.Errorf("%w: a transaction has used the table and is still open, tried %d times: end it (information_schema.INNODB_TRX has it), and run the step again", err, lockTries)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
}
