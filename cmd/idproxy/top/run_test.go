package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"idproxy/integration/assert"
	"idproxy/monitor"
)

// fake answers as an admin listener does.
type fake struct {
	mu     sync.Mutex
	asked  int
	err    error
	may    bool
	closed []uint64
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) State(context.Context) (monitor.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return at(f.asked, uint64(f.asked), Listeners).State, f.err
}

func (f *fake) Sessions(context.Context) ([]monitor.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []monitor.Session{
		{ID: 17, User: "app[red]", Client: "10.0.0.1:5", State: "idle", Started: started, Statements: uint64(f.asked)}, {ID: 18, User: "cron", Client: "10.0.0.2:5", State: "busy", Started: started},
	}, nil
}

func (f *fake) Refusals(context.Context) ([]monitor.Refusal, error) {
	return []monitor.Refusal{{Shape: monitor.Shape{Reason: "form", Statement: "INSERT INTO t VALUES (?)"}, Count: 4, Text: "why it is refused", Last: started, First: started}}, nil
}

func (f *fake) Events(context.Context) ([]monitor.Event, error) {
	return []monitor.Event{{ID: 1, Time: started, Level: "WARN", Text: "store lost"}}, nil
}

func (f *fake) MayClose() bool { return f.may }

func (f *fake) CloseSession(_ context.Context, id uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = append(f.closed, id)
	if id == 17 {
		return nil
	}
	return errors.New("there is no session 18")
}

// terminal is a screen without a terminal.
type terminal struct {
	tcell.SimulationScreen
	t     *testing.T
	ended chan error

	mu   sync.Mutex
	seen string
}

// Init implements tcell.Screen.
func (s *terminal) Init() error {
	if err := s.SimulationScreen.Init(); err != nil {
		return err
	}
	s.SetSize(80, 24)
	return nil
}

// Show implements tcell.Screen. It keeps what is seen.
func (s *terminal) Show() {
	s.SimulationScreen.Show()
	cells, width, _ := s.GetContents()
	var b strings.Builder
	for i, c := range cells {
		if i > 0 && i%width == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(string(c.Runes))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = b.String()
}

func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// show runs the program on a screen of 80 by 24.
func show(t *testing.T, ctx context.Context, c Client) *terminal { //nolint:revive // the test first
	t.Helper()
	s := &terminal{SimulationScreen: tcell.NewSimulationScreen("UTF-8"), t: t, ended: make(chan error, 1)}
	go func() { s.ended <- Run(ctx, c, 5*time.Millisecond, s) }()
	s.until("LISTENER", "shard0")
	return s
}

// until waits for the screen to show all words.
func (s *terminal) until(words ...string) {
	s.t.Helper()
	assert.Until(s.t, fmt.Sprintf("the screen shows %q", words), func() bool {
		text := s.text()
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}, s.text)
}

func (s *terminal) press(keys string) {
	for _, r := range keys {
		s.InjectKey(tcell.KeyRune, r, tcell.ModNone)
	}
}

func (s *terminal) hit(k tcell.Key) { s.InjectKey(k, 0, tcell.ModNone) }

func (s *terminal) end() {
	s.t.Helper()
	select {
	case err := <-s.ended:
		assert.NoError(s.t, err)
	case <-time.After(time.Minute):
		s.t.Fatal("it does not end")
	}
}

// TestScreen goes through all that an operator can do, at 80 by 24.
func TestScreen(t *testing.T) {
	f := &fake{may: true}
	s := show(t, t.Context(), f)
	s.until("idproxy v1", "1 Listeners", "LISTENER", "shard0", "STATE", "ready", "q quit")
	s.press("2")
	s.until("SOURCE", "snowflake", "worker 3")
	s.press("3")
	s.until("shop.orders.id", " form")
	s.press("5")
	s.until("REASON", "INSERT INTO t VALUES (?)")
	s.hit(tcell.KeyEnter)
	s.until("why it is refused")
	s.hit(tcell.KeyEscape)
	s.press("6")
	s.until("WARN", "store lost")
	s.hit(tcell.KeyTab) // around
	s.until("LISTENER")
	s.hit(tcell.KeyF1)
	s.until("reverse the order")
	s.hit(tcell.KeyEscape)
	s.press("4")
	s.until("app[red]", "cron") // a user's name is no command to the screen
	s.press("/cron")
	s.until("/cron", "Sessions")
	s.hit(tcell.KeyEnter)
	assert.True(t, !strings.Contains(s.text(), "app[red]"), "the filter leaves all:\n%s", s.text())
	s.hit(tcell.KeyEscape)
	s.until("app[red]")
	s.press("p")
	s.until("paused at")
	s.press(" ")
	s.until("ready at")
	s.press("<")
	s.until("STATE▲")
	s.SetSize(40, 8)
	assert.Must(t, s.PostEvent(tcell.NewEventResize(40, 8)))
	assert.Until(t, "it has eight lines", func() bool { return len(strings.SplitN(s.text(), "\n", 9)) == 8 }, s.text)
	s.until("STATE▲", "cron", "F1 help")
	s.press("q")
	s.end()
}

// TestNoAnswer: when the admin listener goes away it is said, and when it is back all goes on.
func TestNoAnswer(t *testing.T) {
	f := &fake{err: errors.New("connection refused")}
	assert.Equal(t, "without a first answer", fmt.Sprint(Run(t.Context(), f, time.Second, nil)), "connection refused")
	f.err = nil
	ctx, cancel := context.WithCancel(t.Context())
	s := show(t, ctx, f)
	s.until("ready at")
	f.set(func(f *fake) { f.err = errors.New("connection refused") })
	s.until("NO ANSWER, figures are of", "connection refused", "shard0")
	f.set(func(f *fake) { f.err = nil })
	s.until("ready at")
	cancel()
	s.end()
}

// TestCloseSession: a session is closed where the client may, and only after a question.
func TestCloseSession(t *testing.T) {
	f := &fake{}
	s := show(t, t.Context(), f)
	s.press("k")
	s.until("of the tab Sessions")
	s.press("4")
	s.until("app[red]")
	s.press("k")
	s.until("takes the token")
	f.set(func(f *fake) { f.may = true })
	s.press("/app")
	s.hit(tcell.KeyEnter)
	s.press("k")
	s.until("Close session 17 of", "app[red] from 10.0.0.1:5?")
	s.press("n")
	s.press("k")
	s.until("Close session 17")
	s.hit(tcell.KeyEnter) // the first button keeps it
	s.press("k")
	s.until("Close session 17")
	s.hit(tcell.KeyTab)
	s.hit(tcell.KeyEnter)
	s.until("session 17 of app[red] from 10.0.0.1:5 is closed")
	s.hit(tcell.KeyEscape)
	s.until("app[red]", "cron")
	s.press("/cron")
	s.hit(tcell.KeyEnter)
	s.press("k")
	s.until("Close session 18")
	s.press("y")
	s.until("is not closed: there is no session 18")
	f.set(func(f *fake) { assert.True(t, len(f.closed) == 2, "closed %v, want 17 and 18 once each", f.closed) })
	s.hit(tcell.KeyCtrlC)
	s.end()
}
