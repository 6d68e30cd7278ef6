package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/monitor"
)

func ptr[T any](v T) *T { return &v }

var started = time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)

// at is a snapshot some seconds after the start; all counts are n times what they are in a second.
func at(seconds int, n uint64, of Tab) Snapshot {
	now := started.Add(time.Duration(seconds) * time.Second)
	return Snapshot{
		At: now, Of: of,
		State: monitor.State{
			Time: now, Version: "v1", Started: started, Config: monitor.Config{File: "/etc/idproxy.yaml"},
			Listeners: []monitor.Listener{{
				Name: "shard0", Listen: "127.0.0.1:3307", Upstream: "db:3306", Sources: []string{"ids", "flakes"}, Sessions: 3,
				FromClient: 2000 * n, FromServer: 50_000 * n, Held: 10 * n, HeldTime: monitor.Milliseconds(n) * monitor.Milliseconds(15*time.Millisecond),
				Statements: []monitor.Statement{{Kind: "forwarded", Form: "query", Count: 90 * n}, {Kind: monitor.KindFilled, Form: "query", Count: 8 * n}, {Kind: "refused", Form: "query", Count: 2 * n}},
				Questions:  []monitor.Question{{Kind: "columns", Count: n}}, Errors: []monitor.Error{{Code: "1235", Side: "idproxy", Count: 2 * n}},
			}, {Name: "shard1", Upstream: "db:3307"}},
			Sources: []monitor.Source{
				{Name: "ids", Kind: "segment", Store: "main", Issued: 24_000 * n, Segment: &monitor.Segment{Left: 900, Lasts: ptr(monitor.Milliseconds(90 * time.Second)), RangeSize: 1000, Fetches: 3 * n}},
				{Name: "flakes", Kind: "snowflake", Snowflake: &monitor.Snowflake{Worker: ptr(uint64(3)), Fence: monitor.Milliseconds(7500 * time.Millisecond)}},
				{Name: "uuids", Kind: "uuidv7"},
			},
			Rules: []monitor.Rule{{
				Table: "shop.orders", Column: "id", Source: "ids", Mode: "enforce", IDs: 24_000 * n, Refused: []monitor.Reason{{Reason: "form", Count: 2 * n}},
			}},
			Files: monitor.Files{Open: 40, Limit: 1024},
		},
	}
}

// texts are the rows of a table as text.
func texts(m *Model) (lines []string) {
	columns, rows, _ := m.Table()
	for _, r := range rows {
		var cells []string
		for i := range columns {
			cells = append(cells, r.Cells[i].Text)
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return lines
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	assert.True(t, slices.Equal(got, want), "%s: got\n%q, want\n%q", what, got, want)
}

// TestFiguresPerSecond: they are what came between two answers, and nothing is claimed where one of
// them is missing.
func TestFiguresPerSecond(t *testing.T) {
	m := NewModel(at(10, 1, Listeners))
	same(t, "after one answer", texts(m), "shard0 3 - - - - - - - - ready", "shard1 0 - - - - - - - - ready")
	m.Take(at(12, 5, Listeners)) // four times in two seconds
	same(t, "after two", texts(m), "shard0 3 200 16 4.0 4.0 2.0 1.5ms 4000 100k ready", "shard1 0 0 0 0 0 0 - 0 0 ready")
	assert.Equal(t, "in all", m.Head()[1].Text, "stmt/s 200  filled/s 16  refused/s 4.0  ids/s 48.0k  sessions 3  files 40/1024")
	m.Tab = Sources
	same(t, "sources", texts(m), "ids segment 48.0k 120k 900 1m30s 1000 15 ready", "flakes snowflake 0 0 worker 3 7s - - ready", "uuids uuidv7 0 0 - - - - ready")
	m.Tab = Rules
	same(t, "rules", texts(m), "shop.orders.id ids enforce 48.0k 120k 4.0 10 0 0 10 form")

	fresh := at(14, 1, Rules) // another process, which counts from 0
	fresh.State.Started = started.Add(13 * time.Second)
	m.Take(fresh)
	same(t, "after a restart", texts(m), "shop.orders.id ids enforce - 24.0k - 2 - 0 2 form")
}

// TestLostAndBack: without an answer the figures are said to be old. With one again, nothing is
// computed over the gap.
func TestLostAndBack(t *testing.T) {
	m := NewModel(at(10, 1, Listeners))
	m.Take(at(11, 2, Listeners))
	l := m.Head()[2]
	assert.True(t, l.Tone == Plain && strings.HasPrefix(l.Text, "ready at "), "well: %+v", l)
	m.Lose(errors.New("connection refused"))
	when := started.Add(11 * time.Second).Local().Format(time.TimeOnly)
	l = m.Head()[2]
	assert.True(t, l.Tone == Alarm && l.Text == "NO ANSWER, figures are of "+when+": connection refused", "lost: %+v", l)
	m.Take(at(71, 62, Listeners))
	assert.Equal(t, "back", texts(m)[0], "shard0 3 - - - - - - - - ready")
	m.Take(at(72, 63, Listeners))
	got := texts(m)[0]
	assert.True(t, got == "shard0 3 100 8.0 2.0 2.0 1.0 1.5ms 2000 50.0k ready" && m.Head()[2].Tone == Plain, "a second later: %s, %+v", got, m.Head()[2])
}

// TestCondition: what is wrong is said above the table, the worst first.
func TestCondition(t *testing.T) {
	s := at(10, 1, Listeners)
	s.State.Stores = []monitor.Store{{Name: "main", Problem: "refused"}}
	m := NewModel(s)
	assert.Equal(t, "store", m.Head()[2], Line{"store main: refused", Loud})
	s.State.Listeners[0].Unbegun = []monitor.Unbegun{{Column: "shop.t.id", Source: "ids", Problem: "denied"}}
	m.Take(s)
	assert.Equal(t, "finding", m.Head()[2], Line{"shard0: column shop.t.id gets no first id from source ids: denied", Loud})
	s.State.Config.Problem = "line 3"
	m.Take(s)
	assert.Equal(t, "configuration", m.Head()[2], Line{"configuration not reloaded: line 3", Loud})
	s.State.Sources[0].Problem = "no ids"
	m.Take(s)
	assert.Equal(t, "source", m.Head()[2], Line{"not ready: shard0: source ids: no ids", Alarm})
	_, rows, _ := m.Table()
	assert.True(t, rows[0].Cells[10] == (Cell{Text: "source ids: no ids", Tone: Alarm}) && rows[1].Cells[10].Tone == Plain, "%+v", rows)
	m.Tab = Sources
	_, rows, _ = m.Table()
	assert.True(t, rows[0].Cells[8] == (Cell{Text: "no ids", Tone: Alarm}), "%+v", rows[0])
}

func withSessions(seconds int, all ...monitor.Session) Snapshot {
	s := at(seconds, 1, Sessions)
	s.Sessions = all
	for i := range s.Sessions {
		s.Sessions[i].Started = started
	}
	return s
}

// TestSessions are sorted by what they do, or by any other column, and filtered.
func TestSessions(t *testing.T) {
	m := NewModel(at(9, 1, Listeners))
	m.Tab = Sessions
	same(t, "not asked yet", texts(m))
	m.Take(withSessions(10, monitor.Session{ID: 1, User: "app", Client: "10.0.0.1:5", State: "idle", Statements: 10}, monitor.Session{ID: 2, User: "cron", Client: "10.0.0.2:5", State: "busy", Statements: 10}))
	m.Take(withSessions(12,
		monitor.Session{ID: 1, User: "app", Client: "10.0.0.1:5", State: "idle", Statements: 12, Thread: 70, Listener: "a"},
		monitor.Session{ID: 3, User: "\x1b]0;evil\a", Client: "10.0.0.3:5", State: "login"},
		monitor.Session{ID: 2, User: "cron", Client: "10.0.0.2:5", State: "busy", Statements: 60, FromClient: 4096}))
	same(t, "by statements", texts(m),
		"2 cron 10.0.0.2:5 busy 25 2048 0 12s 0 ", "1 app 10.0.0.1:5 idle 1.0 0 0 12s 70 a", "3  ]0;evil  10.0.0.3:5 login - - - 12s 0 ")
	m.Reverse()
	same(t, "the other way", texts(m)[2:], "2 cron 10.0.0.2:5 busy 25 2048 0 12s 0 ")
	for range 9 {
		m.SortBy(-1)
	}
	same(t, "by number, the greatest first", texts(m)[:1], "3  ]0;evil  10.0.0.3:5 login - - - 12s 0 ")
	m.SortBy(1)
	columns, _, _ := m.Table()
	assert.True(t, columns[1] == (Column{"USER▲", false}) && columns[0] == (Column{"ID", true}), "%+v", columns)
	same(t, "by user", texts(m)[1:2], "1 app 10.0.0.1:5 idle 1.0 0 0 12s 70 a")
	for range 20 {
		m.SortBy(1)
	}
	columns, _, _ = m.Table()
	assert.True(t, columns[len(columns)-1].Name == "LISTENER▲", "%+v", columns)
	m.SetFilter("CRON")
	same(t, "filtered", texts(m), "2 cron 10.0.0.2:5 busy 25 2048 0 12s 0 ")
	m.SetFilter("")
	got := m.Details("2")
	assert.True(t, slices.Contains(got, "STATEMENTS      60") && m.Details("9") == nil, "%q", got)
	s, ok := m.Session("2")
	assert.True(t, ok && s.User == "cron", "%+v %v", s, ok)
	m.Take(at(13, 1, Listeners))
	_, ok = m.Session("2")
	assert.True(t, !ok, "a session that is not listed is there")
}

// TestPause: figures stay, and it is said so.
func TestPause(t *testing.T) {
	m := NewModel(at(10, 1, Listeners))
	m.Take(at(11, 2, Listeners))
	before := texts(m)
	m.Paused = true
	m.Take(at(12, 99, Listeners))
	same(t, "paused", texts(m), before...)
	l := m.Head()[2]
	assert.True(t, l.Tone == Loud && strings.HasPrefix(l.Text, "paused at "), "%+v", l)
	m.Paused = false
	m.Take(at(21, 12, Listeners)) // over ten seconds
	same(t, "goes on", texts(m)[:1], "shard0 3 100 8.0 2.0 2.0 1.0 1.5ms 2000 50.0k ready")
}

// TestListsOfTheLog shows refusals and events, the newest first.
func TestListsOfTheLog(t *testing.T) {
	s := at(100, 1, Refusals)
	refusal := func(statement string, count uint64, last int) monitor.Refusal {
		return monitor.Refusal{
			Shape: monitor.Shape{Reason: "form", Rule: "shop.orders.id", Statement: statement}, User: "app", Code: 1235, Text: "not filled",
			Count: count, Last: started.Add(time.Duration(last) * time.Second), First: started,
		}
	}
	s.Refusals = []monitor.Refusal{refusal("old", 5, 20), refusal("new", 2, 90)}
	m := NewModel(s)
	m.Tab = Refusals
	s = at(102, 1, Refusals)
	s.Refusals = []monitor.Refusal{refusal("old", 5, 20), refusal("new", 8, 101)}
	m.Take(s)
	clock := func(n int) string { return started.Add(time.Duration(n) * time.Second).Local().Format(time.TimeOnly) }
	same(t, "refusals", texts(m), "8 3.0 form "+clock(101)+" app shop.orders.id new", "5 0 form "+clock(20)+" app shop.orders.id old")
	_, rows, _ := m.Table()
	assert.Contains(t, "strings.Join(m.Details(rows[0].Key), \"\\n\")", strings.Join(m.Details(rows[0].Key), "\n"), "1235: not filled")
	s = at(103, 1, Events)
	s.Events = []monitor.Event{
		{ID: 1, Time: started.Add(50 * time.Second), Level: "INFO", Text: "listening"},
		{ID: 2, Time: started.Add(40 * time.Second), Level: "ERROR", Text: "server lost", Facts: map[string]string{"listener": "a", "error": "gone"}},
	}
	m.Take(s)
	m.Tab = Events
	same(t, "events", texts(m), clock(40)+" ERROR server lost error=gone listener=a", clock(50)+" INFO listening ")
	_, rows, _ = m.Table()
	assert.True(t, rows[0].Cells[1].Tone == Alarm && rows[1].Cells[1].Tone == Plain, "%+v", rows)
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 9999: "9999", 10_000: "10.0k", 99_949: "99.9k", 99_951: "100k", 9_999_400: "9999k", 9_999_500: "10.0M", 1.8e19: "lots"} {
		assert.Equal(t, fmt.Sprint(n), short(n), want)
	}
	for d, want := range map[time.Duration]string{
		0: "0µs", 1500 * time.Microsecond: "1.5ms", 59 * time.Second: "59s", 200 * time.Second: "3m20s", 47 * time.Hour: "47h00m", 49 * time.Hour: "2d",
	} {
		assert.Equal(t, fmt.Sprint(d), shortSpan(d), want)
	}
}
