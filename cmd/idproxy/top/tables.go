package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"idproxy/monitor"
)

// Row is a line of a table.
type Row struct {
	Key   string // tells the row from others, now and later
	Cells []Cell
}

// heading is what stands above a column.
type heading struct {
	name  string
	right bool // numbers
	// aside is for columns that only the details of a row show.
	aside bool
}

// column says how a column of rows of T is made.
type column[T any] struct {
	heading
	cell func(*pair[T]) Cell
}

// pair is a thing of the newest snapshot, and the same in the one before.
type pair[T any] struct {
	now     *T
	before  *T      // nil: it is not known
	seconds float64 // between the two
	at      time.Time
	state   *monitor.State
}

// rate returns a cell of how fast a count grows.
func (p *pair[T]) rate(count func(*T) uint64) Cell { return rate(p.perSecond(count)) }

// loudRate is rate of what should not happen.
func (p *pair[T]) loudRate(count func(*T) uint64) Cell { return loudRate(p.perSecond(count)) }

func (p *pair[T]) perSecond(count func(*T) uint64) float64 {
	if p.before == nil {
		return perSecond(0, 0, false, p.seconds)
	}
	return perSecond(count(p.now), count(p.before), true, p.seconds)
}

// rowsOf makes the rows of a list, in its order.
func rowsOf[T any](now *Snapshot, before *Snapshot, list func(*Snapshot) []T, key func(*T) string, columns []column[T]) []Row {
	known, seconds := map[string]*T{}, 0.0
	if before != nil {
		earlier := list(before)
		for i := range earlier {
			known[key(&earlier[i])] = &earlier[i]
		}
		seconds = now.At.Sub(before.At).Seconds()
	}
	all := list(now)
	rows := make([]Row, 0, len(all))
	for i := range all {
		row := Row{Key: key(&all[i])}
		p := &pair[T]{&all[i], known[row.Key], seconds, now.At, &now.State}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.cell(p))
		}
		rows = append(rows, row)
	}
	return rows
}

func headings[T any](columns []column[T]) (all []heading) {
	for _, c := range columns {
		all = append(all, c.heading)
	}
	return all
}

func text[T any](name string, of func(*T) string) column[T] {
	return column[T]{heading{name: name}, func(p *pair[T]) Cell { return words(of(p.now)) }}
}

func count[T any](name string, of func(*T) uint64) column[T] {
	return column[T]{heading{name: name, right: true}, func(p *pair[T]) Cell { return number(of(p.now)) }}
}

func growth[T any](name string, of func(*T) uint64) column[T] {
	return column[T]{heading{name: name, right: true}, func(p *pair[T]) Cell { return p.rate(of) }}
}

func faults[T any](name string, of func(*T) uint64) column[T] {
	return column[T]{heading{name: name, right: true}, func(p *pair[T]) Cell { return p.loudRate(of) }}
}

func aside[T any](c column[T]) column[T] {
	c.aside = true
	return c
}

// ofKind returns what counts the statements of a kind; "" stands for all.
func ofKind(kind string) func(*monitor.Listener) uint64 {
	return func(l *monitor.Listener) (n uint64) {
		for _, s := range l.Statements {
			if kind == "" || s.Kind == kind {
				n += s.Count
			}
		}
		return n
	}
}

// sum adds up what of counts of each.
func sum[T any](all []T, of func(*T) uint64) (n uint64) {
	for i := range all {
		n += of(&all[i])
	}
	return n
}

func errorsOf(l *monitor.Listener) uint64 {
	return sum(l.Errors, func(e *monitor.Error) uint64 { return e.Count })
}

func questionsOf(l *monitor.Listener) uint64 {
	return sum(l.Questions, func(q *monitor.Question) uint64 { return q.Count })
}

func refusedBy(r *monitor.Rule) uint64 {
	return sum(r.Refused, func(why *monitor.Reason) uint64 { return why.Count })
}

var listenerColumns = []column[monitor.Listener]{
	text("LISTENER", func(l *monitor.Listener) string { return l.Name }),
	count("SESS", func(l *monitor.Listener) uint64 { return l.Sessions }),
	growth("STMT/S", ofKind("")),
	growth("FILL/S", ofKind(monitor.KindFilled)),
	faults("REF/S", ofKind("refused")),
	faults("ERR/S", errorsOf),
	growth("HIDDEN/S", questionsOf),
	{heading{name: "HELD", right: true}, heldOnAverage},
	growth("IN/S", func(l *monitor.Listener) uint64 { return l.FromClient }),
	growth("OUT/S", func(l *monitor.Listener) uint64 { return l.FromServer }),
	{heading{name: "STATE"}, listenerReady},
	aside(text("ADDRESS", func(l *monitor.Listener) string { return l.Listen })),
	aside(text("SERVER", func(l *monitor.Listener) string { return l.Upstream })),
	aside(text("SOURCES", func(l *monitor.Listener) string { return strings.Join(l.Sources, ", ") })),
	aside(count("LOGGING IN", func(l *monitor.Listener) uint64 { return l.LoggingIn })),
	aside(count("SESSIONS IN ALL", func(l *monitor.Listener) uint64 { return l.Accepted })),
	aside(text("ERRORS", func(l *monitor.Listener) string {
		var all []string
		for _, e := range l.Errors {
			all = append(all, fmt.Sprintf("%d of %s by the %s", e.Count, e.Code, e.Side))
		}
		return strings.Join(all, ", ")
	})),
}

// heldOnAverage is how long a command was held between the two snapshots.
func heldOnAverage(p *pair[monitor.Listener]) Cell {
	if p.before == nil || p.now.Held <= p.before.Held {
		return unknown()
	}
	return span(time.Duration(p.now.HeldTime-p.before.HeldTime) / time.Duration(p.now.Held-p.before.Held))
}

func listenerReady(p *pair[monitor.Listener]) Cell {
	ready, err := p.state.Ready(p.now.Name)
	switch {
	case err != nil:
		return Cell{Text: printable(err.Error()), Tone: Alarm}
	case !ready.Ready:
		return Cell{Text: printable(strings.Join(ready.Listeners[0].Problems, "; ")), Tone: Alarm}
	}
	return words("ready")
}

var sourceColumns = []column[monitor.Source]{
	text("SOURCE", func(s *monitor.Source) string { return s.Name }),
	text("KIND", func(s *monitor.Source) string { return s.Kind }),
	growth("IDS/S", func(s *monitor.Source) uint64 { return s.Issued }),
	count("ISSUED", func(s *monitor.Source) uint64 { return s.Issued }),
	{heading{name: "LEFT", right: true}, idsLeft},
	{heading{name: "LASTS", right: true}, idsLast},
	{heading{name: "RANGE", right: true}, ofSegment(func(g *monitor.Segment) uint64 { return g.RangeSize })},
	{heading{name: "FETCHED", right: true}, ofSegment(func(g *monitor.Segment) uint64 { return g.Fetches })},
	{heading{name: "STATE"}, sourceState},
	aside(text("STORE", func(s *monitor.Source) string { return s.Store })),
}

func idsLeft(p *pair[monitor.Source]) Cell {
	switch {
	case p.now.Segment != nil:
		return number(p.now.Segment.Left)
	case p.now.Snowflake != nil && p.now.Snowflake.Worker != nil:
		return Cell{Text: fmt.Sprintf("worker %d", *p.now.Snowflake.Worker), sort: float64(*p.now.Snowflake.Worker)}
	}
	return unknown()
}

// idsLast is how long a source needs no store: the ids in memory, or the right to a worker number.
func idsLast(p *pair[monitor.Source]) Cell {
	switch {
	case p.now.Segment != nil && p.now.Segment.Lasts != nil:
		return span(time.Duration(*p.now.Segment.Lasts))
	case p.now.Snowflake != nil && p.now.Snowflake.Worker != nil && p.now.Snowflake.Fence > 0:
		return span(time.Duration(p.now.Snowflake.Fence))
	}
	return unknown()
}

func ofSegment(of func(*monitor.Segment) uint64) func(*pair[monitor.Source]) Cell {
	return func(p *pair[monitor.Source]) Cell {
		if p.now.Segment == nil {
			return unknown()
		}
		return number(of(p.now.Segment))
	}
}

func sourceState(p *pair[monitor.Source]) Cell {
	switch {
	case p.now.Problem != "":
		return Cell{Text: printable(p.now.Problem), Tone: Alarm}
	case p.now.Failing != "":
		return Cell{Text: printable("store fails: " + p.now.Failing), Tone: Loud}
	}
	return words("ready")
}

var ruleColumns = []column[monitor.Rule]{
	text("RULE", (*monitor.Rule).Name),
	text("SOURCE", func(r *monitor.Rule) string { return r.Source }),
	text("MODE", func(r *monitor.Rule) string { return r.Mode }),
	growth("IDS/S", func(r *monitor.Rule) uint64 { return r.IDs }),
	count("IDS", func(r *monitor.Rule) uint64 { return r.IDs }),
	faults("REF/S", refusedBy),
	count("REFUSED", refusedBy),
	growth("OBS/S", func(r *monitor.Rule) uint64 { return r.Observed }),
	count("OBSERVED", func(r *monitor.Rule) uint64 { return r.Observed }),
	text("REASONS", func(r *monitor.Rule) string {
		var all []string
		for _, why := range r.Refused {
			all = append(all, fmt.Sprintf("%d %s", why.Count, why.Reason))
		}
		return strings.Join(all, ", ")
	}),
	aside(text("LISTENERS", func(r *monitor.Rule) string { return cmp.Or(strings.Join(r.Listeners, ", "), "all") })),
}

var sessionColumns = []column[monitor.Session]{
	{heading{name: "ID", right: true}, func(p *pair[monitor.Session]) Cell {
		return Cell{Text: fmt.Sprint(p.now.ID), sort: float64(p.now.ID)}
	}},
	text("USER", func(s *monitor.Session) string { return s.User }),
	text("CLIENT", func(s *monitor.Session) string { return s.Client }),
	text("STATE", func(s *monitor.Session) string { return s.State }),
	growth("STMT/S", func(s *monitor.Session) uint64 { return s.Statements }),
	growth("IN/S", func(s *monitor.Session) uint64 { return s.FromClient }),
	growth("OUT/S", func(s *monitor.Session) uint64 { return s.FromServer }),
	{heading{name: "AGE", right: true}, func(p *pair[monitor.Session]) Cell { return span(p.state.Time.Sub(p.now.Started)) }},
	{heading{name: "THREAD", right: true}, func(p *pair[monitor.Session]) Cell {
		return Cell{Text: fmt.Sprint(p.now.Thread), sort: float64(p.now.Thread)}
	}},
	text("LISTENER", func(s *monitor.Session) string { return s.Listener }),
	aside(count("STATEMENTS", func(s *monitor.Session) uint64 { return s.Statements })),
}

var refusalColumns = []column[monitor.Refusal]{
	count("COUNT", func(r *monitor.Refusal) uint64 { return r.Count }),
	faults("PER S", func(r *monitor.Refusal) uint64 { return r.Count }),
	text("REASON", func(r *monitor.Refusal) string { return r.Reason }),
	{heading{name: "LAST"}, func(p *pair[monitor.Refusal]) Cell { return clock(p.now.Last, p.at) }},
	text("USER", func(r *monitor.Refusal) string { return r.User }),
	text("RULE", func(r *monitor.Refusal) string { return cmp.Or(r.Rule, "-") }),
	text("STATEMENT", func(r *monitor.Refusal) string { return r.Statement }),
	aside(text("ERROR", func(r *monitor.Refusal) string {
		if r.Code == 0 {
			return r.Text
		}
		return fmt.Sprintf("%d: %s", r.Code, r.Text)
	})),
	aside(text("LISTENER", func(r *monitor.Refusal) string { return r.Listener })),
	aside(column[monitor.Refusal]{heading{name: "FIRST"}, func(p *pair[monitor.Refusal]) Cell { return clock(p.now.First, p.at) }}),
}

var eventColumns = []column[monitor.Event]{
	{heading{name: "TIME"}, func(p *pair[monitor.Event]) Cell {
		c := clock(p.now.Time, p.at)
		c.sort = float64(p.now.ID) // the newest is the last, whatever the clock says
		return c
	}},
	{heading{name: "LEVEL"}, func(p *pair[monitor.Event]) Cell {
		c := words(p.now.Level)
		c.Tone = map[string]Tone{"WARN": Loud, "ERROR": Alarm}[p.now.Level]
		return c
	}},
	text("EVENT", func(e *monitor.Event) string { return e.Text }),
	text("WITH", func(e *monitor.Event) string {
		var facts []string
		for _, key := range slices.Sorted(maps.Keys(e.Facts)) {
			facts = append(facts, key+"="+e.Facts[key])
		}
		return strings.Join(facts, " ")
	}),
}

// table returns what a tab shows, unsorted.
func table(of Tab, now, before *Snapshot) ([]heading, []Row) {
	switch of {
	case Sources:
		return headings(sourceColumns), rowsOf(now, before, func(s *Snapshot) []monitor.Source { return s.State.Sources },
			func(s *monitor.Source) string { return s.Name }, sourceColumns)
	case Rules:
		return headings(ruleColumns), rowsOf(now, before, func(s *Snapshot) []monitor.Rule { return s.State.Rules },
			func(r *monitor.Rule) string { return r.Name() + "\x00" + strings.Join(r.Listeners, "\x00") }, ruleColumns)
	case Sessions:
		return headings(sessionColumns), rowsOf(now, listed(before, of), func(s *Snapshot) []monitor.Session { return s.Sessions },
			func(s *monitor.Session) string { return fmt.Sprint(s.ID) }, sessionColumns)
	case Refusals:
		return headings(refusalColumns), rowsOf(now, listed(before, of), func(s *Snapshot) []monitor.Refusal { return s.Refusals },
			func(r *monitor.Refusal) string {
				return strings.Join([]string{r.Reason, r.Listener, r.Rule, r.Statement}, "\x00")
			}, refusalColumns)
	case Events:
		return headings(eventColumns), rowsOf(now, nil, func(s *Snapshot) []monitor.Event { return s.Events },
			func(e *monitor.Event) string { return fmt.Sprint(e.ID) }, eventColumns)
	}
	return headings(listenerColumns), rowsOf(now, before, func(s *Snapshot) []monitor.Listener { return s.State.Listeners },
		func(l *monitor.Listener) string { return l.Name }, listenerColumns)
}

// listed returns a snapshot if it has the list of a tab.
func listed(s *Snapshot, of Tab) *Snapshot {
	if s == nil || s.Of != of {
		return nil
	}
	return s
}
