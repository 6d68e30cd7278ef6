package decide

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// rulesOf returns the rules of a table, none when it has none, and the name in
// UTF-8 that they match.
func (cx *reading) rulesOf(t rewriter.Name) (rewriter.Name, []*rule.Rule, error) {
	if cx.rules.Empty() {
		return t, nil, nil
	}
	name, ok, err := cx.named(t)
	if err != nil || !ok {
		return t, nil, err
	}
	if len(t.Schema) == 0 && !cx.known {
		switch {
		case !cx.rules.MayMatch(name.Table, cx.rules.Fold):
			return name, nil, nil
		case cx.barrier:
			return name, nil, errCut
		}
		return name, nil, NeedProbe{}
	}
	if len(name.Schema) == 0 { // none is selected: the server refuses it
		if cx.rules.MayMatch(name.Table, cx.rules.Fold) {
			cx.st.Found.unedited(CauseNoSchema)
		}
		return name, nil, nil
	}
	rules := cx.rules.Match(name.Schema, name.Table, cx.rules.Fold)
	switch {
	case rules == nil:
		return name, nil, nil
	case cx.barrier: // what is known of the table may not be true any more
		return name, nil, errCut
	case cx.tables.Fold() == catalog.FoldUnknown:
		return name, nil, NeedProbe{}
	}
	cx.st.Key = cx.tables.AppendKey(cx.st.Key[:0], name.Schema, name.Table)
	if rest, err := cx.rest(); rest || err != nil {
		return name, nil, err
	}
	return name, rules, nil
}

// rest reports whether the rules of the table rest whose key was made last, for it is a temporary
// one of the session's own.
func (cx *reading) rest() (bool, error) {
	own, err := cx.owns(cx.st.Key)
	switch {
	case err != nil || !own:
		return false, err
	case cx.now.Busy: // a command that is pending may drop it
		return false, NeedQuiet{}
	}
	cx.st.Found.unedited(CauseTemporary)
	if cx.prepares {
		cx.st.Prepared = &protocol.Stmt{Kind: shadow(cx.st.Key)}
	}
	return true, nil
}

// owns reports whether the table of a key is a temporary one of the session's own, whose
// rules rest. Where the session may have some that were not seen, the server is asked.
func (cx *reading) owns(key []byte) (bool, error) {
	own, known := cx.now.Temporary[string(key)]
	if known || !cx.now.Unseen {
		return own, nil
	}
	return false, NeedOwner{Key: string(key)}
}

// concern is facts, but that an error is no more than seen by rules that only observe.
func (cx *reading) concern(p *Part, rules []*rule.Rule) error {
	err := cx.facts(p, rules)
	e, ok := errors.AsType[*mysql.MyError](err)
	if !ok || !rules[0].Observe {
		return err
	}
	why := fmt.Sprintf("error %d for its columns", e.Code) // the server's text may quote the statement
	if refusal, ok := errors.AsType[*clienterr.Refusal](err); ok {
		why = refusal.Said()
	}
	cx.observe(rules[0], p, Observation{Sighting: Sighting{What: "would refuse: " + why}, Refusal: err})
	p.Rules = p.Rules[:0]
	return nil
}

// facts finds the columns of the rules in what is known of the table. A part
// without rules goes as it is.
func (cx *reading) facts(p *Part, rules []*rule.Rule) error {
	if cx.now.Remaking { // what is known now is of the table before that
		return NeedQuiet{}
	}
	f := cx.tableOf(cx.st.Key)
	if f == nil {
		return cx.needTable(p)
	}
	if f.Err != nil {
		if NoTable(f.Err.Code) {
			cx.leaveStale()
			cx.st.Found.unedited(CauseNoTable)
			return nil // the server will say so itself
		}
		return clienterr.Facts(rules[0], f.Name, f.Err)
	}
	p.Facts, cx.st.Facts = f, f
	if f.Table == nil { // no server was asked
		p.assume(rules)
		return nil
	}
	if err := cx.findColumns(p, rules); err != nil {
		return err
	}
	switch {
	case len(p.Rules) > 0:
	case f.View: // what it shows may well be a table that has them
		p.view = true
		p.Rules, p.columns = append(p.Rules, rules...), append(p.columns, make([]rule.Column, len(rules))...)
	default:
		cx.st.Found.LeftAlone++
		cx.st.Found.Unedited = append(cx.st.Found.Unedited, Unedited{CauseMisfit, rules[0], rules[0].Unfit(f.Table)})
		if p.absent != nil {
			cx.st.Prepared = &protocol.Stmt{Kind: &bare{name: protocol.CloneName(p.Name), key: string(cx.st.Key), facts: f, rules: p.absent}}
		}
	}
	return nil
}

// needTable asks for the columns of the table of a part, whose key was made last.
func (cx *reading) needTable(p *Part) error {
	return NeedTable{Table: p.Name, Key: string(cx.st.Key)}
}

// leaveStale notes of a statement to prepare that the server refuses it as the table is now: the
// table may be another one at an execution.
func (cx *reading) leaveStale() {
	if cx.prepares {
		cx.st.Prepared = &protocol.Stmt{Kind: stale{}}
	}
}

// findColumns gives the part the rules whose columns its table has.
func (cx *reading) findColumns(p *Part, rules []*rule.Rule) error {
	for _, r := range rules {
		if !r.Exact() && !r.Unfit(p.Facts.Table).None() {
			if cx.prepares && !r.Observe {
				p.absent = append(p.absent, r)
			}
			continue
		}
		column, _, ok := p.Facts.Table.Column(r.Column)
		switch {
		case !ok:
			return clienterr.NoColumn(r, p.Facts.Name)
		case column.Form(r.IDs) == rule.FormNone:
			return clienterr.ColumnType(r, p.Facts.Name, column)
		}
		p.Rules, p.columns = append(p.Rules, r), append(p.columns, column)
	}
	return nil
}

// assume takes columns that fit the rules for granted, where no server was asked.
func (p *Part) assume(rules []*rule.Rule) {
	for _, r := range rules {
		column := rule.Column{Name: r.Column, Max: math.MaxUint64, Default: true}
		if r.IDs.Wide() {
			column.Text, column.Length = true, 36
		}
		p.Rules, p.columns = append(p.Rules, r), append(p.columns, column)
	}
}

// UnknownColumns is the error for a statement that the columns of its table decide, where no server
// was asked for them.
type UnknownColumns struct{ Rule *rule.Rule }

func (e *UnknownColumns) Error() string {
	return "rule " + e.Rule.String() + ": the columns of the table are needed"
}

// NoTable reports whether an error code says that there is no table of a name, or
// can be none.
func NoTable(code uint16) bool {
	switch code {
	case mysql.ER_NO_SUCH_TABLE, mysql.ER_BAD_DB_ERROR, mysql.ER_WRONG_TABLE_NAME, mysql.ER_WRONG_DB_NAME, mysql.ER_TOO_LONG_IDENT,
		mysql.ER_INVALID_CHARACTER_STRING:
		return true
	}
	return false
}

// gained reports whether one of the rules, wildcards that left a table alone, concerns
// it now.
func gained(t *rule.Table, rules []*rule.Rule) bool {
	return slices.ContainsFunc(rules, func(rule *rule.Rule) bool { return rule.Unfit(t).None() })
}

// tableOf returns what is known of a table, nil when nothing is.
func (cx *reading) tableOf(key []byte) *catalog.Table {
	if f := cx.st.denied[string(key)]; f != nil {
		return f
	}
	return cx.tables.Get(key)
}

// sameColumns reports whether the statement's ids go into a table that was
// described anew as they did at the PREPARE.
func sameColumns(now *catalog.Table, f *filler) bool {
	if now.View != f.facts.View || now.Table == nil || counting(now.Table) != counting(f.facts.Table) || gained(now.Table, f.absent) {
		return false
	}
	for i, rule := range f.rules {
		if column, _, ok := now.Table.Column(rule.Column); !ok || column != f.columns[i] {
			return false
		}
	}
	if !slices.Equal(keyColumns(now.Table, f.rules), f.keys) {
		return false
	}
	sameName := func(a, b rule.Column) bool { return a.Name == b.Name }
	return !f.Plan.ByPosition || slices.EqualFunc(now.Table.Columns, f.facts.Table.Columns, sameName)
}

// counting returns the name of the column with AUTO_INCREMENT.
func counting(t *rule.Table) string {
	if t == nil { // no server was asked
		return ""
	}
	for _, columns := range [...][]rule.Column{t.Columns, t.Invisible} {
		for i := range columns {
			if columns[i].AutoIncrement {
				return columns[i].Name
			}
		}
	}
	return ""
}

// keyColumns returns the columns that the genes of rules come from, by rule.
func keyColumns(t *rule.Table, rules []*rule.Rule) []rule.Column {
	if !keyed(rules) || t == nil {
		return nil
	}
	columns := make([]rule.Column, len(rules))
	for i, rule := range rules {
		if rule.Gene != nil {
			columns[i], _, _ = t.Column(rule.Gene.Column)
		}
	}
	return columns
}
