package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"idproxy/monitor"
)

// Model is what is to be seen. The zero value is not ready: see NewModel.
type Model struct {
	Tab    Tab
	Paused bool

	views       [tabs]view
	now, before *Snapshot // before: nil, where nothing can be compared with it
	lost        error     // why there is no answer; nil: there is
}

// view is how the operator looks at a tab.
type view struct {
	sort   int // of the columns; -1: the order of the configuration
	down   bool
	filter string
}

// NewModel returns a model of the first answer.
func NewModel(first Snapshot) *Model {
	m := &Model{now: &first}
	for i := range m.views {
		m.views[i].sort = -1
	}
	m.views[Sessions] = view{sort: columnNamed(sessionColumns, "STMT/S"), down: true}
	m.views[Refusals] = view{sort: columnNamed(refusalColumns, "LAST"), down: true}
	m.views[Events] = view{sort: columnNamed(eventColumns, "TIME"), down: true}
	return m
}

func columnNamed[T any](columns []column[T], name string) int {
	return slices.IndexFunc(columns, func(c column[T]) bool { return c.name == name })
}

// Take puts an answer in place of the one before. A paused model stays as it is.
func (m *Model) Take(s Snapshot) {
	back := m.lost != nil
	m.lost = nil
	if m.Paused {
		return
	}
	m.before, m.now = m.now, &s
	if back || !s.State.Started.Equal(m.before.State.Started) {
		m.before = nil // what happened in between is no figure of a second, and a new process counts from 0
	}
}

// Lose notes that there was no answer.
func (m *Model) Lose(err error) { m.lost = err }

// Filter returns the text that rows must have.
func (m *Model) Filter() string { return m.views[m.Tab].filter }

// SetFilter leaves rows that have a text, in whatever case.
func (m *Model) SetFilter(text string) { m.views[m.Tab].filter = text }

// SortBy moves to another column, by which the table is sorted from then on: 1 is to the right, -1
// to the left.
func (m *Model) SortBy(step int) {
	v := &m.views[m.Tab]
	heads, _ := m.rows()
	shown := slices.IndexFunc(heads, func(h heading) bool { return h.aside })
	if shown < 0 {
		shown = len(heads)
	}
	v.sort = min(max(v.sort+step, 0), shown-1)
	v.down = heads[v.sort].right
}

// Reverse turns the order around.
func (m *Model) Reverse() { m.views[m.Tab].down = !m.views[m.Tab].down }

// maxRows is how many rows a table has at most. Nobody reads more, and drawing tens of thousands
// every second would keep a processor busy.
const maxRows = 1000

func (m *Model) rows() ([]heading, []Row) { return table(m.Tab, m.now, m.before) }

// Table returns the names of the columns, those of numbers marked, and the rows that the filter
// leaves, in order. Beyond the first thousand the rows are only counted.
func (m *Model) Table() (columns []Column, rows []Row, more int) {
	heads, rows := m.rows()
	v := m.views[m.Tab]
	for i, h := range heads {
		if h.aside {
			break
		}
		name := h.name
		if i == v.sort {
			name += map[bool]string{true: "▼", false: "▲"}[v.down]
		}
		columns = append(columns, Column{name, h.right})
	}
	if v.filter != "" {
		wanted := strings.ToLower(v.filter)
		rows = slices.DeleteFunc(rows, func(r Row) bool {
			return !slices.ContainsFunc(r.Cells, func(c Cell) bool { return strings.Contains(strings.ToLower(c.Text), wanted) })
		})
	}
	if v.sort >= 0 {
		slices.SortStableFunc(rows, func(a, b Row) int {
			if order := compare(a.Cells[v.sort], b.Cells[v.sort]); v.down {
				return -order
			} else {
				return order
			}
		})
	} else if v.down {
		slices.Reverse(rows)
	}
	if len(rows) > maxRows {
		more = len(rows) - maxRows
		rows = rows[:maxRows]
	}
	return columns, rows, more
}

// Column is the name of a column.
type Column struct {
	Name   string
	Number bool
}

// compare orders numbers that are not known below all others, and texts as texts.
func compare(a, b Cell) int {
	if math.IsNaN(a.sort) || math.IsNaN(b.sort) || a.sort != b.sort {
		return cmp.Compare(a.sort, b.sort)
	}
	if a.sort != 0 {
		return 0
	}
	return cmp.Compare(a.Text, b.Text)
}

// Details returns all that is known of a row; nil when it is gone.
func (m *Model) Details(key string) (lines []string) {
	heads, rows := m.rows()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Key == key })
	if i < 0 {
		return nil
	}
	for j, h := range heads {
		lines = append(lines, fmt.Sprintf("%-15s %s", h.name, rows[i].Cells[j].Text))
	}
	return lines
}

// Session returns an open session by the key of its row.
func (m *Model) Session(key string) (monitor.Session, bool) {
	i := slices.IndexFunc(m.now.Sessions, func(s monitor.Session) bool { return fmt.Sprint(s.ID) == key })
	if i < 0 {
		return monitor.Session{}, false
	}
	return m.now.Sessions[i], true
}

// Line is a line above the table.
type Line struct {
	Text string
	Tone Tone
}

// Head returns the lines above the table: what runs, how much it does, and what is wrong.
func (m *Model) Head() [3]Line {
	s := &m.now.State
	var refused, filled, all, sessions uint64
	for i := range s.Listeners {
		l := &s.Listeners[i]
		all, filled, refused, sessions = all+ofKind("")(l), filled+ofKind(monitor.KindFilled)(l), refused+ofKind("refused")(l), sessions+l.Sessions
	}
	var past monitor.State
	seconds := 0.0
	if m.before != nil {
		past, seconds = m.before.State, m.now.At.Sub(m.before.At).Seconds()
	}
	grown := func(now uint64, of func(*monitor.Listener) uint64) string {
		var before uint64
		for i := range past.Listeners {
			before += of(&past.Listeners[i])
		}
		return rate(perSecond(now, before, m.before != nil, seconds)).Text
	}
	var ids, idsBefore uint64
	for i := range s.Sources {
		ids += s.Sources[i].Issued
	}
	for i := range past.Sources {
		idsBefore += past.Sources[i].Issued
	}
	return [3]Line{
		{Text: printable(fmt.Sprintf("idproxy %s, up %s, %s", s.Version, shortSpan(s.Time.Sub(s.Started)), s.Config.File))},
		{Text: fmt.Sprintf("stmt/s %s  filled/s %s  refused/s %s  ids/s %s  sessions %d  files %d/%d",
			grown(all, ofKind("")), grown(filled, ofKind(monitor.KindFilled)), grown(refused, ofKind("refused")),
			rate(perSecond(ids, idsBefore, m.before != nil, seconds)).Text, sessions, s.Files.Open, s.Files.Limit)},
		m.condition(),
	}
}

// condition says what an operator should know first.
func (m *Model) condition() Line {
	s := &m.now.State
	at := m.now.At.Local().Format(time.TimeOnly)
	ready, err := s.Ready("")
	var problems, findings []string
	for _, l := range ready.Listeners {
		for _, p := range l.Problems {
			problems = append(problems, l.Name+": "+p)
		}
		for _, f := range l.Findings {
			findings = append(findings, l.Name+": "+f)
		}
	}
	switch {
	case m.lost != nil:
		return Line{printable(fmt.Sprintf("NO ANSWER, figures are of %s: %v", at, m.lost)), Alarm}
	case m.Paused:
		return Line{"paused at " + at + ", p goes on", Loud}
	case err != nil:
		return Line{printable(err.Error()), Alarm}
	case len(problems) > 0:
		return Line{printable("not ready: " + strings.Join(problems, "; ")), Alarm}
	case s.Config.Problem != "":
		return Line{printable("configuration not reloaded: " + s.Config.Problem), Loud}
	case len(findings) > 0:
		return Line{printable(strings.Join(findings, "; ")), Loud}
	}
	for i := range s.Stores {
		if st := &s.Stores[i]; !st.Up && st.Problem != "" {
			return Line{printable("store " + st.Name + ": " + st.Problem), Loud}
		}
	}
	return Line{"ready at " + at, Plain}
}
