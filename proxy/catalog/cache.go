package catalog

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"idproxy/lookup"
	"idproxy/pattern"
	"idproxy/rule"
)

// maxAge is how long the columns of a table are believed. DDL through the
// proxy and errors that speak of columns end it at once.
const maxAge = time.Minute

// Tables caches what a server says of its tables, for all sessions of a
// listener.
type Tables struct {
	fold  atomic.Int32 // a Fold
	Names Spellings

	version atomic.Uint64      // grows with every change below; written under mu
	seen    lookup.Table[seen] // what was found of late, by key

	mu       sync.RWMutex
	changes  uint64 // grows with every forgetting
	tables   map[string]*Table
	words    map[string]struct{} // names of those tables, their schemas and columns, folded
	admitted map[Admission]bool  // columns whose greatest id the source has been compared with
	failed   map[Admission]Failure
	left     map[Departure]bool // tables that wildcards leave alone, once that was logged
}

// seen is what was found when Tables had the version. It is believed as long as they have.
type seen struct {
	version uint64
	table   *Table
}

// Admission names a column and a source that it was compared with.
type Admission struct {
	Table  string // schema.table
	Column string
	Source string
	Era    uint64 // of the source: one that a reload puts in its place was compared with nothing
}

// Failure is why a column could not be compared with its source the last time: its table gets no
// first id.
type Failure struct {
	Admission
	Err error
	At  time.Time
}

// Departure is why a wildcard rule leaves a table alone.
type Departure struct {
	Rule  string
	Table string // schema.table
	Why   string
}

// maxTables bounds the cache; when it is full it is emptied.
const maxTables = 10_000

// Fold is what is known of lower_case_table_names.
type Fold int32

// Values of Fold.
const (
	FoldUnknown Fold = iota
	FoldNo           // 0: names compare as they are
	FoldYes          // 1 or 2: names compare without regard to case
)

// Fold returns how the server compares the names of tables.
func (t *Tables) Fold() Fold { return Fold(t.fold.Load()) }

// SetFold notes whether it compares them without regard to case.
func (t *Tables) SetFold(folds bool) {
	f := FoldNo
	if folds {
		f = FoldYes
	}
	t.fold.Store(int32(f))
}

// New returns a cache that knows nothing.
func New() *Tables {
	return &Tables{tables: map[string]*Table{}, words: map[string]struct{}{}, admitted: map[Admission]bool{}, failed: map[Admission]Failure{}, left: map[Departure]bool{}}
}

// AppendKey appends the key of a table to dst. Without regard to case when the
// server says so.
func (t *Tables) AppendKey(dst, schema, table []byte) []byte {
	at := len(dst)
	dst = append(append(append(dst, schema...), 0), table...)
	if t.Fold() == FoldYes {
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

// Get returns what is known of the table of a key; nil: nothing that is still believed.
func (t *Tables) Get(key []byte) *Table {
	f := t.find(key)
	if f == nil || f.doubted.Load() || time.Since(f.At) > maxAge {
		return nil
	}
	return f
}

// find returns the table of a key, nil where there is none.
func (t *Tables) find(key []byte) *Table {
	if s, ok := t.seen.Get(key); ok && s.version == t.version.Load() {
		return s.table
	}
	t.mu.RLock()
	now := seen{t.version.Load(), t.tables[string(key)]}
	t.mu.RUnlock()
	if now.table != nil {
		t.seen.Put(string(key), now)
	}
	return now.table
}

// Current reports whether facts kept outside of the cache are still believed.
func (t *Tables) Current(f *Table) bool {
	return f != nil && f.Changes == t.Count() && !f.doubted.Load() && time.Since(f.At) <= maxAge
}

// Count returns how often facts were forgotten.
func (t *Tables) Count() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.changes
}

// Put keeps facts unless tables have changed since they were asked for.
func (t *Tables) Put(key string, f *Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.Changes != t.changes {
		return
	}
	if len(t.tables) >= maxTables {
		clear(t.tables)
		clear(t.words)
	}
	t.tables[key] = f
	t.noteWords(key, f)
	t.version.Add(1)
}

// noteWords remembers the names that the server said. The key has those of the table.
func (t *Tables) noteWords(key string, f *Table) {
	for _, name := range strings.Split(key, "\x00") {
		t.words[pattern.Fold(name)] = struct{}{}
	}
	if f.Table == nil {
		return
	}
	for _, columns := range [][]rule.Column{f.Table.Columns, f.Table.Invisible} {
		for i := range columns {
			t.words[pattern.Fold(columns[i].Name)] = struct{}{}
		}
	}
}

// Knows reports whether the server has said this name, of a schema, a table or a column. Without
// regard to case.
func (t *Tables) Knows(name []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.words[pattern.Fold(string(name))]
	return ok
}

// Forget drops all facts. Admitted columns stay admitted: a source that is
// ahead of a column stays ahead.
func (t *Tables) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	clear(t.tables)
	clear(t.words)
	t.version.Add(1)
}

// admitted is a column that was admitted when Tables had the version: the one that a rule names.
type admitted struct {
	version uint64
	by      *rule.Rule
	next    *admitted // of the same version
}

// IsAdmitted reports whether the greatest id of the column that a rule names was compared with the
// rule's source.
func (t *Tables) IsAdmitted(f *Table, by *rule.Rule) bool {
	known := f.admitted.Load()
	if known != nil && known.version != t.version.Load() {
		known = nil
	}
	for a := known; a != nil; a = a.next {
		if a.by == by {
			return true
		}
	}
	t.mu.RLock()
	is, version := t.admitted[AdmissionOf(f, by)], t.version.Load()
	t.mu.RUnlock()
	if is && (known == nil || known.version == version) {
		f.admitted.Store(&admitted{version, by, known})
	}
	return is
}

// AdmissionOf names the column of a table that a rule names, and what it is compared with.
func AdmissionOf(f *Table, by *rule.Rule) Admission {
	return Admission{Table: f.Name, Column: by.Column, Source: by.Source, Era: by.Era}
}

// Admit notes that it was.
func (t *Tables) Admit(column Admission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted[column] = true
	delete(t.failed, column)
	t.version.Add(1)
}

// Fail notes that it could not be.
func (t *Tables) Fail(column Admission, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failed) >= maxFailures {
		clear(t.failed)
	}
	t.failed[column] = Failure{column, err, time.Now()}
}

// Pardon forgets why columns could not be: what they were asked with works again.
func (t *Tables) Pardon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.failed)
}

// maxFailures bounds what is remembered of those, and failureAge for how long: nobody misses the ids
// of a table into which nobody inserts.
const (
	maxFailures = 1000
	failureAge  = time.Hour
)

// Begun returns how many columns were compared with their sources, and why others could not be.
func (t *Tables) Begun() (columns int, failed []Failure) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, f := range t.failed {
		if time.Since(f.At) < failureAge {
			failed = append(failed, f)
		}
	}
	slices.SortFunc(failed, func(a, b Failure) int { return strings.Compare(a.Table+"."+a.Column, b.Table+"."+b.Column) })
	return len(t.admitted), failed
}

// Withdraw forgets the admission of columns that no rule names any more: what is stored in
// them meanwhile the source does not know.
func (t *Tables) Withdraw(rules *rule.List) {
	folds := t.Fold() != FoldNo
	t.mu.Lock()
	defer t.mu.Unlock()
	named := func(a Admission) bool {
		schema, table, _ := strings.Cut(a.Table, ".")
		return slices.ContainsFunc(rules.Match([]byte(schema), []byte(table), folds), func(r *rule.Rule) bool {
			return r.Column == a.Column && r.Source == a.Source && r.Era == a.Era && !r.Observe
		})
	}
	for a := range t.admitted {
		if !named(a) {
			delete(t.admitted, a)
			t.version.Add(1)
		}
	}
	for a := range t.failed {
		if !named(a) {
			delete(t.failed, a)
		}
	}
}

// Leaves notes that a table is left alone, and reports whether that is news.
func (t *Tables) Leaves(d Departure) bool {
	t.mu.RLock()
	known := t.left[d]
	t.mu.RUnlock()
	if known {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) >= maxTables {
		clear(t.left)
	}
	known, t.left[d] = t.left[d], true
	return !known
}
