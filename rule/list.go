package rule

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"idproxy/lookup"
	"idproxy/pattern"
)

// List is an immutable list of rules, safe for concurrent use.
type List struct {
	rules  []Rule
	named  *namedTables
	tables pattern.Index // of rules, by their places in the list
	names  pattern.Index // the same in any schema
	words  map[string]struct{}

	answers lookup.Table[answer] // what was asked before

	packet func() *List
	plain  bool // it is what packet makes
}

type answer struct {
	rules []*Rule
	may   bool
}

const maxKey = 2*64*4 + 2 // two names of 64 characters, the servers' limit

// NewList returns the rules in their order of precedence. It keeps no reference to the slice.
func NewList(rules []Rule) *List {
	r := &List{rules: append([]Rule(nil), rules...), named: newNamedTables(rules)}
	for i := range r.rules {
		r.tables.Add(r.rules[i].pattern(), i)
		r.names.Add(pattern.Table{Schema: "*", Name: r.rules[i].Table}, i)
	}
	r.words = wordsOf(r.rules)
	r.packet = sync.OnceValue(r.withPacket)
	return r
}

// Packet returns the same rules with last_insert_id: packet, for servers that are no MySQL and no
// MariaDB. It is made once.
func (r *List) Packet() *List { return r.packet() }

func (r *List) withPacket() *List {
	rules := slices.Clone(r.rules)
	for i := range rules {
		rules[i].Packet = true
	}
	list := NewList(rules)
	list.plain = true
	return list
}

// Schema returns the schema that a name stands for: Vitess has the primary tablets of keyspace shop as
// shop@primary. On MySQL and MariaDB that is another schema.
func (r *List) Schema(name []byte) []byte {
	if at := bytes.IndexByte(name, '@'); r.plain && at > 0 {
		return name[:at]
	}
	return name
}

// wordsOf returns the names that rules have, folded, but for patterns with wildcards.
func wordsOf(rules []Rule) map[string]struct{} {
	words := map[string]struct{}{}
	for i := range rules {
		r := &rules[i]
		for _, name := range []string{r.Schema, r.Table, r.Column} {
			words[pattern.Fold(name)] = struct{}{} // no name has a * in it
		}
		if r.Gene != nil {
			words[pattern.Fold(r.Gene.Column)] = struct{}{}
		}
	}
	return words
}

// Names reports whether some rule has this name, of a schema, a table or a column. Without regard
// to case.
func (r *List) Names(name []byte) bool {
	_, ok := r.words[pattern.Fold(string(name))]
	return ok
}

// Empty reports whether there is no rule at all.
func (r *List) Empty() bool { return len(r.rules) == 0 }

// Match returns the rules of a table, per column the first that matches, in the order of the file,
// but those of wide ids last, for the first one feeds the last insert id; nil when none does. fold
// (lower_case_table_names is not 0) compares names without regard to case. Names are compared as
// UTF-8. The slice is shared: do not change it. A name asked before costs no allocation.
func (r *List) Match(schema, table []byte, fold bool) []*Rule {
	return r.answer(r.Schema(schema), table, fold, false).rules
}

// MayMatch reports whether a table of this name has a rule in some schema, for sessions whose
// schema is not known.
func (r *List) MayMatch(table []byte, fold bool) bool {
	return r.answer(nil, table, fold, true).may
}

func (r *List) answer(schema, table []byte, fold, anySchema bool) answer {
	if len(r.rules) == 0 {
		return answer{}
	}
	mark := byte(0)
	if fold {
		mark |= 1
	}
	if anySchema {
		mark |= 2
	}
	var stack [160]byte
	key := append(append(append(append(stack[:0], mark), schema...), 0), table...) // names hold no zero byte
	if a, ok := r.answers.Get(key); ok {
		return a
	}
	a := r.find(string(schema), string(table), fold, anySchema)
	if len(key) <= maxKey {
		r.answers.Put(string(key), a)
	}
	return a
}

func (r *List) find(schema, table string, fold, anySchema bool) (a answer) {
	if anySchema {
		for _, i := range r.names.Find(nil, "", table) {
			a.may = a.may || pattern.Match(r.rules[i].Table, table, fold)
		}
		return a
	}
	near := r.tables.Find(nil, schema, table)
	slices.Sort(near) // the order of the file
	for _, i := range near {
		rule := &r.rules[i]
		taken := slices.ContainsFunc(a.rules, func(other *Rule) bool { return strings.EqualFold(other.Column, rule.Column) })
		if !taken && rule.pattern().Match(schema, table, fold) {
			a.rules = append(a.rules, rule)
		}
	}
	slices.SortStableFunc(a.rules, func(x, y *Rule) int {
		if x.IDs.Wide() == y.IDs.Wide() {
			return 0
		}
		return int(x.IDs) - int(y.IDs)
	})
	return a
}
