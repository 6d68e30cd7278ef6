package proxy

import (
	"crypto/sha256"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/pattern"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// factsAge is how long the columns of a table are believed. DDL through the
// proxy and errors that speak of columns end it at once.
const factsAge = time.Minute

// tables caches what a server says of its tables, for all sessions of a
// listener.
type tables struct {
	fold  atomic.Int32 // foldUnknown, foldNo or foldYes
	names names

	mu       sync.RWMutex
	changes  uint64 // grows with every forgetting
	facts    map[string]*facts
	admitted map[admission]bool // columns whose greatest id the source has been compared with
	left     map[departure]bool // tables that wildcards leave alone, once that was logged
}

// facts is what the server said of one table.
type facts struct {
	name  string // schema.table, for messages
	table *rule.Table
	bases []base         // of columns that have a series for each table
	view  bool           // it lacks a column that a rule names, and is a view
	err   *mysql.MyError // why it said nothing
	// partial: the user may not see all of it, others may.
	partial bool
	at      time.Time
	// changes is that of the tables before the server was asked: what it says
	// while DDL is on its way may be over already.
	changes uint64
	engine  atomic.Int32 // engineUnknown, ...
	doubted atomic.Bool  // a row did not fit the table
	// shape tells the columns that SELECT * shows from others, and full is when the
	// rest was asked for.
	shape [sha256.Size]byte
	full  time.Time
}

// doubt says that a row did not fit the table.
func (f *facts) doubt() { f.doubted.Store(true) }

// admission names a column and a source that it was compared with.
type admission struct {
	table  string // schema.table
	column string
	source string
}

// departure is why a wildcard rule leaves a table alone.
type departure struct{ rule, table, why string }

// maxFacts bounds the cache; when it is full it is emptied.
const maxFacts = 10_000

// What is known of lower_case_table_names.
const (
	foldUnknown = iota
	foldNo      // 0: names compare as they are
	foldYes     // 1 or 2: names compare without regard to case
)

func (t *tables) setFold(fold bool) {
	if fold {
		t.fold.Store(foldYes)
		return
	}
	t.fold.Store(foldNo)
}

func newTables() *tables {
	return &tables{facts: map[string]*facts{}, admitted: map[admission]bool{}, left: map[departure]bool{}}
}

// appendKey appends the key of a table to dst. Without regard to case when the
// server says so.
func (t *tables) appendKey(dst, schema, table []byte) []byte {
	at := len(dst)
	dst = append(append(append(dst, schema...), 0), table...)
	if t.fold.Load() == foldYes {
		for i, b := range dst[at:] {
			switch {
			case 'A' <= b && b <= 'Z':
				dst[at+i] = b + 'a' - 'A'
			case b >= utf8.RuneSelf:
				return append(dst[:at], pattern.Fold(string(dst[at:]))...)
			}
		}
	}
	return dst
}

func (t *tables) get(key []byte) *facts {
	t.mu.RLock()
	f := t.facts[string(key)]
	t.mu.RUnlock()
	if f == nil || f.doubted.Load() || time.Since(f.at) > factsAge {
		return nil
	}
	return f
}

// current reports whether facts kept outside of the cache are still believed.
func (t *tables) current(f *facts) bool {
	return f != nil && f.changes == t.count() && !f.doubted.Load() && time.Since(f.at) <= factsAge
}

// count returns how often facts were forgotten.
func (t *tables) count() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.changes
}

// put keeps facts unless tables have changed since they were asked for.
func (t *tables) put(key string, f *facts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.changes != t.changes {
		return
	}
	if len(t.facts) >= maxFacts {
		clear(t.facts)
	}
	t.facts[key] = f
}

// forget drops all facts. Admitted columns stay admitted: a source that is
// ahead of a column stays ahead.
func (t *tables) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	clear(t.facts)
}

func (t *tables) isAdmitted(column admission) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.admitted[column]
}

func (t *tables) admit(column admission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted[column] = true
}

// withdraw forgets the admission of columns that no rule names any more: what is stored in
// them meanwhile the source does not know.
func (t *tables) withdraw(book ruleBook) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.admitted {
		schema, table, _ := strings.Cut(a.table, ".")
		if !slices.ContainsFunc(book.Match([]byte(schema), []byte(table), book.fold), func(r *rule.Rule) bool {
			return r.Column == a.column && r.Source == a.source && !r.Observe
		}) {
			delete(t.admitted, a)
		}
	}
}

// leaves notes that a table is left alone, and reports whether that is news.
func (t *tables) leaves(d departure) bool {
	t.mu.RLock()
	known := t.left[d]
	t.mu.RUnlock()
	if known {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) >= maxFacts {
		clear(t.left)
	}
	known, t.left[d] = t.left[d], true
	return !known
}

// maxID returns the greatest id a column holds, 0 when it cannot hold ids.
// Floating-point columns cannot: they lose digits above 2^53.
func maxID(c wire.Column) uint64 {
	bits := map[byte]int{
		mysql.MYSQL_TYPE_TINY: 8, mysql.MYSQL_TYPE_SHORT: 16, mysql.MYSQL_TYPE_INT24: 24,
		mysql.MYSQL_TYPE_LONG: 32, mysql.MYSQL_TYPE_LONGLONG: 64,
	}[c.Type]
	switch {
	case bits > 0 && c.Flags&mysql.UNSIGNED_FLAG != 0:
		return math.MaxUint64 >> (64 - bits)
	case bits > 0:
		return math.MaxUint64 >> (65 - bits)
	}
	digits := int(c.Length)
	switch c.Type {
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		digits -= int(c.Decimals)
		if c.Decimals > 0 {
			digits-- // the point
		}
		if c.Flags&mysql.UNSIGNED_FLAG == 0 {
			digits-- // the sign
		}
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING:
		if c.Flags&(mysql.ENUM_FLAG|mysql.SET_FLAG) != 0 {
			return 0
		}
		digits /= wire.CharBytes(c.Collation)
	default:
		return 0
	}
	return rule.Nines(digits)
}
